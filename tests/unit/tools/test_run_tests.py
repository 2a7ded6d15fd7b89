"""Every suite runs, whatever happened to the one before it, and a process that dies is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.run_tests import run_suites


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # pytest takes its root, and with it its settings, from here and not from a folder above.
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    return tmp_path


def _suite(root: Path, name: str, text: str) -> None:
    folder = root / "tests" / name
    folder.mkdir(parents=True)
    (folder / f"test_{name}.py").write_text(text, encoding="utf-8")


def test_a_suite_that_dies_fails_and_the_next_one_runs(root: Path) -> None:
    _suite(root, "dies", "import os\ndef test_dies(): os._exit(0x2A)\n")
    _suite(root, "passes", "def test_passes(): pass\n")
    outcomes, endings = run_suites(root, ["dies", "passes"])
    assert [(one.suite, one.passed, one.failed) for one in outcomes] == [("dies", 0, 1), ("passes", 1, 0)]
    assert endings == ["dies: pytest ended with 42 and no report, see above"]


def test_a_suite_that_dies_is_not_judged_by_the_report_of_the_last_run(root: Path) -> None:
    _suite(root, "unit", "def test_passes(): pass\n")
    assert run_suites(root, ["unit"])[0][0].passed == 1
    (root / "tests" / "unit" / "test_unit.py").write_text("import os\nos._exit(0)\n", encoding="utf-8")
    ((outcome,), endings) = run_suites(root, ["unit"])
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert endings == ["unit: pytest ended with 0 and no report, see above"]


def test_a_failed_test_needs_no_further_word(root: Path) -> None:
    _suite(root, "unit", "def test_fails(): assert False\n")
    ((outcome,), endings) = run_suites(root, ["unit"])
    assert (outcome.failed, endings) == (1, [])


def test_a_folder_that_is_not_there_has_no_outcome(root: Path) -> None:
    _suite(root, "unit", "")
    outcomes, endings = run_suites(root, ["unit", "crash"])
    assert [(one.suite, one.run) for one in outcomes] == [("unit", 0)]
    assert endings == []
