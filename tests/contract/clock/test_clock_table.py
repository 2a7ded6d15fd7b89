"""The clock table: whatever the clocks do, no renewal is missed and none is stormed (decisions 13 and 14)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bcd.domain.model.datadir import IDENTITY
from bcd.ports.gateway import Ended, Welcome
from bcd.protocol.files import identity_json
from tests.contract.clock.table import A_BACKOFF, A_LOOK, Table
from tests.fakes.gateway import BUNDLE
from tests.fakes.running_node import World

DAY = timedelta(days=1)
YEAR = timedelta(days=365)
FOUR_HOURS = timedelta(hours=4)
EXPIRED = "the certificate expired, or the clock is wrong; the node stays up and keeps asking"
SIZES = {
    "1 s": timedelta(seconds=1),
    "1 min": timedelta(minutes=1),
    "1 h": timedelta(hours=1),
    "1 day": DAY,
    "1 y": YEAR,
    "10 y": 10 * YEAR,
}
STEPS = {f"{sign}{name}": size * (1 if sign == "+" else -1) for name, size in SIZES.items() for sign in "+-"}
# Parts of the first leaf's life, a tenth of which is over as the world begins: early, before, at and after its renewal.
MOMENTS = (0.05, 0.3, 0.52, 0.7, 1.1)


def table(lifetime: timedelta = FOUR_HOURS) -> Table:
    return Table(World(lifetime=lifetime))


def seconds(lifetime: timedelta, part: float) -> float:
    return lifetime.total_seconds() * part


# ---- the wall clock


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_of_the_wall_clock_after_contact_changes_nothing(step: timedelta, moment: float) -> None:
    found = table()
    found.world.at(seconds(FOUR_HOURS, moment), lambda: found.world.step_wall(step))
    found.world.run(seconds(FOUR_HOURS, 2.5))
    assert len(found.renewed) == 4
    assert len(found.asked) == 4
    found.each_at_its_time()
    found.no_storm()
    found.none_missed()
    assert found.world.told(EXPIRED) == []


@pytest.mark.parametrize("contact", [0.3, 0.7])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_of_the_wall_clock_before_contact_is_over_with_the_contact(step: timedelta, contact: float) -> None:
    found = table()
    found.world.gateway.refuse()
    found.world.at(seconds(FOUR_HOURS, 0.1), lambda: found.world.step_wall(step))
    found.world.at(seconds(FOUR_HOURS, contact), found.world.gateway.accept)
    found.world.run(seconds(FOUR_HOURS, 2.5))
    assert 3 <= len(found.renewed) <= 5
    found.no_storm()
    found.none_missed()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_b21_a_step_and_the_step_back_before_contact_need_no_restart(step: timedelta) -> None:
    """Field report B21."""
    found = table()
    found.world.gateway.refuse()
    found.world.at(seconds(FOUR_HOURS, 0.1), lambda: found.world.step_wall(step))
    found.world.at(seconds(FOUR_HOURS, 0.3), lambda: found.world.step_wall(-step))
    found.world.at(seconds(FOUR_HOURS, 0.35), found.world.gateway.accept)
    found.world.run(seconds(FOUR_HOURS, 2.5))
    assert found.world.loads == 1
    assert bool(found.world.told(EXPIRED)) == (step >= DAY)
    found.no_storm()
    found.none_missed()


@pytest.mark.parametrize("every_s", [7.0, 60.0, 1800.0])
def test_a_clock_that_is_stepped_to_and_fro_all_the_time_changes_nothing(every_s: float) -> None:
    found = table()
    ahead = [False]

    def step() -> None:
        found.world.step_wall(-DAY if ahead[0] else DAY)
        ahead[0] = not ahead[0]

    found.world.every(every_s, seconds(FOUR_HOURS, 2.5), step)
    found.world.run(seconds(FOUR_HOURS, 2.5))
    assert len(found.asked) == 4
    found.each_at_its_time()


# ---- boots


@pytest.mark.parametrize("contact", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("mark", [True, False], ids=["with a mark", "without"])
@pytest.mark.parametrize("year", [1970, 2010, 2036])
def test_a_boot_at_another_date_renews_at_its_time_after_contact(year: int, mark: bool, contact: float) -> None:
    """Field report B23."""
    found = table()
    world = found.world
    world.clock.set(datetime(year, 1, 1, tzinfo=UTC))
    if not mark:
        identity = identity_json.decode(world.files[IDENTITY])
        world.node.put(IDENTITY, identity_json.encode(replace(identity, server_time=None)))
    if contact:
        world.gateway.refuse()
        world.at(seconds(FOUR_HOURS, contact), world.gateway.accept)
    world.run(seconds(FOUR_HOURS, 2.5))
    assert 3 <= len(found.renewed) <= 5
    found.no_storm()
    found.none_missed()
    if year < 2026 and contact < 0.5:
        found.each_at_its_time()


def test_modelled_a_clock_12_hours_slow_renews_at_60_to_65_percent() -> None:
    """Decision 13: with the wall clock, or the later of it and the mark, it renews at 26.4 h."""
    found = table(DAY)
    found.world.step_wall(-timedelta(hours=12))
    found.world.run(seconds(DAY, 2))
    found.each_at_its_time()
    (first, *_) = found.renewed
    assert 14.4 <= (first[1] - first[0].not_before) / timedelta(hours=1) <= 15.6 + 65 / 3600


# ---- machines that sleep


CLOCKS = {"boottime counts": (True, True), "only the wall clock moves": (False, True), "no clock moves": (False, False)}


@pytest.mark.parametrize(("boottime", "wall"), CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("part", [0.05, 0.3, 0.54])
@pytest.mark.parametrize("hours", [1, 12])
def test_b19_after_a_sleep_a_renewal_that_was_slept_over_comes_at_the_first_look(
    hours: int, part: float, boottime: bool, wall: bool
) -> None:
    """Field report B19. Suspended (boottime counts), or a paused virtual machine (it does not)."""
    found = table(DAY)
    begin, slept = seconds(DAY, part), timedelta(hours=hours)
    found.world.at(begin, lambda: found.world.suspend(slept.total_seconds(), boottime=boottime, wall=wall))
    found.world.run(seconds(DAY, 2))
    woke = found.world.begin + timedelta(seconds=begin) + slept
    leaf, _, true = found.renewed[0]
    due = leaf.not_before + leaf.lifetime * 0.65
    assert true <= max(due, woke) + A_LOOK
    assert len(found.renewed) >= 2
    found.no_storm()
    found.none_missed()


@pytest.mark.parametrize(("boottime", "wall"), CLOCKS.values(), ids=CLOCKS)
def test_b19_slept_over_the_end_it_is_said_and_the_node_stays_up(boottime: bool, wall: bool) -> None:
    """30 hours of a certificate of 24. Nothing can renew it; the server decides, and the operator is told."""
    found = table(DAY)
    found.world.at(seconds(DAY, 0.3), lambda: found.world.suspend(30 * 3600, boottime=boottime, wall=wall))
    found.world.run(seconds(DAY, 2.5))
    assert found.renewed == []
    found.no_storm()
    assert len(found.world.told("no session")) >= 20
    if boottime:
        # Nobody told the node the time since; it knows all the same.
        assert found.world.told(EXPIRED)[0]["wayBack"] == "bcd join --reset --yes, then bcd join"


# ---- the gateway's clock


def restart_with(world: World, off: timedelta) -> Callable[[], None]:
    def restart() -> None:
        world.gateway_off = off
        world.gateway.say(Ended("the gateway ended the session"))

    return restart


@pytest.mark.parametrize("moment", [0.05, 0.3, 0.52])
@pytest.mark.parametrize("step", [s for s in STEPS.values() if abs(s) <= timedelta(hours=1)], ids=str)
def test_a_step_of_the_gateways_clock_is_followed(step: timedelta, moment: float) -> None:
    """A minute is within what a leaf is dated back; an hour is not, and the old leaf is then too young or older."""
    found = table()
    found.world.at(seconds(FOUR_HOURS, moment), restart_with(found.world, step))
    found.world.run(seconds(FOUR_HOURS, 3))
    assert 3 <= len(found.renewed) <= 5
    found.no_storm()
    found.none_missed()


@pytest.mark.parametrize("moment", [0.05, 0.3, 0.52])
@pytest.mark.parametrize("step", [s for s in STEPS.values() if abs(s) >= DAY], ids=str)
def test_a_gateway_a_day_or_years_off_for_a_while_costs_that_while(step: timedelta, moment: float) -> None:
    """It takes nobody's certificate then, and welcomes nobody."""
    found = table()
    found.world.at(seconds(FOUR_HOURS, moment), restart_with(found.world, step))
    found.world.at(seconds(FOUR_HOURS, moment + 0.15), restart_with(found.world, timedelta(0)))
    found.world.run(seconds(FOUR_HOURS, 3))
    assert len(found.renewed) >= 3
    found.each_at_its_time(A_BACKOFF)
    found.no_storm()
    found.none_missed()


def test_a_gateway_whose_welcomes_are_ahead_of_its_certificates_causes_no_storm() -> None:
    """Two servers behind one name: each Welcome makes a leaf of a minute look old enough to be renewed."""
    found = table()
    world = found.world
    world.gateway.on_hello = lambda connection: connection.say(Welcome(world.true + FOUR_HOURS * 0.8, BUNDLE))
    world.run(seconds(FOUR_HOURS, 2.5))
    assert 4 <= len(found.renewed) <= 10
    found.no_storm()
    found.none_missed()
