"""Joins that a person approves, denies or leaves alone."""

from __future__ import annotations

from bcd.controlplane.domain.approvals import MAX_PENDING_PER_TOKEN, PENDING_FOR
from bcd.controlplane.domain.joining import Waiting
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.joins import METAL, ask, granted, reason
from tests.fakes.controlplane.machine import Machine


def test_an_approval_is_waited_for_and_then_issued(plane: MemoryControlPlane) -> None:
    machine, token = Machine(claims=METAL), plane.token(require_approval=True)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    assert ask(plane, machine, token) == waiting
    (question,) = plane.approvals()
    assert (question.key_pin, question.site, question.claims.hostname) == (machine.pin, "lab", "metal")
    assert question.token_id == token.split("_")[1]
    plane.approve(waiting.id)
    granted(plane, machine, token)
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [1]


def test_an_approval_is_for_one_key(plane: MemoryControlPlane) -> None:
    machine, thief, token = Machine(), Machine(), plane.token(require_approval=True)
    mine, theirs = ask(plane, machine, token), ask(plane, thief, token)
    assert isinstance(mine, Waiting) and isinstance(theirs, Waiting)
    assert mine.id != theirs.id
    plane.approve(mine.id)
    assert isinstance(ask(plane, thief, token), Waiting)
    granted(plane, machine, token)
    assert reason(plane, ask(plane, thief, token)) == "token-used-up"


def test_a_denied_join_is_refused(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    plane.deny(waiting.id)
    assert reason(plane, ask(plane, machine, token)) == "approval-denied"
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [0]


def test_a_question_asked_in_time_outlives_the_token(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True, ttl_s=60)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    plane.clock.pass_(days=3)
    assert reason(plane, ask(plane, Machine(), token)) == "token-expired"
    plane.approve(waiting.id)
    granted(plane, machine, token)


def test_a_question_nobody_answers_lapses(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    ask(plane, machine, token)
    plane.clock.pass_(seconds=PENDING_FOR.total_seconds())
    assert reason(plane, ask(plane, machine, token)) == "approval-lapsed"
    assert plane.approvals()[0].state == "lapsed"


def test_a_token_waits_for_so_many_approvals_and_no_more(plane: MemoryControlPlane) -> None:
    token = plane.token(require_approval=True)
    first = Machine()
    for machine in [first, *(Machine() for _ in range(MAX_PENDING_PER_TOKEN - 1))]:
        assert isinstance(ask(plane, machine, token), Waiting)
    assert reason(plane, ask(plane, Machine(), token)) == "approvals-too-many"
    assert isinstance(ask(plane, first, token), Waiting)


def test_the_longer_a_node_waits_the_rarer_it_asks(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    waits = []
    for _ in range(3):
        waiting = ask(plane, machine, token)
        assert isinstance(waiting, Waiting)
        waits.append(waiting.retry_after_s)
        plane.clock.pass_(minutes=5)
    assert waits == [2, 30, 60]


def test_the_approver_sees_that_a_node_would_come_back(plane: MemoryControlPlane) -> None:
    node = granted(plane, Machine(claims=METAL), plane.token()).leaf.spiffe_id.node
    ask(plane, Machine(claims=METAL), plane.token(allow_reclaim=True, require_approval=True))
    (question,) = plane.approvals()
    assert (question.node_id, question.reclaims) == (node, True)
