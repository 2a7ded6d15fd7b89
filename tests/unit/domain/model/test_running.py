"""What a running node does next, from times and what is under way alone."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.identity import Leaf, renew_at
from bcd.domain.model.names import Role
from bcd.domain.model.reckoning import Reckoning
from bcd.domain.model.running import LOOK_EVERY_S, Link, Running, Todo
from tests.fakes import pki
from tests.fakes.properties import few

HELD = Leaf(b"", b"", pki.SPIFFE_ID, Role.NODE, pki.NOT_BEFORE, pki.NOT_AFTER)
# Boottime of pki.NOW.
T0 = 1000.0
DAY = timedelta(days=1)
UP = Link(up=True, behind=False, up_s=T0)


def node(link: Link = UP, **fields: object) -> Running:
    start = Running(HELD, Reckoning(pki.NOW, T0), held_s=T0, link=link, looked_s=T0)
    return replace(start, **fields)  # type: ignore[arg-type]


def after(seconds: float) -> tuple[datetime, float]:
    """A right wall clock, and boottime."""
    return pki.NOW + timedelta(seconds=seconds), T0 + seconds


def successor(leaf: Leaf, now: datetime) -> Leaf:
    return replace(leaf, not_before=now - timedelta(minutes=5), not_after=now - timedelta(minutes=5) + DAY)


def test_a_node_that_starts_dials_and_does_nothing_else() -> None:
    assert node(Link()).todo(*after(0)) == (Todo.DIAL,)


def test_a_dial_under_way_is_not_started_again_and_given_up_when_no_welcome_comes() -> None:
    dialling = node(Link()).dialling(T0)
    assert dialling.todo(*after(0)) == ()
    assert Todo.GIVE_DIAL_UP not in dialling.todo(*after(29.9))
    assert Todo.GIVE_DIAL_UP in dialling.todo(*after(30))
    assert Todo.DIAL not in dialling.todo(*after(30))


def test_a_welcome_ends_the_dialling_for_good() -> None:
    up = node(Link()).dialling(T0).welcomed(pki.NOW, T0 + 1)
    assert up.link.up
    assert not {Todo.DIAL, Todo.GIVE_DIAL_UP} & set(up.todo(*after(3600)))


@pytest.mark.parametrize(("failures", "ceiling_s"), [(1, 2), (2, 4), (5, 32), (9, 512), (10, 600), (500, 600)])
def test_dials_that_fail_back_off_to_ten_minutes(failures: int, ceiling_s: float) -> None:
    failed = node(Link(failures=failures - 1)).dialling(T0).dial_failed(T0, 0.5)
    wait_s = failed.link.earliest_s - T0
    assert wait_s == pytest.approx(ceiling_s * 0.75)
    assert Todo.DIAL not in failed.todo(*after(wait_s - 0.01))
    assert Todo.DIAL in failed.todo(*after(wait_s))


def test_a_pushback_of_a_dial_is_waited_exactly_and_never_is_ten_minutes() -> None:
    dialling = node(Link()).dialling(T0)
    assert dialling.dial_failed(T0, 0.5, pushback_s=7.25).link.earliest_s == T0 + 7.25
    assert dialling.dial_failed(T0, 0.99, never=True).link.earliest_s == pytest.approx(T0 + 600, rel=0.01)
    assert dialling.dial_failed(T0, 0.5, pushback_s=2.0**53).link.earliest_s == T0 + 86_400


def test_a_session_that_lasted_is_dialled_again_within_two_seconds() -> None:
    ended = node(replace(UP, failures=7)).session_ended(T0 + 3600, 0.999)
    assert not ended.link.up
    assert 1 <= ended.link.earliest_s - T0 - 3600 < 2


def test_sessions_that_end_as_soon_as_they_are_welcome_back_off_too() -> None:
    """A gateway that fails after its Welcome would be met by all of its nodes every other second, for ever."""
    running, boottime_s, dials = node(Link()), T0, 0
    while boottime_s < T0 + 3600:
        running = running.dialling(boottime_s).welcomed(pki.NOW, boottime_s).session_ended(boottime_s + 1, 0.5)
        boottime_s = running.link.earliest_s
        dials += 1
    assert dials < 20


def test_what_the_gateway_asks_as_it_ends_a_session_is_heard() -> None:
    assert node().session_ended(T0 + 3600, 0.5, pushback_s=7.25).link.earliest_s == T0 + 3600 + 7.25
    assert node().session_ended(T0 + 3600, 0.99, never=True).link.earliest_s > T0 + 3600 + 590


def test_a_dial_that_fails_leaves_an_older_session_up() -> None:
    behind = node(replace(UP, behind=True)).dialling(T0).dial_failed(T0, 0.5)
    assert behind.link.up
    assert behind.link.behind


def test_a_leaf_is_renewed_at_its_time_once() -> None:
    due_s = (renew_at(HELD) - pki.NOW).total_seconds()
    assert Todo.RENEW not in node(looked_s=T0 + due_s).todo(*after(due_s - 0.01))
    assert Todo.RENEW in node().todo(*after(due_s))
    assert Todo.RENEW not in node(renewing=True).todo(*after(due_s))


def test_the_new_pair_is_dialled_with_at_once_while_the_old_session_goes_on() -> None:
    now, boottime_s = after(60_000)
    waiting = node(replace(UP, failures=9, earliest_s=boottime_s + 500), renewing=True)
    renewed = waiting.renewed(successor(HELD, now), now, boottime_s)
    assert renewed.link.up
    assert Todo.DIAL in renewed.todo(now, boottime_s)
    assert Todo.RENEW not in renewed.todo(now, boottime_s)
    # A new pair, a new count: a gateway that is away now is not waited for as one that was away last week.
    assert renewed.dialling(boottime_s).dial_failed(boottime_s, 0.5).link.failures == 1


def test_a_dial_with_the_old_pair_does_not_hold_the_new_one_up() -> None:
    now, boottime_s = after(60_000)
    renewed = node(renewing=True).dialling(boottime_s - 1).renewed(successor(HELD, now), now, boottime_s)
    assert Todo.DIAL in renewed.todo(now, boottime_s)


def test_b19_a_renewal_that_was_slept_over_is_due_at_the_first_look() -> None:
    """Field report B19."""
    assert Todo.RENEW in node().todo(*after(16 * 3600))
    # The variant where boottime stood as well, before a server was heard: the wall clock tells.
    assert Todo.RENEW in node().todo(pki.NOW + timedelta(hours=16), T0 + 1)


def test_a_server_in_the_year_1970_does_not_put_the_renewal_off_for_ever() -> None:
    wrong = node().welcomed(datetime(1970, 1, 1, tzinfo=UTC), T0)
    due_s = (renew_at(HELD) - HELD.not_before).total_seconds()
    assert Todo.RENEW not in wrong.todo(*after(due_s - 1))
    assert Todo.RENEW in wrong.todo(*after(due_s))


def test_an_expired_leaf_is_told_every_ten_minutes_and_everything_goes_on() -> None:
    """Decision 15."""
    moment, boottime_s = after(86_200)
    down = node(Link(earliest_s=boottime_s))
    assert Todo.TELL_EXPIRED not in down.todo(HELD.not_after - timedelta(seconds=1), boottime_s - 200)
    assert set(down.todo(moment, boottime_s)) >= {Todo.TELL_EXPIRED, Todo.DIAL, Todo.RENEW}
    told = replace(down, told_expired_s=boottime_s)
    assert Todo.TELL_EXPIRED not in told.todo(*after(86_200 + 599))
    assert Todo.TELL_EXPIRED in told.todo(*after(86_200 + 600))


def test_a_renewal_that_works_takes_the_expiry_back() -> None:
    now, boottime_s = after(90_000)
    renewed = node(told_expired_s=boottime_s).renewed(successor(HELD, now), now, boottime_s)
    assert Todo.TELL_EXPIRED not in renewed.todo(now, boottime_s)
    assert renewed.told_expired_s is None


def test_a_retired_pair_neither_dials_nor_renews_before_the_verdict_is_possible() -> None:
    """Protocol, "Answers can be lost": its use within 10 minutes says nothing, and would only be refused again. The
    node is past its renewal time, as a machine put back from a snapshot is."""
    now, boottime_s = after(65_000)
    retired = node(Link(), looked_s=boottime_s).retired(boottime_s, 0.0)
    assert retired.todo(now, boottime_s) == ()
    for seconds in (1, 30, 300, 600):
        later = now + timedelta(seconds=seconds), boottime_s + seconds
        assert not {Todo.DIAL, Todo.RENEW} & set(retired.todo(*later))
    assert {Todo.DIAL, Todo.RENEW} <= set(retired.todo(now + timedelta(seconds=660), boottime_s + 660))


def test_the_disk_is_looked_at_every_half_minute() -> None:
    assert Todo.LOOK_AT_DISK not in node().todo(*after(29.9))
    assert Todo.LOOK_AT_DISK in node().todo(*after(30))


def test_it_wakes_for_each_thing_when_that_is_due() -> None:
    """Seconds from pki.NOW. The end of the leaf is 86,100 s away, and everything else is settled."""
    settled = node(renewing=True, looked_s=T0 + 86_095)
    assert settled.wait_s(*after(86_095)) == pytest.approx(5)
    told = replace(settled, told_expired_s=T0 + 85_505)
    assert told.wait_s(*after(86_095)) == pytest.approx(10)
    due_s = (renew_at(HELD) - pki.NOW).total_seconds()
    assert node(looked_s=T0 + due_s - 4).wait_s(*after(due_s - 4)) == pytest.approx(4)
    assert node(Link(earliest_s=T0 + 3)).wait_s(*after(0)) == pytest.approx(3)
    assert node(Link()).dialling(T0 - 28).wait_s(*after(0)) == pytest.approx(2)
    assert node().wait_s(*after(12)) == pytest.approx(18)


@dataclass
class Machine:
    """A node that starts what is due and to which anything happens."""

    state: Running
    wall: datetime = pki.NOW
    boottime_s: float = T0

    def start_what_is_due(self) -> None:
        for todo in self.state.todo(self.wall, self.boottime_s):
            match todo:
                case Todo.DIAL:
                    self.state = self.state.dialling(self.boottime_s)
                case Todo.GIVE_DIAL_UP:
                    self.state = self.state.dial_failed(self.boottime_s, 0.5)
                case Todo.RENEW:
                    self.state = replace(self.state, renewing=True)
                case Todo.TELL_EXPIRED:
                    self.state = replace(self.state, told_expired_s=self.boottime_s)
                case Todo.LOOK_AT_DISK:
                    self.state = replace(self.state, looked_s=self.boottime_s)

    def happen(self, event: tuple[str, float]) -> None:
        name, number = event
        state, fraction = self.state, number % 1
        match name:
            case "time":
                self.boottime_s += number
                self.wall += timedelta(seconds=number)
            case "step":
                self.wall += timedelta(seconds=(number - 50_000) * 1000)
            case "welcome" if state.link.dialling:
                server_time = pki.NOW + timedelta(seconds=(number - 50_000) * 100)
                self.state = state.welcomed(server_time, self.boottime_s)
            case "dial failed" if state.link.dialling:
                self.state = state.dial_failed(self.boottime_s, fraction, number if number > 50_000 else None)
            case "session ended" if state.link.up:
                self.state = state.session_ended(self.boottime_s, fraction)
            case "renewed" if state.renewing:
                now = state.now(self.wall, self.boottime_s)
                self.state = state.renewed(successor(state.leaf, now), now, self.boottime_s)
            case "not renewed" if state.renewing:
                self.state = state.not_renewed(
                    self.wall, self.boottime_s, fraction, number if number > 50_000 else None
                )
            case "renew now":
                self.state = state.told_to_renew(self.boottime_s)


NAMES = ("time", "step", "welcome", "dial failed", "session ended", "renewed", "not renewed", "renew now")
histories = st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 100_000)), max_size=25)


@few
@given(histories)
def test_property_it_never_spins_and_never_waits_long(history: list[tuple[str, float]]) -> None:
    machine = Machine(node(Link()))
    for event in history:
        machine.happen(event)
        # A dial that is given up is dialled again after its wait: one pass starts all there is.
        machine.start_what_is_due()
        assert machine.state.todo(machine.wall, machine.boottime_s) == ()
        assert 0 < machine.state.wait_s(machine.wall, machine.boottime_s) <= LOOK_EVERY_S


@few
@given(histories, st.floats(0.001, 0.999))
def test_property_nothing_falls_due_while_it_waits(history: list[tuple[str, float]], part: float) -> None:
    machine = Machine(node(Link()))
    for event in history:
        machine.happen(event)
        machine.start_what_is_due()
        waited_s = machine.state.wait_s(machine.wall, machine.boottime_s) * part - 1e-5
        if waited_s > 0:
            later = machine.wall + timedelta(seconds=waited_s), machine.boottime_s + waited_s
            assert machine.state.todo(*later) == ()


@few
@given(histories)
def test_property_what_it_waits_for_is_there_when_it_wakes(history: list[tuple[str, float]]) -> None:
    machine = Machine(node(Link()))
    for event in history:
        machine.happen(event)
        machine.start_what_is_due()
        wait_s = machine.state.wait_s(machine.wall, machine.boottime_s) + 1e-4
        later = machine.wall + timedelta(seconds=wait_s), machine.boottime_s + wait_s
        assert machine.state.todo(*later) != ()


@pytest.mark.parametrize("wall", [pki.NOW - 9000 * DAY, pki.NOW, pki.NOW + 9000 * DAY])
def test_modelled_a_clock_12_hours_slow_and_any_other_renews_at_60_to_65_percent(wall: datetime) -> None:
    """Decision 13: with the wall clock, or the later of it and the mark, a clock 12 h slow renews at 26.4 h."""
    for slow in (timedelta(hours=12), timedelta(0)):
        running = replace(node(Link()), held_s=T0).welcomed(HELD.not_before, T0)
        seconds = 0.0
        while Todo.RENEW not in running.todo(wall - slow + timedelta(seconds=seconds), T0 + seconds):
            seconds += 30
        assert 14.4 <= seconds / 3600 <= 15.6 + 30 / 3600
