"""What a join does with each answer: waits, asks again, gives up, checks."""

from collections.abc import Sequence

import pytest

from bcd.domain.model.backoff import JOIN_ATTEMPTS, join_delay_s
from bcd.domain.model.datadir import IDENTITY, KEY, PENDING
from bcd.domain.model.failures import Message, Refused, TryLater
from bcd.domain.model.joining import Answer, Failed, JoinDenied, Pending
from tests.fakes.joining import ControlPlane, Credential
from tests.fakes.memory_join import STAMP, Answers, begun, failure, good, join, pending
from tests.fakes.memory_node import MemoryNode


def test_a_refusal_is_final_and_its_request_is_set_aside() -> None:
    node, plane, credential = MemoryNode(), ControlPlane(scripted=[JoinDenied("r-77")]), Credential()
    found = failure(node, plane, credential)
    assert isinstance(found, Refused)
    assert "Join refused (refusal id r-77)" in found.text
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}"}
    assert not credential.was_spent
    assert len(plane.sent) == 1


def test_the_join_after_a_refusal_begins_anew_with_the_token_and_another_key() -> None:
    node = MemoryNode()
    refused, plane, credential = Answers(JoinDenied("r-1")), ControlPlane(), Credential()
    failure(node, refused)
    join(node, plane, credential)
    assert credential.taken == 1
    assert plane.sent[0].pending.csr != refused.sent[0].pending.csr
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}", IDENTITY, KEY}


def test_a_second_refusal_in_the_same_second_replaces_nothing() -> None:
    node = MemoryNode()
    for _ in range(2):
        failure(node, Answers(JoinDenied("")))
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}", f"{PENDING}.refused-{STAMP}.1"}


@pytest.mark.parametrize("failures", [0, 1, JOIN_ATTEMPTS - 1, JOIN_ATTEMPTS])
def test_b23_twenty_attempts_are_made_with_longer_and_longer_waits_between_them(failures: int) -> None:
    """Field report B23: they are not burnt in seconds."""
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy")] * failures)
    if failures < JOIN_ATTEMPTS:
        assert not join(node, plane).already
        assert len(plane.sent) == failures + 1
    else:
        found = failure(node, plane)
        assert isinstance(found, TryLater)
        assert "no answer after 20 attempts: busy" in found.text
        assert len(plane.sent) == JOIN_ATTEMPTS
        assert node.files.keys() == {PENDING}
        assert sum(node.clock.waits) > 600
    waited = min(failures, JOIN_ATTEMPTS - 1)
    assert node.clock.waits == [join_delay_s(attempt, 0.5) for attempt in range(1, waited + 1)]
    assert len(node.told("warning")) == waited


@pytest.mark.parametrize("pushback_s", [0.0, 0.25, 7.25, 86400.0])
def test_a_pushback_is_waited_out_exactly_and_counts_as_an_attempt(pushback_s: float) -> None:
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy", pushback_s=pushback_s), Failed("busy")])
    join(node, plane)
    assert node.clock.waits == [pushback_s, join_delay_s(2, 0.5)]


def test_a_server_that_asks_not_to_be_asked_again_is_not() -> None:
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy"), Failed("go away", never=True)])
    found = failure(node, plane)
    assert found.message is Message.NO_RETRY
    assert "go away" in found.text
    assert len(plane.sent) == 2
    assert node.files.keys() == {PENDING}


def test_an_approval_is_written_down_before_it_is_waited_for() -> None:
    node = MemoryNode()
    seen: list[str] = []
    node.clock.on_wait = lambda: seen.append(pending(node).pending_id)
    plane = Answers(Pending("a-1", 5), Pending("a-1", 7), Pending("a-2", 0), good)
    join(node, plane)
    assert seen == ["a-1", "a-1", "a-2"]
    assert [asked.pending.pending_id for asked in plane.sent] == ["", "a-1", "a-1", "a-2"]
    assert len({asked.pending.csr for asked in plane.sent}) == 1
    assert node.clock.waits == [5, 7, 1]
    assert node.files.keys() == {IDENTITY, KEY}


def test_a_join_that_waits_for_approval_goes_on_waiting_after_a_crash() -> None:
    node = begun(Answers(Pending("a-1", 5), Failed("x", never=True)))
    plane = Answers(good)
    join(node, plane, Credential(None))
    assert plane.sent[0].pending.pending_id == "a-1"


def test_while_it_waits_for_approval_failures_are_counted_from_the_last_answer_on() -> None:
    failures: Sequence[Answer] = [Failed("busy")] * (JOIN_ATTEMPTS - 1)
    node = MemoryNode()
    join(node, Answers(*failures, Pending("a-1", 5), *failures, Pending("a-1", 5), *failures, good))
    assert failure(MemoryNode(), Answers(Pending("a-1", 5), *failures, Failed("busy"))).message is Message.GAVE_UP
