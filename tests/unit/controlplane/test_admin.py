"""The operator's commands, in memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bcd.controlplane.domain import admin
from bcd.controlplane.domain.approvals import PENDING_FOR
from bcd.controlplane.domain.failures import Failure, NotPermitted, Usage
from bcd.controlplane.domain.joining import Waiting
from bcd.controlplane.domain.messages import Message
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine


def refused(plane: MemoryControlPlane, command: admin.Command) -> Failure:
    with pytest.raises(Failure) as caught:
        plane.admin(command)
    return caught.value


def waiting(plane: MemoryControlPlane) -> str:
    machine = Machine()
    answer = plane.join(machine.request(plane.recipient, plane.token(require_approval=True)))
    assert isinstance(answer, Waiting)
    return answer.id


def test_a_token_is_kept_as_a_hash(plane: MemoryControlPlane) -> None:
    text = plane.token()
    _, _, secret = text.split("_", 2)
    (row,) = plane.store.read(lambda r: r.tokens.all())
    assert secret not in repr(row)
    made: Any = plane.admin(admin.CreateToken("lab", "node", None, False, False, 60, 1))
    assert made.token not in repr(made)


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl_s": 0},
        {"ttl_s": 90 * 86400 + 1},
        {"uses": 0},
        {"uses": 10_001},
        {"node_id": "n-1", "uses": 2},
        {"site": "a/b"},
        {"role": "admin"},
        {"node_id": ""},
    ],
    ids=str,
)
def test_a_token_that_makes_no_sense_is_not_made(plane: MemoryControlPlane, changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "site": "lab",
        "role": "node",
        "node_id": None,
        "allow_reclaim": False,
        "require_approval": False,
        "ttl_s": 60,
        "uses": 1,
    }
    failure = refused(plane, admin.CreateToken(**(given | changes)))
    assert isinstance(failure, Usage)
    assert not plane.store.read(lambda r: r.tokens.all())


def test_a_token_for_a_node_of_another_site_is_not_made(plane: MemoryControlPlane) -> None:
    plane.join(Machine().request(plane.recipient, plane.token(node_id="n-1")))
    failure = refused(plane, admin.CreateToken("barn", "node", "n-1", False, False, 60, 1))
    assert failure.message is Message.NODE_OF_ANOTHER_SITE


def test_a_tokens_state_is_told(plane: MemoryControlPlane) -> None:
    used, revoked = plane.token(), plane.token()
    plane.token(ttl_s=60)
    plane.join(Machine().request(plane.recipient, used))
    plane.revoke_token(revoked)
    plane.clock.pass_(minutes=1)
    plane.token()
    rows: Any = plane.admin(admin.ListTokens())
    assert sorted(row.state for row in rows) == ["expired", "revoked", "usable", "used-up"]


def test_revoking_twice_is_revoking_once(plane: MemoryControlPlane) -> None:
    token = plane.token().split("_")[1]
    first: Any = plane.admin(admin.RevokeToken(token))
    plane.clock.pass_(minutes=1)
    again: Any = plane.admin(admin.RevokeToken(token))
    assert again.revoked == first.revoked
    kinds = [row.event.kind.value for row in plane.store.read(lambda r: r.audit.latest(10))]
    assert kinds.count("token.revoked") == 1


def test_deciding_twice_the_same_is_once_and_the_other_way_is_refused(plane: MemoryControlPlane) -> None:
    question = waiting(plane)
    plane.approve(question)
    plane.approve(question)
    failure = refused(plane, admin.DecideApproval(question, approve=False))
    assert isinstance(failure, NotPermitted)
    assert "approved" in str(failure)
    kinds = [row.event.kind.value for row in plane.store.read(lambda r: r.audit.latest(10))]
    assert kinds.count("approval.given") == 1
    assert "approval.denied" not in kinds


def test_a_lapsed_question_cannot_be_decided(plane: MemoryControlPlane) -> None:
    question = waiting(plane)
    plane.clock.pass_(seconds=PENDING_FOR.total_seconds())
    assert refused(plane, admin.DecideApproval(question, approve=True)).message is Message.APPROVAL_LAPSED


@pytest.mark.parametrize(
    "command",
    [admin.RevokeToken("x"), admin.ShowNode("x"), admin.ShowRefusal("x"), admin.DecideApproval("x", True)],
    ids=str,
)
def test_what_is_not_there_is_said_with_where_to_look(plane: MemoryControlPlane, command: admin.Command) -> None:
    failure = refused(plane, command)
    assert isinstance(failure, Usage)
    assert " list" in str(failure)


def test_a_node_is_shown_with_its_certificates(plane: MemoryControlPlane) -> None:
    machine = Machine()
    plane.join(machine.request(plane.recipient, plane.token(node_id="n-1")))
    shown: Any = plane.admin(admin.ShowNode("n-1"))
    assert shown.node.spiffe_id == "spiffe://example.test/site/lab/node/n-1"
    assert [row.key_pin for row in shown.certificates] == [machine.pin]
    assert shown.node.not_after == shown.certificates[0].not_after
    assert shown.node.not_after - shown.certificates[0].not_before == timedelta(hours=24)


def test_the_audit_log_is_followed_from_a_place(plane: MemoryControlPlane) -> None:
    plane.token()
    rows: Any = plane.admin(admin.TailAudit(10, None))
    plane.token()
    more: Any = plane.admin(admin.TailAudit(10, rows[-1].seq))
    assert [row.kind for row in rows] == ["store.created", "token.created"]
    assert [row.seq for row in more] == [rows[-1].seq + 1]
