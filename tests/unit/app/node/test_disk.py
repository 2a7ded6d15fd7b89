"""What a running node finds on its disk: at its start, and when somebody else has changed it."""

import pytest

from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import MustJoinAgain, NotJoined
from bcd.ports.gateway import Bundle
from tests.fakes import pki
from tests.fakes.memory_node import record
from tests.fakes.running_node import World


def test_an_identity_that_changes_on_disk_is_loaded_and_nothing_written_over_it() -> None:
    world = World()
    world.held_up.add("look at the disk")
    world.at(60, world.put_another_identity)
    # What a gateway said to the old identity is not written into the new one.
    world.at(61, lambda: world.gateway.say(Bundle(pki.trust_bundle(version=9).SerializeToString())))
    world.run(120)
    assert b'"trustVersion": 3' in world.files[IDENTITY]
    assert world.told("identity changed on disk") == [{}]
    assert world.loads == 2
    assert world.used("hello") == [world.first, world.leaf]


def test_a_reset_while_it_runs_is_noticed_within_half_a_minute_and_ends_as_not_joined() -> None:
    world = World()

    def reset() -> None:
        with world.node.fs.lock(0):
            for name in (KEY, IDENTITY):
                world.node.fs.move_aside(name, f"{name}.reset-20260926T114200Z")

    world.at(60, reset)
    with pytest.raises(NotJoined):
        world.run(60 + 31)
    assert world.files.keys() == {f"{KEY}.reset-20260926T114200Z", f"{IDENTITY}.reset-20260926T114200Z"}


def test_without_an_identity_or_with_another_key_it_does_not_start() -> None:
    world = World()
    with world.node.fs.lock(0):
        world.node.fs.remove(IDENTITY)
    with pytest.raises(NotJoined, match="this node has not joined"):
        world.start()
    world = World()
    world.node.put(KEY, record(1004))
    with pytest.raises(MustJoinAgain, match="the node key does not match"):
        world.start()
    assert world.gateway.connections == []


def test_it_starts_with_the_key_still_in_the_next_keys_place_on_a_read_only_disk() -> None:
    world = World()
    world.node.put(NEXT_KEY, record())
    world.node.put(KEY, record(1004))
    world.node.disk.read_only = True
    world.at(50, lambda: world.gateway.session)
    world.run(60)
    assert world.files[NEXT_KEY] == record()
