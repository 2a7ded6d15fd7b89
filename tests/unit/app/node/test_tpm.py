"""A running node whose key is in a TPM, or goes there, or whose TPM answers nothing."""

import itertools

import pytest

from bcd.adapters.keys.tpm import HostKeys
from bcd.app.inbox import Inbox, Stopping
from bcd.domain.model.datadir import KEY, NEXT_KEY
from bcd.domain.model.failures import NotThereYet
from bcd.ports.gateway import Ended, RenewNow
from tests.fakes.joining import Recorded
from tests.fakes.memory_node import MemoryNode, record
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys
from tests.fakes.running_node import HOUR_S, RENEWS_S, World, WorldInbox


def test_it_starts_with_a_next_key_in_a_file_where_the_key_before_is_in_a_tpm_that_cannot_be_asked() -> None:
    """A renewal into a file was cut off before its last rename, and the disk is read-only."""
    held = MemoryTpmKeys()
    world = World(node=MemoryNode(keys=HostKeys(held, Recorded())))
    before = world.node.keys.create().record
    world.node.put(KEY, before)
    world.node.put(NEXT_KEY, record())
    world.node.disk.read_only = True
    held.trouble = LOCKED
    world.run(60)
    assert world.told("session up")
    assert (world.files[KEY], world.files[NEXT_KEY]) == (before, record())


def in_tpm() -> tuple[World, MemoryTpmKeys]:
    """A world whose node has joined with a file key, on a machine with a TPM."""
    held = MemoryTpmKeys()
    return World(node=MemoryNode(keys=HostKeys(held, Recorded()))), held


def test_a_node_with_a_file_key_moves_into_the_tpm_at_its_next_renewal() -> None:
    world, held = in_tpm()
    world.run(RENEWS_S + 2 * HOUR_S)
    assert world.told("renewed")
    assert world.files[KEY].startswith(b"-----BEGIN BCD TPM NODE KEY-----\n")
    assert world.gateway.connections[-1].hello is not None
    assert world.gateway.connections[-1].hello.node_key == "tpm"
    assert len(held.loaded) == 1


def test_a_day_of_renewals_leaves_one_key_loaded() -> None:
    world, held = in_tpm()
    world.run(4 * 24 * HOUR_S)
    assert len(world.told("renewed")) >= 4
    assert len(held.loaded) == 1


def test_a_tpm_that_goes_away_ends_nothing_and_the_renewal_goes_on_trying() -> None:
    world, held = in_tpm()
    world.at(20 * HOUR_S, lambda: setattr(held, "trouble", LOCKED))
    world.run(34 * HOUR_S)
    assert len(world.told("renewed")) == 1
    before = world.leaf
    assert world.told("renewal failed")
    assert LOCKED.text in str(world.told("renewal failed")[-1]["why"])
    assert world.leaf == before


@pytest.mark.parametrize(("after_s", "loads"), [(1.0, True), (29.9, True), (31.0, False)])
def test_b37_a_tpm_that_shows_up_late_in_a_boot_is_waited_for_within_bounds(after_s: float, loads: bool) -> None:
    world, held = in_tpm()
    world.run(RENEWS_S + 2 * HOUR_S)
    world.inbox, world.tpm_wait_s, held.trouble = WorldInbox(world), 30.0, ABSENT
    there_s = world.clock.boottime_s() + after_s

    def look() -> None:
        held.trouble = None if world.clock.boottime_s() >= there_s else ABSENT

    world.clock.on_wait = look
    before = world.files[KEY]
    if loads:
        world.run(60)
        assert world.loads == 2
    else:
        with pytest.raises(NotThereYet, match="nothing was changed"):
            world.run(60)
    assert world.files[KEY] == before
    assert len(world.told("waiting for the TPM")) == 1


def test_a_tpm_that_is_asked_to_let_an_old_key_go_keeps_nobody_waiting() -> None:
    """B39: it may take half a minute. The session ends meanwhile, and there is another."""
    world, held = in_tpm()
    world.at(60, lambda: world.gateway.say(RenewNow("now")))
    world.at(720, lambda: world.gateway.say(RenewNow("now")))
    world.at(800, lambda: world.held_up.add("release"))
    world.at(1100, lambda: world.gateway.say(Ended("the gateway ended the session")))
    world.at(1200, lambda: world.gateway.session)
    world.run(1300)
    assert len(world.told("session ended")) == 1
    # The first was a file; the one in the TPM that was replaced is still there.
    assert len(world.told("the old key is released")) == 1
    assert len(held.loaded) == 2
    world.release()
    assert len(world.told("the old key is released")) == 2
    assert len(held.loaded) == 1


def test_a_stop_is_heard_while_a_tpm_is_asked_that_answers_nothing() -> None:
    """B39: as a signal comes, in the thread that waits for the answer. Nothing is changed, and the lock is free."""
    world, held = in_tpm()
    world.run(RENEWS_S + 2 * HOUR_S)
    before = dict(world.files)
    world.inbox = WorldInbox(world)
    held.while_asked = world.inbox.stop
    world.start()
    assert world.loads == 1
    assert world.files == before
    with world.node.fs.lock(0.0):
        pass


def test_a_stop_breaks_in_once_and_also_when_it_came_before() -> None:
    inbox = Inbox()
    with inbox.interruptible():
        with pytest.raises(Stopping):
            inbox.stop()
        inbox.stop()
    with pytest.raises(Stopping), inbox.interruptible():
        pytest.fail("nothing is begun after a stop")
    inbox.stop()


def test_a_stop_is_heard_while_the_key_is_opened_that_was_loaded() -> None:
    world, held = in_tpm()
    world.run(RENEWS_S + 2 * HOUR_S)
    world.inbox = WorldInbox(world)
    asked = itertools.count()
    held.while_asked = lambda: next(asked) and world.inbox.stop()
    world.start()
    assert world.loads == 2
    assert len(world.told("identity loaded")) == 1, "the first run's"
    assert world.journal.closed


def test_a_stop_is_heard_while_the_tpm_is_waited_for() -> None:
    world, held = in_tpm()
    world.run(RENEWS_S + 2 * HOUR_S)
    world.inbox, world.tpm_wait_s, held.trouble = WorldInbox(world), 30.0, ABSENT
    world.clock.on_wait = world.inbox.stop
    world.start()
    assert world.loads == 1
    assert world.clock.waits[-1] <= 0.5
