"""When a leaf is renewed: the plan, the gap, what the gateway asks for, and what follows a failure."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.identity import Leaf, renew_at
from bcd.domain.model.names import NodeId, Role, SpiffeId
from bcd.domain.model.renewal import Renewal
from tests.fakes import pki
from tests.fakes.properties import few

HELD = Leaf(b"", b"", pki.SPIFFE_ID, Role.NODE, pki.NOT_BEFORE, pki.NOT_AFTER)
DAY_S = 86_400.0
# Boottime of the leaf's beginning.
T0 = 5_000.0


def at(fraction: float) -> tuple[datetime, float]:
    """Both clocks when that part of the lifetime is over."""
    return HELD.not_before + HELD.lifetime * fraction, T0 + DAY_S * fraction


def failed(
    renewal: Renewal, now: datetime, boottime_s: float, pushback_s: float | None = None, never: bool = False
) -> Renewal:
    return renewal.failed(HELD, now, boottime_s, 0.5, pushback_s=pushback_s, never=never)


def test_a_leaf_is_due_at_its_planned_time_and_not_before() -> None:
    planned = renew_at(HELD)
    assert Renewal().planned(HELD, *at(0.1)) == planned
    assert not Renewal().due(HELD, planned - timedelta(microseconds=1), T0)
    assert Renewal().due(HELD, planned, T0)


@few
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=30))
def test_property_every_node_renews_between_60_and_65_percent_the_same_every_time(name: str) -> None:
    leaf = Leaf(b"", b"", SpiffeId(pki.DOMAIN, pki.SITE, NodeId(name)), Role.NODE, pki.NOT_BEFORE, pki.NOT_AFTER)
    part = (renew_at(leaf) - leaf.not_before) / leaf.lifetime
    assert 0.60 <= part <= 0.65
    assert renew_at(leaf) == renew_at(leaf)


def test_a_quarter_of_the_lifetime_lies_between_two_renewals_that_worked() -> None:
    now, boottime_s = at(0.9)
    renewal = Renewal().succeeded(boottime_s)
    gap_s = DAY_S / 4
    assert not renewal.due(HELD, now, boottime_s)
    assert not renewal.due(HELD, now, boottime_s + gap_s - 0.001)
    assert renewal.due(HELD, now, boottime_s + gap_s)


def test_the_quarter_counts_from_the_first_attempt_whose_certificate_a_late_answer_brings() -> None:
    """Asked for early, lost, and given again when little of its time is left."""
    renewal = failed(Renewal(), *at(0.05))
    renewal = failed(renewal, *at(0.5)).succeeded(at(0.9)[1])
    assert renewal.due(HELD, *at(0.9))
    # And only then: the next one that works is its own first attempt.
    assert not renewal.succeeded(at(0.9)[1]).due(HELD, *at(0.95))


def test_a_renew_now_is_due_whatever_the_plan_and_the_gap_say() -> None:
    now, boottime_s = at(0.01)
    renewal = Renewal().succeeded(boottime_s).told_to(boottime_s)
    assert renewal.due(HELD, now, boottime_s)
    assert renewal.planned(HELD, now, boottime_s) == now


def test_a_renew_now_is_honoured_once_in_ten_minutes() -> None:
    now, boottime_s = at(0.01)
    done = Renewal().told_to(boottime_s).succeeded(boottime_s + 1)
    assert not done.due(HELD, now, boottime_s + 1)
    assert done.told_to(boottime_s + 599.9) == done
    assert done.told_to(boottime_s + 600).due(HELD, now, boottime_s + 600)


def test_a_renew_now_does_not_shorten_the_wait_after_a_failure() -> None:
    now, boottime_s = at(0.7)
    renewal = failed(Renewal(), now, boottime_s).told_to(boottime_s)
    assert not renewal.due(HELD, now, boottime_s + 1)
    assert renewal.due(HELD, now, renewal.earliest_s)


def test_a_renew_now_stays_asked_until_a_renewal_works() -> None:
    now, boottime_s = at(0.1)
    renewal = failed(Renewal().told_to(boottime_s), now, boottime_s)
    assert renewal.due(HELD, now, renewal.earliest_s)
    assert not renewal.succeeded(renewal.earliest_s).due(HELD, now, renewal.earliest_s + 1)


@pytest.mark.parametrize(
    ("failures", "ceiling_s"), [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 600), (40, 600)]
)
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.999])
def test_the_backoff_goes_from_30_seconds_to_10_minutes(failures: int, ceiling_s: float, fraction: float) -> None:
    now, boottime_s = at(0.65)
    renewal = Renewal(failures=failures - 1).failed(HELD, now, boottime_s, fraction, pushback_s=None, never=False)
    assert renewal.failures == failures
    assert renewal.earliest_s - boottime_s == pytest.approx(ceiling_s / 2 * (1 + fraction))


def test_a_success_starts_the_backoff_over() -> None:
    now, boottime_s = at(0.65)
    renewal = failed(Renewal(failures=9), now, boottime_s).succeeded(boottime_s + 700)
    assert (renewal.failures, renewal.earliest_s) == (0, 0.0)


@pytest.mark.parametrize("pushback_s", [0.001, 7.25, 599.0, 3600.0])
def test_a_pushback_is_waited_exactly(pushback_s: float) -> None:
    now, boottime_s = at(0.65)
    renewal = failed(Renewal(failures=3), now, boottime_s, pushback_s)
    assert renewal.earliest_s == boottime_s + pushback_s
    assert not renewal.due(HELD, now, boottime_s + pushback_s - 0.0005)
    assert renewal.due(HELD, now, boottime_s + pushback_s)
    assert renewal.planned(HELD, now, boottime_s) == now + timedelta(seconds=pushback_s)


def test_do_not_call_again_is_ten_minutes() -> None:
    now, boottime_s = at(0.65)
    assert failed(Renewal(), now, boottime_s, 1.0, never=True).earliest_s == boottime_s + 600


@few
@given(st.floats(0.60, 0.99999), st.none() | st.floats(0, 1e7), st.booleans(), st.integers(0, 60), st.floats(0, 0.999))
def test_property_an_attempt_remains_before_the_end(
    part: float, pushback_s: float | None, never: bool, failures: int, fraction: float
) -> None:
    now, boottime_s = at(part)
    left_s = (HELD.not_after - now).total_seconds()
    renewal = Renewal(failures=failures).failed(HELD, now, boottime_s, fraction, pushback_s=pushback_s, never=never)
    wait_s = renewal.earliest_s - boottime_s
    assert wait_s <= max(left_s / 2, 1.0) + 1e-6
    # And no storm comes of it.
    if pushback_s is None:
        assert wait_s >= min(15.0, max(left_s / 2, 1.0)) - 1e-6


def test_the_last_seconds_are_not_filled_with_attempts() -> None:
    now, boottime_s = at(0.60)
    renewal, attempts = Renewal(), 0
    while now < HELD.not_after:
        renewal = failed(renewal, now, boottime_s)
        now, boottime_s = now + timedelta(seconds=renewal.earliest_s - boottime_s), renewal.earliest_s
        attempts += 1
    hours = (HELD.not_after - renew_at(HELD)).total_seconds() / 3600
    assert attempts < hours * 12 + 30


def test_after_the_end_the_usual_backoff_goes_on() -> None:
    now, boottime_s = at(1.5)
    assert failed(Renewal(failures=20), now, boottime_s).earliest_s == boottime_s + 450
    assert failed(Renewal(), now, boottime_s, 5000.0).earliest_s == boottime_s + 5000


@pytest.mark.parametrize("pushback_s", [86_401.0, 1e9, (2**63 - 1) / 1000])
def test_no_pushback_is_longer_than_a_certificate_lasts(pushback_s: float) -> None:
    now, boottime_s = at(1.5)
    renewal = failed(Renewal(), now, boottime_s, pushback_s)
    assert renewal.earliest_s == boottime_s + 86_400
    assert renewal.planned(HELD, now, boottime_s) == now + timedelta(days=1)


def test_the_plan_tells_of_the_gap() -> None:
    """Field report B26: what is shown is what will be done."""
    now, boottime_s = at(0.9)
    renewal = Renewal().succeeded(boottime_s)
    assert renewal.planned(HELD, now, boottime_s) == now + HELD.lifetime / 4
