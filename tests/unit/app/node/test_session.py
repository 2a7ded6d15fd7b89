"""A running node's session: dialled for ever, and what a Welcome leaves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bcd.domain.model.datadir import IDENTITY
from bcd.domain.model.failures import IdentityDead
from bcd.ports.gateway import Bundle, Ended, RenewNow, Revoked, Welcome
from bcd.protocol.files import identity_json
from tests.fakes import pki
from tests.fakes.gateway import BUNDLE, MemoryConnection
from tests.fakes.running_node import HOUR_S, RENEWS_S, MemoryJournal, World


def test_a_node_dials_says_hello_and_tells_what_it_heard() -> None:
    world = World().run(60)
    (connection,) = world.gateway.connections
    assert connection.hello is not None
    assert (connection.hello.journal_id, connection.hello.node_key) == (world.journal.journal_id, "file")
    assert (connection.hello.boot_id, connection.hello.daemon_version) == ("boot", "0.0.0-test")
    assert world.told("session up") == [{"server_time": pki.NOW}]
    assert world.journal.sessions == ["up"]
    assert world.journal.server_time == pki.NOW
    assert connection.closed


def test_a_session_that_ends_is_dialled_again_for_ever() -> None:
    world = World()
    for hour in range(1, 20):
        world.at(hour * HOUR_S, lambda: world.gateway.say(Ended("the gateway ended the session")))
    world.at(19.5 * HOUR_S, lambda: world.gateway.session)
    world.run(20 * HOUR_S)
    assert len(world.told("session ended")) == 19


def test_a_gateway_that_is_away_is_dialled_with_backoff_until_it_is_there() -> None:
    world = World()
    world.gateway.refuse()
    world.at(5 * HOUR_S, world.gateway.accept)
    world.at(5 * HOUR_S + 601, lambda: world.gateway.session)
    world.run(6 * HOUR_S)
    failed = world.told("no session")
    assert 25 < len(failed) < 60
    assert failed[0] == {"why": "connection refused", "attempt": 1, "next_in_s": 1.5}
    assert failed[-1]["next_in_s"] == 450.0
    assert world.journal.sessions[0] == "down: connection refused"


def test_a_welcome_that_comes_before_the_dial_is_known_to_have_worked_counts() -> None:
    """The reader's thread may be the quicker one. The world's gateway always is."""
    world = World()
    world.at(HOUR_S, lambda: world.gateway.session.say(RenewNow("check")))
    world.run(2 * HOUR_S)
    assert world.told("the gateway asks to renew now") == [{"reason": "check"}]
    assert len(world.gateway.connections) == 2


def test_a_second_welcome_on_the_same_session_is_a_later_time_and_no_end_of_it() -> None:
    world = World()
    world.at(60, lambda: world.gateway.session.say(Welcome(world.true, BUNDLE)))
    world.at(120, lambda: world.gateway.session)
    with pytest.raises(IdentityDead):
        world.at(180, lambda: world.gateway.say(Revoked("still heard")))
        world.run(240)
    assert len(world.gateway.connections) == 1


def test_a_gateway_that_takes_hello_and_answers_nothing_is_left_after_half_a_minute() -> None:
    world = World()
    world.gateway.on_hello = lambda connection: None
    world.at(29, lambda: world.gateway.session)
    world.at(31, lambda: (_ for _ in world.gateway.sessions).throw(AssertionError) if world.gateway.sessions else None)
    world.run(120)
    assert world.told("no session")[0]["why"] == "the gateway took Hello and answered nothing"
    assert all(connection.closed for connection in world.gateway.connections)


def test_a_gateway_that_hangs_up_after_its_welcome_is_not_met_every_other_second() -> None:
    world = World()

    def hang_up(connection: MemoryConnection) -> None:
        connection.say(Welcome(world.true, BUNDLE))
        connection.say(Ended("UNAUTHENTICATED", refused=True))

    world.gateway.on_hello = hang_up
    world.run(HOUR_S)
    assert len(world.gateway.connections) < 20


def test_a_gateway_that_ends_sessions_and_asks_not_to_be_called_is_left_alone_for_ten_minutes() -> None:
    world = World()
    world.at(HOUR_S, lambda: world.gateway.say(Ended("draining", never=True)))
    world.at(HOUR_S + 299, lambda: world.gateway.sessions and pytest.fail("too early"))
    world.at(HOUR_S + 601, lambda: world.gateway.session)
    world.run(HOUR_S + 602)
    assert len(world.used("hello")) == 2


def test_a_new_bundle_is_stored_when_it_comes() -> None:
    world = World()
    newer = pki.trust_bundle(version=9).SerializeToString(deterministic=True)
    world.at(60, lambda: world.gateway.say(Bundle(newer)))
    world.run(120)
    assert b'"trustVersion": 9' in world.files[IDENTITY]


def test_the_mark_of_server_times_reaches_journal_and_identity() -> None:
    """Specification: mirrored from the journal at each Welcome."""
    world = World()
    world.true += timedelta(hours=2)
    world.run(60)
    assert world.journal.server_time == pki.NOW + timedelta(hours=2)
    assert b'"serverTime": "2026-09-26T14:00:00Z"' in world.files[IDENTITY]


@pytest.mark.parametrize("lost", ["identity", "journal"])
def test_either_of_the_two_marks_is_enough_at_a_start(lost: str) -> None:
    """A lost journal does not reset it; nor does a lost field. The wall clock is at the image's build date."""
    world = World(journal=MemoryJournal(pki.NOW if lost == "identity" else None))
    if lost == "identity":
        held = identity_json.decode(world.files[IDENTITY])
        world.node.put(IDENTITY, identity_json.encode(replace(held, server_time=None)))
    world.clock.set(datetime(2010, 1, 1, tzinfo=UTC))
    world.gateway.refuse()
    world.run(60)
    # Estimated, so that a log of a machine without a battery can be read.
    assert world.journal.plans[0] > pki.NOW
    assert world.told("next renewal planned")[0]["expiresIn"] == "21h36m0s"


def test_what_is_signed_is_counted_for_each_key() -> None:
    """Field report B48."""
    world = World().run(RENEWS_S + 2 * HOUR_S)
    assert len(world.journal.signatures) == 2
    assert all(count >= 1 for count in world.journal.signatures.values())
