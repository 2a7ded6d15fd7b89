"""The one thing that ends a running node for good, and the pair that another one retired."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from bcd.domain.model.datadir import NEXT_KEY
from bcd.domain.model.failures import IdentityDead, Message, TryLater
from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import Ended, Pair, RenewNow, Retired, Revoked
from tests.fakes.gateway import REFUSED, MemoryConnection
from tests.fakes.running_node import HOUR_S, RENEWS_S, World


def revoked_by_notice(world: World) -> None:
    world.at(HOUR_S, lambda: world.gateway.say(Revoked("operator: stolen")))


def revoked_at_hello(world: World) -> None:
    world.at(HOUR_S - 1, lambda: world.gateway.welcome_with(Revoked("operator: stolen")))
    world.at(HOUR_S, lambda: world.gateway.say(Ended("the gateway ended the session")))


def revoked_at_renewal(world: World) -> None:
    world.at(HOUR_S - 1, lambda: world.gateway.answer(Revoked("operator: stolen")))
    world.at(HOUR_S, lambda: world.gateway.say(RenewNow("now")))


REVOKED = [revoked_by_notice, revoked_at_hello, revoked_at_renewal]


@pytest.mark.parametrize("revoked", REVOKED)
def test_revoked_ends_the_node_with_its_reason_and_changes_nothing(revoked: Callable[[World], None]) -> None:
    world = World()
    revoked(world)
    before: dict[str, bytes] = {}
    world.at(HOUR_S - 2, lambda: before.update(world.files))
    with pytest.raises(IdentityDead) as dead:
        world.run(2 * HOUR_S)
    assert dead.value.text == "agent: this node's certificate was revoked"
    assert dead.value.exit == 1
    (told,) = world.told("certificate revoked")
    assert told["reason"] == "operator: stolen"
    assert world.events.lines[-1][:2] == ("error", "certificate revoked")
    assert {name: data for name, data in world.files.items() if name != NEXT_KEY} == before
    # A key being certified may lie there, as it lay before the answer: nothing is removed either.
    assert (NEXT_KEY in world.files) == (revoked is revoked_at_renewal)
    assert all(connection.closed for connection in world.gateway.connections)
    assert world.journal.sessions[-1] == "revoked: operator: stolen"
    assert world.journal.closed == 1


@pytest.mark.parametrize("revoked", REVOKED)
def test_after_a_revocation_nothing_is_dialled(revoked: Callable[[World], None]) -> None:
    world = World()
    revoked(world)
    with pytest.raises(IdentityDead):
        world.run(2 * HOUR_S)
    used = list(world.gateway.used)
    assert used[-1][1] == world.first
    assert world.inbox.get(600.0) is None
    assert world.gateway.used == used


@pytest.mark.parametrize("revoked", REVOKED)
def test_revoked_with_another_identity_on_disk_by_then_is_try_later(revoked: Callable[[World], None]) -> None:
    world = World()
    revoked(world)
    world.at(HOUR_S - 0.5, world.put_another_identity)
    world.held_up.add("look at the disk")
    if revoked is revoked_at_renewal:
        # The renewal finds the other identity before it asks, and the node loads that.
        world.run(2 * HOUR_S)
        assert world.told("identity changed on disk") == [{}]
        return
    with pytest.raises(TryLater) as later:
        world.run(2 * HOUR_S)
    assert later.value.message is Message.ANOTHER_LEAF
    assert later.value.exit == 75
    assert world.told("certificate revoked") == []


def test_a_notice_for_the_replaced_certificate_leaves_the_new_one_to_be_judged_by_itself() -> None:
    """On the old session, between a renewal and the new pair's first Welcome."""
    world = World()

    def only_old(pair: Pair) -> Ended | None:
        return None if pair.leaf == world.first else REFUSED

    world.at(59, lambda: setattr(world.gateway, "connects", only_old))
    world.at(60, lambda: world.gateway.say(RenewNow("now")))
    world.at(70, lambda: world.gateway.say(Revoked("clone-suspected")))
    world.at(80, world.gateway.accept)
    world.at(600, lambda: world.gateway.session)
    world.run(601)
    assert world.leaf != world.first


# ---- retired


def test_a_retired_pair_is_not_used_again_before_it_can_be_judged() -> None:
    """Protocol: its use is no verdict for 10 minutes. The machine was put back from a snapshot, past its renewal."""
    world = World()
    world.gateway.on_hello = lambda connection: connection.say(Retired())
    world.gateway.answer(Retired())
    world.clock.forward(RENEWS_S + 2 * HOUR_S)
    world.true += timedelta(seconds=RENEWS_S + 2 * HOUR_S)
    world.run(3 * HOUR_S)
    assert len(world.gateway.used) <= 2 + 2 * 3 * 6
    assert (
        len(
            world.told(
                "this certificate was replaced by another, which is not on this disk: is there a copy of this node?"
            )
        )
        >= 10
    )


def test_retired_with_the_successor_on_disk_goes_on_with_that() -> None:
    """Another process renewed."""
    world = World()
    other: list[Leaf] = []
    world.held_up.add("look at the disk")
    world.at(60, lambda: other.append(world.put_another_identity()))
    world.at(61, lambda: world.gateway.say(Retired()))
    world.at(70, lambda: world.gateway.session)
    world.run(80)
    assert world.used("hello") == [world.first, other[0]]
    assert world.loads == 2


def test_retired_on_the_old_session_after_a_renewal_is_the_end_of_that_session_alone() -> None:
    world = World()

    def new_retires_old(connection: MemoryConnection) -> None:
        for session in world.gateway.sessions:
            if session is not connection:
                session.say(Retired())
        world.gateway.welcome(connection)

    world.gateway.on_hello = new_retires_old
    world.run(RENEWS_S + 2 * HOUR_S)
    assert world.loads == 1
    assert world.used("hello") == [world.first, world.leaf]
