"""Every suite runs, whatever happened to the one before it, and a process that dies is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import tally
from tools.run_tests import parts_beside, run_suites


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # pytest takes its root, and with it its settings, from here and not from a folder above.
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    return tmp_path


def _suite(root: Path, name: str, text: str) -> None:
    folder = root / "tests" / name
    folder.mkdir(parents=True)
    (folder / f"test_{folder.name}.py").write_text(text, encoding="utf-8")


def _report(root: Path, suite: str) -> tally.Outcome:
    return tally.read_report(suite, (root / ".test-results" / f"{suite}.xml").read_text(encoding="utf-8"))


def test_a_suite_that_dies_fails_and_the_next_one_runs(root: Path) -> None:
    _suite(root, "dies", "import os\ndef test_dies(): os._exit(0x2A)\n")
    _suite(root, "passes", "def test_passes(): pass\n")
    outcomes, endings = run_suites(root, ["dies", "passes"])
    assert [(one.suite, one.passed, one.failed) for one in outcomes] == [("dies", 0, 1), ("passes", 1, 0)]
    assert endings == ["tests/dies: pytest ended with 42 and no report, see above"]


def test_a_suite_that_dies_is_not_judged_by_the_report_of_the_last_run(root: Path) -> None:
    _suite(root, "unit", "def test_passes(): pass\n")
    assert run_suites(root, ["unit"])[0][0].passed == 1
    (root / "tests" / "unit" / "test_unit.py").write_text("import os\nos._exit(0)\n", encoding="utf-8")
    ((outcome,), endings) = run_suites(root, ["unit"])
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert endings == ["tests/unit: pytest ended with 0 and no report, see above"]
    assert not (root / ".test-results" / "unit.xml").exists()


def test_a_failed_test_needs_no_further_word(root: Path) -> None:
    _suite(root, "unit", "def test_fails(): assert False\n")
    ((outcome,), endings) = run_suites(root, ["unit"])
    assert (outcome.failed, endings) == (1, [])


def test_a_folder_that_is_not_there_has_no_outcome(root: Path) -> None:
    _suite(root, "unit", "")
    outcomes, endings = run_suites(root, ["unit", "crash"])
    assert [(one.suite, one.run) for one in outcomes] == [("unit", 0)]
    assert endings == []


def test_a_suite_in_parts_is_one_suite_in_the_table_and_one_report(root: Path) -> None:
    _suite(root, "e2e/node", "def test_passes(): pass\n")
    _suite(root, "e2e/tpm", "def test_passes(): pass\ndef test_fails(): assert False\n")
    _suite(root, "unit", "def test_passes(): pass\n")
    outcomes, endings = run_suites(root, ["unit", "e2e"])
    assert [(one.suite, one.passed, one.failed) for one in outcomes] == [("unit", 1, 0), ("e2e", 2, 1)]
    assert (_report(root, "unit"), _report(root, "e2e")) == tuple(outcomes)
    assert endings == []


def test_a_part_that_dies_leaves_no_report_of_a_suite_with_fewer_tests(root: Path) -> None:
    """`make counts` would take the number of its other parts for all."""
    _suite(root, "e2e/dies", "import os\ndef test_dies(): os._exit(0)\n")
    _suite(root, "e2e/node", "def test_passes(): pass\n")
    _suite(root, "unit", "")
    outcomes, endings = run_suites(root, ["unit", "e2e"])
    assert (outcomes[1].passed, outcomes[1].failed) == (1, 1)
    assert endings == ["tests/e2e/dies: pytest ended with 0 and no report, see above"]
    assert not (root / ".test-results" / "e2e.xml").exists()


def test_unit_begins_then_what_is_long_and_last_what_is_small(root: Path) -> None:
    for name in ("other", "contract", "crash", "e2e/tpm", "e2e/node", "unit"):
        _suite(root, name, "")
    (root / "tests" / "e2e" / "test_demo.py").touch()
    (root / "tests" / "e2e" / "pages").mkdir()
    parts = parts_beside(root, ["unit", "contract", "e2e", "crash", "other"])
    assert [part.name.removeprefix("tests/") for part in parts] == [
        "unit",
        "e2e/tpm",
        "crash",
        "contract",
        "e2e/node",
        "e2e/test_demo.py",
        "other",
    ]
    assert {part.suite for part in parts} == {"unit", "e2e", "crash", "contract", "other"}


def test_a_suite_that_measures_time_begins_when_no_other_runs(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("unit", "bench", "crash"):
        _suite(root, name, f"def test_it(): print('{name} at work')\n")
    run_suites(root, ["unit", "bench", "crash"])
    said = capfd.readouterr().out
    assert said.index("\n--- tests/bench\n") > max(said.index("tests/unit ended"), said.index("tests/crash ended"))


def test_one_suite_writes_its_lines_as_they_come(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _suite(root, "e2e", "def test_passes(): pass\n")
    _suite(root, "bench", "def test_passes(): pass\n")
    run_suites(root, ["e2e", "bench"])
    assert "its lines come when it ends" not in capfd.readouterr().out
    assert list((root / ".test-results" / "parts").glob("*.log")) == []
