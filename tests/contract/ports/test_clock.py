"""The port `Clock`: one contract over the system's clock and the manual one."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bcd.adapters.host.clock import SystemClock
from bcd.ports.clock import Clock
from tests.fakes.clock import ManualClock
from tests.fakes.contracts import checks_of, failed_checks

# A power of two: nothing is lost when it is added to a clock.
A_MOMENT_S = 1 / 64


class ClockContract:
    @staticmethod
    def now_is_utc(clock: Clock) -> None:
        """Field report B25."""
        assert clock.now().tzinfo is UTC
        assert clock.now().utcoffset() == timedelta(0)

    @staticmethod
    def boottime_never_goes_back(clock: Clock) -> None:
        seen = [clock.boottime_s() for _ in range(100)]
        assert seen == sorted(seen)

    @staticmethod
    def a_wait_takes_as_long_as_was_asked_of_boottime(clock: Clock) -> None:
        before = clock.boottime_s()
        clock.wait(A_MOMENT_S)
        assert A_MOMENT_S <= clock.boottime_s() - before < A_MOMENT_S + 5

    @staticmethod
    def the_wall_clock_goes_on_while_one_waits(clock: Clock) -> None:
        before = clock.now()
        clock.wait(A_MOMENT_S)
        assert clock.now() > before

    @staticmethod
    def a_wait_for_nothing_or_less_is_over_at_once(clock: Clock) -> None:
        before = clock.boottime_s()
        clock.wait(0)
        clock.wait(-3600)
        assert 0 <= clock.boottime_s() - before < 5


@pytest.mark.parametrize("make", [SystemClock, ManualClock])
@pytest.mark.parametrize("check", checks_of(ClockContract).values(), ids=checks_of(ClockContract))
def test_every_implementation_meets_the_contract(check: Callable[[Clock], None], make: Callable[[], Clock]) -> None:
    check(make())


class Naive(SystemClock):
    def now(self) -> datetime:
        return datetime.now()  # noqa: DTZ005 - the mistake


class GoesBack(SystemClock):
    def boottime_s(self) -> float:
        return -time.monotonic()


class DoesNotWait(SystemClock):
    def wait(self, seconds: float) -> None:
        return


class Stands(SystemClock):
    def now(self) -> datetime:
        return datetime(2026, 9, 26, tzinfo=UTC)


class WaitsForWhatIsNegative(ManualClock):
    def wait(self, seconds: float) -> None:
        self.forward(abs(seconds))


@pytest.mark.parametrize(
    ("wrong", "caught_by"),
    [
        (Naive, "now_is_utc"),
        (GoesBack, "boottime_never_goes_back"),
        (DoesNotWait, "a_wait_takes_as_long_as_was_asked_of_boottime"),
        (Stands, "the_wall_clock_goes_on_while_one_waits"),
        (WaitsForWhatIsNegative, "a_wait_for_nothing_or_less_is_over_at_once"),
    ],
)
def test_a_wrong_implementation_fails_the_contract(wrong: Callable[[], Clock], caught_by: str) -> None:
    # GoesBack would wait for ever for the end that never comes: it is not asked to.
    if wrong is GoesBack:
        with pytest.raises(AssertionError):
            ClockContract.boottime_never_goes_back(wrong())
        return
    assert caught_by in failed_checks(ClockContract, wrong)


def test_the_systems_clocks_are_the_systems() -> None:
    clock = SystemClock()
    assert abs((clock.now() - datetime.fromtimestamp(time.time(), UTC)).total_seconds()) < 5
    assert abs(clock.boottime_s() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 5
