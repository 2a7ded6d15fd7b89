"""What the suites did is counted as it was, and a run that lost tests does not pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import tally

SUITE = """
import pytest

def test_passes(): pass
def test_fails(): assert False
@pytest.mark.skip(reason="no loop devices")
def test_skips(): pass
@pytest.mark.skip(reason="../shared/data is not here")
def test_skips_for_data(): pass
@pytest.fixture
def bad_setup(): raise OSError
@pytest.fixture
def bad_teardown():
    yield
    raise OSError
def test_errs(bad_setup): pass
def test_passes_and_errs(bad_teardown): pass
def test_fails_and_errs(bad_teardown): assert False
@pytest.mark.xfail
def test_known(): assert False
"""


def _outcome(passed: int = 0, *skips: tally.Skip, suite: str = "unit") -> tally.Outcome:
    return tally.Outcome(suite, passed, 0, skips, 1.25)


def _pytest(folder: Path, text: str) -> tally.Outcome:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    report = folder / "report.xml"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            f"--junitxml={report}",
            ".",
        ],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return tally.read_report("unit", report.read_text(encoding="utf-8"))


def test_a_report_of_pytest_is_read_as_what_happened(tmp_path: Path) -> None:
    outcome = _pytest(tmp_path, SUITE)
    assert (outcome.passed, outcome.failed) == (1, 4)
    assert [(skip.test, skip.reason) for skip in outcome.skips] == [
        ("test_it::test_skips", "no loop devices"),
        ("test_it::test_skips_for_data", "../shared/data is not here"),
        ("test_it::test_known", ""),
    ]
    assert outcome.seconds > 0


def test_the_parts_of_a_suite_are_counted_together_and_their_reports_are_one() -> None:
    reports = [
        '<testsuites><testsuite time="1.5"><testcase classname="a" name="passes"/>'
        '<testcase classname="a" name="skips"><skipped message="no swtpm"/></testcase></testsuite></testsuites>',
        '<testsuites><testsuite time="2.0"><testcase classname="b" name="passes"/>'
        '<testcase classname="b" name="fails"><failure/></testcase>'
        '<testcase classname="b" name="skips"><skipped message="not root"/></testcase></testsuite></testsuites>',
    ]
    whole = tally.together("e2e", [tally.read_report("e2e", report) for report in reports])
    assert whole == tally.Outcome(
        "e2e", 2, 1, (tally.Skip("a::skips", "no swtpm"), tally.Skip("b::skips", "not root")), 3.5
    )
    assert tally.read_report("e2e", tally.one_report(reports)) == whole


def test_a_module_skipped_as_a_whole_keeps_its_reason(tmp_path: Path) -> None:
    outcome = _pytest(tmp_path, "import pytest\npytest.skip('../shared/data is not here', allow_module_level=True)\n")
    assert [skip.reason for skip in outcome.skips] == ["../shared/data is not here"]


def test_a_module_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    assert _pytest(tmp_path, "import no_such_module\n").failed == 1


def test_fewer_run_than_counted_is_a_problem_that_names_the_way_out() -> None:
    (problem,) = tally.problems([_outcome(9)], {"unit": 10}, ["unit"], ci=False)
    assert problem.startswith("unit: 9 ran, tests/counts.json wants 10")
    assert "make counts" in problem


def test_as_many_as_counted_or_more_is_no_problem() -> None:
    assert tally.problems([_outcome(10)], {"unit": 10}, ["unit"], ci=True) == []
    assert tally.problems([_outcome(11)], {"unit": 10}, ["unit"], ci=True) == []


def test_a_skipped_test_did_not_run() -> None:
    assert tally.problems([_outcome(9, tally.Skip("test_x", "not root"))], {"unit": 10}, ["unit"], ci=False)


def test_a_test_skipped_for_the_shared_data_counts_on_machines_without_them() -> None:
    skip = tally.Skip("test_x", "../shared/data/ek-certs is not here")
    assert tally.problems([_outcome(9, skip)], {"unit": 10}, ["unit"], ci=True) == []


def test_a_counted_suite_that_did_not_run_is_a_problem() -> None:
    (problem,) = tally.problems([_outcome(10)], {"unit": 10, "crash": 3}, ["unit", "crash"], ci=False)
    assert problem.startswith("crash: ")


def test_a_suite_nobody_chose_is_not_missed() -> None:
    assert tally.problems([_outcome(10)], {"unit": 10, "crash": 3}, ["unit"], ci=False) == []


@pytest.mark.parametrize("reason", ["not root", "", "needs ../shared/data"])
def test_ci_names_every_skip_it_does_not_allow(reason: str) -> None:
    outcomes = [_outcome(10, tally.Skip("test_x", reason))]
    assert tally.problems(outcomes, {}, ["unit"], ci=True) == [f"unit: skipped in CI: test_x: {reason}"]
    assert tally.problems(outcomes, {}, ["unit"], ci=False) == []


def test_suites_are_the_folders_with_tests_and_the_counted_ones(tmp_path: Path) -> None:
    for name in ("zeta", "unit", "contract", "fakes"):
        (tmp_path / name / "deep").mkdir(parents=True)
    for name in ("zeta", "unit", "contract"):
        (tmp_path / name / "deep" / "test_it.py").touch()
    (tmp_path / "fakes" / "disk.py").touch()
    assert tally.suites_in(tmp_path, {"crash": 1}) == ["unit", "contract", "crash", "zeta"]


def test_the_table_and_the_last_line() -> None:
    outcomes = [_outcome(10), _outcome(2, tally.Skip("test_x", "why"), suite="contract")]
    assert tally.table(outcomes, 2.0) == [
        "suite      run  skipped  seconds",
        "unit        10        0      1.2",
        "contract     2        1      1.2",
        "wall time                    2.0",
    ]
    assert tally.total(outcomes) == "12 passed, 0 failed, 1 skipped"


def test_a_suite_that_broke_without_a_failed_test_failed() -> None:
    assert tally.total([tally.broken(_outcome(3))]) == "3 passed, 1 failed, 0 skipped"


def test_counts_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text('{"unit": "many"}', encoding="utf-8")
    with pytest.raises(ValueError, match="suite names and numbers"):
        tally.read_counts(path)
