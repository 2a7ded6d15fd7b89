"""A running node's renewals: when, over which session, and what one that fails costs."""

import pytest

from bcd.adapters.keys.file import FileKeys
from bcd.domain.model.datadir import KEY
from bcd.ports.gateway import Ended, Pair, RenewAnswer, RenewNow, RenewQuestion
from tests.fakes.gateway import REFUSED, MemoryConnection
from tests.fakes.memory_node import PATH
from tests.fakes.running_node import GOES_ON, HOUR_S, RENEWS_S, World


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


@pytest.mark.parametrize("ended", GOES_ON, ids=lambda ended: ended.why)
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


@pytest.mark.parametrize("ended", GOES_ON, ids=lambda ended: ended.why)
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


def test_the_renewal_after_one_that_was_made_up_for_is_for_another_key() -> None:
    world = World()
    world.gateway.answer(Ended("UNAVAILABLE"))
    world.at(RENEWS_S + 1.5 * HOUR_S, world.gateway.accept)
    world.run(2 * RENEWS_S + 4 * HOUR_S)
    renewals = list(dict.fromkeys(world.used("renew")))
    assert len(renewals) == 2
    assert len({leaf.spki for leaf in (*renewals, world.leaf)}) == 3


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
