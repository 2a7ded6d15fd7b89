"""`make counts` writes what ran and leaves alone what did not."""

from __future__ import annotations

from tools.count_tests import counted


def _report(passed: int, data_skips: int = 0) -> str:
    cases = [f'<testcase classname="t" name="test_{number}"/>' for number in range(passed)]
    cases += [
        f'<testcase classname="t" name="skip_{number}"><skipped message="../shared/data is not here"/></testcase>'
        for number in range(data_skips)
    ]
    return f'<testsuites><testsuite time="1">{"".join(cases)}</testsuite></testsuites>'


def test_a_suite_that_ran_gets_its_number_and_another_keeps_the_old_one() -> None:
    assert counted({"crash": 5, "unit": 9}, {"unit": _report(3)}) == {"unit": 3, "crash": 5}


def test_a_suite_that_ran_nothing_is_not_counted() -> None:
    assert counted({"e2e": 5}, {"e2e": _report(0)}) == {}


def test_the_number_is_the_same_with_and_without_the_shared_data() -> None:
    assert counted({}, {"unit": _report(3, data_skips=2)}) == counted({}, {"unit": _report(5)})
