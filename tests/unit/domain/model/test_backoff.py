"""How long a failed attempt is waited out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model import backoff
from tests.fakes.properties import few

FRACTION = st.floats(0, 1, exclude_max=True)
ATTEMPT = st.integers(1, 100_000)


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (7, 60), (20, 60), (5000, 60)]
)
def test_a_join_waits_half_to_all_of_a_doubling_minute(attempt: int, ceiling: float) -> None:
    assert backoff.join_delay_s(attempt, 0.0) == ceiling / 2
    assert backoff.join_delay_s(attempt, 0.5) == ceiling * 0.75
    assert backoff.join_delay_s(attempt, 0.999999) == pytest.approx(ceiling)


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(1, 30), (2, 60), (3, 120), (5, 480), (6, 600), (7, 600), (40, 600), (5000, 600)]
)
def test_a_renewal_waits_half_to_all_of_30_seconds_to_10_minutes(attempt: int, ceiling: float) -> None:
    assert backoff.renew_delay_s(attempt, 0.0) == ceiling / 2
    assert backoff.renew_delay_s(attempt, 0.5) == ceiling * 0.75
    assert backoff.renew_delay_s(attempt, 0.999999) == pytest.approx(ceiling)


@few
@given(ATTEMPT, FRACTION)
def test_no_wait_is_outside_its_bounds(attempt: int, fraction: float) -> None:
    assert 1 <= backoff.join_delay_s(attempt, fraction) <= 60
    assert 15 <= backoff.renew_delay_s(attempt, fraction) <= 600


@few
@given(ATTEMPT, FRACTION)
def test_a_later_attempt_never_waits_less(attempt: int, fraction: float) -> None:
    assert backoff.join_delay_s(attempt, fraction) <= backoff.join_delay_s(attempt + 1, fraction)
    assert backoff.renew_delay_s(attempt, fraction) <= backoff.renew_delay_s(attempt + 1, fraction)


def test_a_join_makes_20_attempts() -> None:
    assert backoff.JOIN_ATTEMPTS == 20
