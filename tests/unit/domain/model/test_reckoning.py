"""The estimated time (decision 13): what a server told, carried on by boottime; the wall clock only before that."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.reckoning import Reckoning
from tests.fakes.pki import NOT_AFTER, NOW
from tests.fakes.properties import few

HOUR = timedelta(hours=1)
YEAR = timedelta(days=365)
instants = st.datetimes(datetime(1970, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis wants them so
boottimes = st.floats(0, 1e9)


def test_before_contact_and_without_a_mark_it_is_the_wall_clock() -> None:
    assert Reckoning(None, 50.0).now(NOW, 90.0) == NOW


def test_before_contact_a_wall_clock_behind_the_mark_is_not_believed() -> None:
    """Field report B23: no battery, the image's build date."""
    reckoning = Reckoning(NOW, 50.0)
    assert reckoning.now(NOW - 16 * YEAR, 50.0) == NOW
    assert reckoning.now(NOW - 16 * YEAR, 50.0 + 3600) == NOW + HOUR


def test_before_contact_a_wall_clock_ahead_of_the_mark_is_believed() -> None:
    assert Reckoning(NOW, 50.0).now(NOW + YEAR, 51.0) == NOW + YEAR


@pytest.mark.parametrize("wall", [NOW - 50 * YEAR, NOW - HOUR, NOW, NOW + HOUR, NOW + 50 * YEAR])
def test_after_contact_the_wall_clock_is_not_asked_any_more(wall: datetime) -> None:
    reckoning = Reckoning(NOW - HOUR, 50.0).heard(NOW, 100.0, NOT_AFTER)
    assert reckoning.now(wall, 100.0) == NOW
    assert reckoning.now(wall, 160.0) == NOW + timedelta(minutes=1)


def test_the_last_server_time_is_the_one_that_counts_also_when_it_is_earlier() -> None:
    reckoning = Reckoning(None, 0.0).heard(NOW + YEAR, 100.0, NOT_AFTER).heard(NOW, 200.0, NOT_AFTER)
    assert reckoning.now(NOW + YEAR, 230.0) == NOW + timedelta(seconds=30)


def test_a_server_time_raises_the_mark_and_an_earlier_one_does_not_lower_it() -> None:
    first = Reckoning(NOW - HOUR, 0.0).heard(NOW, 1.0, NOT_AFTER)
    assert first.mark == NOW
    assert first.heard(NOW - YEAR, 2.0, NOT_AFTER).mark == NOW


def test_the_mark_never_passes_the_end_of_the_held_leaf() -> None:
    reckoning = Reckoning(NOW, 0.0).heard(NOW + 10 * YEAR, 1.0, NOT_AFTER)
    assert reckoning.mark == NOT_AFTER
    assert Reckoning(None, 0.0).heard(NOW + 10 * YEAR, 1.0, NOT_AFTER).mark == NOT_AFTER
    # What the server told is the time all the same: nothing is discarded because of a clock.
    assert reckoning.now(NOW, 1.0) == NOW + 10 * YEAR


@pytest.mark.parametrize("end", [datetime.max.replace(tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_the_end_of_all_calendars_is_a_time_like_any_other(end: datetime) -> None:
    """A gateway may say it, and a file; neither may end the node."""
    ten_years_s = 10 * YEAR.total_seconds()
    assert Reckoning(None, 0.0).heard(end, 0.0, NOT_AFTER).now(NOW, ten_years_s) > NOT_AFTER
    assert Reckoning(end, 0.0).now(NOW, ten_years_s) > NOT_AFTER


@few
@given(st.none() | instants, st.lists(st.tuples(instants, boottimes)), instants)
def test_property_the_mark_only_rises_and_stays_below_the_end(
    mark: datetime | None, heard: list[tuple[datetime, float]], ceiling: datetime
) -> None:
    reckoning = Reckoning(mark, 0.0)
    for server_time, boottime_s in heard:
        before, reckoning = reckoning.mark, reckoning.heard(server_time, boottime_s, ceiling)
        assert reckoning.mark is not None
        assert before is None or reckoning.mark >= before
        assert reckoning.mark <= max(ceiling, mark or ceiling)


@few
@given(st.none() | instants, instants, boottimes, st.floats(0, 1e8), instants, instants)
def test_property_after_contact_it_goes_exactly_as_boottime_does(
    mark: datetime | None, told: datetime, at_s: float, on_s: float, wall: datetime, other_wall: datetime
) -> None:
    reckoning = Reckoning(mark, 0.0).heard(told, at_s, NOT_AFTER)
    gone = reckoning.now(wall, at_s + on_s) - reckoning.now(other_wall, at_s)
    assert abs(gone.total_seconds() - on_s) < 0.001
