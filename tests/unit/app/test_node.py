"""A running node in a simulated world: its session, its renewals, and the one thing that ends it."""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bcd.adapters.keys.file import FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.app.inbox import Inbox, Stopping
from bcd.app.worker import ThreadWorker
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import IdentityDead, Message, MustJoinAgain, NotJoined, NotThereYet, TryLater
from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import Bundle, Ended, Pair, RenewAnswer, RenewNow, RenewQuestion, Retired, Revoked, Welcome
from bcd.protocol.files import identity_json
from tests.fakes import pki
from tests.fakes.disk_changes import Create, Rename, Unlink
from tests.fakes.gateway import BUNDLE, REFUSED, MemoryConnection
from tests.fakes.joining import Recorded
from tests.fakes.memory_node import PATH, MemoryNode, record
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys
from tests.fakes.running_node import MemoryJournal, MemorySupervisor, World, WorldInbox

HOUR_S = 3600.0
# The first renewal of a world's node, after its beginning: 60 to 65 % less the 10 % that are over by then.
RENEWS_S = 0.55 * 24 * HOUR_S
GOES_ON = (
    Ended("UNAUTHENTICATED", refused=True),
    Ended("PERMISSION_DENIED", refused=True),
    Ended("UNKNOWN: internal"),
    Ended("UNIMPLEMENTED"),
    Ended("the server's certificate is for another host name", refused=True),
    Ended("UNAVAILABLE", pushback_s=300.0),
    Ended("RESOURCE_EXHAUSTED", never=True),
)
names = [ended.why for ended in GOES_ON]


def changes(world: World) -> int:
    return sum(isinstance(change, Create | Rename | Unlink) for change in world.node.disk.trace)


# ---- the session


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


# ---- renewal


def test_a_renewal_is_followed_by_a_dial_with_the_new_pair_at_once() -> None:
    world = World().run(RENEWS_S + 1.2 * HOUR_S)
    assert world.leaf != world.first
    assert world.used("renew") == [world.first]
    assert world.used("hello") == [world.first, world.leaf]
    kinds = [how for how, _ in world.gateway.used]
    assert kinds == ["hello", "renew", "hello"]
    first = world.gateway.connections[0]
    assert first.asked
    assert first.closed
    assert FileKeys().open(world.files[KEY]).spki == world.leaf.spki  # type: ignore[union-attr]


def test_b26_the_plan_is_logged_and_in_the_journal_before_it_is_carried_out() -> None:
    """Field report B26."""
    world = World()
    plans: list[object] = []
    world.at(60, lambda: plans.append(world.told("next renewal planned")[-1]["at"]))
    world.run(RENEWS_S + 1.2 * HOUR_S)
    renewed_at = next(at for at, failures, error in world.journal.attempts)
    assert plans[0] == world.journal.plans[0]
    assert abs((renewed_at - world.journal.plans[0]).total_seconds()) < 1


def test_the_old_session_stays_up_until_the_new_one_is_welcome_and_nothing_is_sent_on_it_after_that() -> None:
    world = World()
    seen: list[bool] = []

    def slow(connection: MemoryConnection) -> None:
        if connection is not world.gateway.connections[0]:
            seen.append(world.gateway.connections[-2].closed)
        world.gateway.welcome(connection)

    world.gateway.on_hello = slow
    world.at(RENEWS_S + 2 * HOUR_S, lambda: world.gateway.say(RenewNow("again")))
    world.run(RENEWS_S + 3 * HOUR_S)
    assert seen == [False, False]
    order = [leaf.not_before for _, leaf in world.gateway.used]
    assert order == sorted(order)


def test_a_dial_with_the_old_pair_that_is_still_under_way_is_dropped_before_the_new_pair_is_used() -> None:
    world = World()
    world.held_up.add("renewal")
    late: list[bool] = []

    def only_new(connection: MemoryConnection) -> None:
        if connection.pair.leaf != world.first:
            late.extend(one.closed for one in world.gateway.connections if one.pair.leaf == world.first)
            world.gateway.welcome(connection)

    world.at(60, lambda: world.gateway.say(RenewNow("now")))
    world.at(70, lambda: setattr(world.gateway, "on_hello", only_new))
    world.at(70, lambda: world.gateway.say(Ended("bye")))
    # The dial after that hangs after its Hello, while the renewal, on a connection of its own, works.
    world.at(80, world.release)
    world.run(90)
    assert world.used("hello") == [world.first, world.first, world.leaf]
    assert late == [True, True, True]


def test_a_renewal_is_never_asked_for_on_a_session_with_the_pair_before() -> None:
    world = World()

    def only_old(pair: Pair) -> Ended | None:
        return None if pair.leaf == world.first else REFUSED

    world.at(59, lambda: setattr(world.gateway, "connects", only_old))
    world.at(60, lambda: world.gateway.say(RenewNow("now")))
    world.at(700, lambda: world.gateway.say(RenewNow("again")))
    world.run(710)
    assert world.used("renew") == [world.first]
    assert world.told("renewal failed")[0]["why"] == "connection refused"


def test_dials_that_queue_up_behind_one_that_hangs_say_one_hello_between_them() -> None:
    """A name server that does not answer holds the thread that dials; each dial is given up after half a minute."""
    world = World()
    world.held_up.add("dial")
    world.at(HOUR_S, world.release)
    world.run(HOUR_S + 60)
    assert len(world.used("hello")) <= 1
    assert len(world.gateway.connections) <= 2


def test_the_old_key_is_released_five_minutes_after_a_renewal() -> None:
    world = World()
    world.at(60, lambda: world.gateway.say(RenewNow("now")))
    world.at(60 + 299, lambda: world.told("the old key is released") and pytest.fail("too early"))
    world.run(60 + 340)
    assert world.told("the old key is released") == [{}]


def test_a_renew_now_is_honoured_once_in_ten_minutes() -> None:
    world = World()
    for second in range(60, 600, 60):
        world.at(second, lambda: world.gateway.say(RenewNow("again")))
    world.run(650)
    assert len(world.used("renew")) == 1


@pytest.mark.parametrize("ended", GOES_ON, ids=names)
def test_b61_a_renewal_that_is_refused_is_retried_and_the_session_is_kept(ended: Ended) -> None:
    """Field report B61."""
    world = World()
    world.gateway.answer(ended)
    world.at(23 * HOUR_S * 0.9, lambda: world.gateway.session)
    world.run(23 * HOUR_S * 0.9 + 10)
    failed = world.told("renewal failed")
    assert [fields["attempt"] for fields in failed] == list(range(1, len(failed) + 1))
    assert all(fields["why"] == ended.why and "expiresIn" in fields for fields in failed)
    assert world.used("hello") == [world.first]
    assert world.leaf == world.first
    way_back = "if this lasts: bcd join --reset --yes, then bcd join"
    assert all(fields.get("wayBack") == (way_back if ended.refused else None) for fields in failed)
    if ended.refused:
        assert list(failed[0])[-1] == "wayBack"
    assert world.journal.attempts[-1][1:] == (len(failed), ended.why)


@pytest.mark.parametrize("ended", GOES_ON, ids=names)
def test_b61_a_session_that_is_refused_is_dialled_again_and_never_ends_the_node(ended: Ended) -> None:
    world = World()
    world.gateway.welcome_with(ended)
    world.at(2 * HOUR_S, world.gateway.accept)
    world.at(3 * HOUR_S, lambda: world.gateway.session)
    world.run(3 * HOUR_S + 10)
    failed = world.told("no session")
    assert failed
    assert all(("wayBack" in fields) == ended.refused for fields in failed)


def test_after_a_failure_the_same_request_is_sent_again() -> None:
    world = World()
    world.gateway.answer(Ended("UNAVAILABLE"))
    world.at(RENEWS_S + 1.5 * HOUR_S, world.gateway.accept)
    world.run(RENEWS_S + 2.5 * HOUR_S)
    asked = [question.csr for connection in world.gateway.connections for question in connection.asked]
    assert len(asked) > 3
    assert len(set(asked)) == 1
    assert world.leaf != world.first


def test_a_renewal_without_a_session_makes_a_connection_of_its_own_and_closes_it() -> None:
    world = World()
    world.gateway.on_hello = lambda connection: connection.say(REFUSED)
    world.run(RENEWS_S + 2 * HOUR_S)
    assert world.leaf != world.first
    assert all(connection.closed for connection in world.gateway.connections)


def test_a_worker_that_fails_costs_an_attempt_only() -> None:
    world = World()

    def broken(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        raise ZeroDivisionError("a defect")

    world.gateway.on_renew = broken
    world.at(RENEWS_S + 1.5 * HOUR_S, world.gateway.accept)
    world.run(RENEWS_S + 2.5 * HOUR_S)
    assert world.told("renewal failed")[0]["why"] == "internal error (ZeroDivisionError: a defect)"
    assert world.leaf != world.first


def test_a_dial_that_fails_in_the_middle_costs_an_attempt_only_and_leaves_no_connection() -> None:
    world = World()

    def broken(connection: MemoryConnection) -> None:
        raise ZeroDivisionError("a defect")

    world.gateway.on_hello = broken
    world.at(600, world.gateway.accept)
    world.at(HOUR_S, lambda: world.gateway.session)
    world.run(HOUR_S + 1)
    assert world.told("no session")[0]["why"] == "internal error (ZeroDivisionError: a defect)"
    assert all(connection.closed for connection in world.gateway.connections)


def test_a_full_disk_keeps_the_session_and_the_old_pair() -> None:
    world = World()
    world.at(60, lambda: setattr(world.node.disk, "free_bytes", 0))
    world.at(RENEWS_S + 1.5 * HOUR_S, lambda: setattr(world.node.disk, "free_bytes", 1 << 20))
    world.run(RENEWS_S + 2.5 * HOUR_S)
    assert str(world.told("renewal failed")[0]["why"]).startswith(f"No space left on device: {PATH}")
    assert world.leaf != world.first
    assert len(world.told("session up")) == 2


# ---- expiry


def test_an_expired_certificate_is_told_every_ten_minutes_and_the_node_stays_up() -> None:
    """Decision 15."""
    world = World()
    world.gateway.refuse()
    world.run(25.6 * HOUR_S)
    told = world.told("the certificate expired, or the clock is wrong; the node stays up and keeps asking")
    assert 23 <= len(told) <= 25
    assert told[0]["notAfter"] == world.first.not_after
    assert told[0]["serverTimeMark"] == pki.NOW
    assert told[0]["wayBack"] == "bcd join --reset --yes, then bcd join"
    first_told = world.events.lines.index(
        ("error", "the certificate expired, or the clock is wrong; the node stays up and keeps asking", told[0])
    )
    after = [text for _, text, _ in world.events.lines[first_told:]]
    assert "no session" in after
    assert "renewal failed" in after


def test_b21_a_clock_a_year_ahead_and_back_is_told_and_needs_no_restart() -> None:
    """Field report B21. Before first contact: after it, the wall clock is not asked at all."""
    world = World()
    year = timedelta(days=365)
    world.gateway.refuse()
    world.at(HOUR_S, lambda: world.step_wall(year))
    world.at(2 * HOUR_S, lambda: world.step_wall(-year))
    world.at(2 * HOUR_S, world.gateway.accept)
    world.run(RENEWS_S + 2 * HOUR_S)
    told = world.told("the certificate expired, or the clock is wrong; the node stays up and keeps asking")
    assert told
    assert (told[0]["clock"], told[0]["serverTimeMark"]) == (pki.NOW + year + timedelta(hours=1), pki.NOW)
    assert world.told("session up")
    assert len(world.used("renew")) == 1
    assert world.leaf != world.first


# ---- the end


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


# ---- the disk


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


# ---- stopping, and whoever watches


def test_a_stop_ends_it_in_good_order() -> None:
    world = World().run(60)
    assert world.supervisor.lines[-1] == "STOPPING=1"
    assert world.journal.closed == 1
    assert all(connection.closed for connection in world.gateway.connections)


def test_a_stop_is_heard_while_both_workers_hang() -> None:
    world = World()
    world.held_up |= {"dial", "renewal", "look at the disk", "storing what the gateway told"}
    world.run(60)
    assert world.supervisor.lines[-1] == "STOPPING=1"


def test_a_stop_is_heard_within_a_second_while_real_threads_hang() -> None:
    world = World(make_worker=ThreadWorker)
    world.inbox = Inbox()
    dialling, let_go = threading.Event(), threading.Event()

    def hang(pair: Pair) -> Ended | None:
        dialling.set()
        let_go.wait(60)
        return None

    world.gateway.connects = hang
    stopped: list[float] = []

    def stop() -> None:
        dialling.wait(60)
        stopped.append(time.monotonic())
        world.inbox.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        world.start()
        assert time.monotonic() - stopped[0] < 1
    finally:
        let_go.set()
        thread.join()
    assert world.supervisor.lines[-1] == "STOPPING=1"
    # What came of the dial after that is closed, and says nothing to anybody.
    for one in threading.enumerate():
        if one.name.startswith("bcd-"):
            one.join(10)
    (connection,) = world.gateway.connections
    assert connection.closed
    assert world.gateway.used == []


def test_a_stop_is_heard_while_another_process_has_the_directory() -> None:
    world = World()
    disk = world.node.disk
    other = disk.open_directory(PATH)
    assert disk.try_lock(other)
    world.clock.on_wait = world.inbox.stop
    before = world.clock.boottime_s()
    world.start()
    assert world.clock.boottime_s() - before <= 1.1
    assert world.gateway.connections == []


def test_a_directory_that_stays_in_use_is_try_later_after_45_seconds() -> None:
    world = World()
    other = world.node.disk.open_directory(PATH)
    assert world.node.disk.try_lock(other)
    before = world.clock.boottime_s()
    with pytest.raises(TryLater) as later:
        world.start()
    assert later.value.message is Message.LOCKED
    assert 44 <= world.clock.boottime_s() - before <= 47


def test_the_supervisor_hears_that_it_is_ready_and_how_it_is() -> None:
    world = World()
    world.at(30, lambda: world.gateway.say(Ended("bye")))
    world.at(29, world.gateway.refuse)
    world.run(40)
    lines = world.supervisor.lines
    until = "certificate until 2026-09-27T09:36:00Z"
    assert lines.count("READY=1") == 1
    ready = lines.index("READY=1")
    assert f"STATUS=session up; {until}" in lines[ready:]
    assert lines[-2] == f"STATUS=no session; {until}"


def test_a_watchdog_hears_of_it_twice_as_often_as_it_asks() -> None:
    world = World(supervisor=MemorySupervisor(watchdog_s=10.0))
    times: list[float] = []
    tell = world.supervisor.tell

    def timed(*lines: str) -> None:
        if "WATCHDOG=1" in lines:
            times.append(world.clock.boottime_s())
        tell(*lines)

    world.supervisor.tell = timed  # type: ignore[method-assign]
    world.run(300)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) <= 5.0
    assert len(times) > 50


def test_without_a_watchdog_nobody_is_told() -> None:
    assert "WATCHDOG=1" not in World().run(300).supervisor.lines


@pytest.mark.parametrize(
    "server_time", [datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_no_time_a_gateway_tells_ends_the_node(server_time: datetime) -> None:
    world = World()
    world.gateway.on_hello = lambda connection: connection.say(Welcome(server_time, BUNDLE))
    world.at(3 * HOUR_S, lambda: world.gateway.session)
    world.run(3 * HOUR_S + 1)
    assert len(world.used("renew")) < 40


# ---- the TPM


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
