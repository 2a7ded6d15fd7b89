"""Joins at a control plane in memory: what a machine is answered, and why it was refused."""

from __future__ import annotations

from typing import Any

from bcd.controlplane.domain.joining import Granted, JoinAnswer, Refused
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, Role
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine

METAL = Claims(
    product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="CN7016", hostname="metal", boot_id="b-1"
)


def ask(plane: MemoryControlPlane, machine: Machine, token: str, **changes: Any) -> JoinAnswer:
    return plane.join(machine.request(plane.recipient, token, **changes))


def granted(plane: MemoryControlPlane, machine: Machine, token: str, **changes: Any) -> Any:
    """The opened answer, checked as a node checks it."""
    answer = ask(plane, machine, token, **changes)
    assert isinstance(answer, Granted), plane.refusals()[0]
    role = Role(changes.get("role", "node"))
    return machine.check(answer.signed, plane.signing_pin, role, changes.get("wanted_node_id", ""))


def reason(plane: MemoryControlPlane, answer: JoinAnswer) -> str:
    """Why it was refused, as the operator finds it by the id the node was given."""
    assert isinstance(answer, Refused)
    row = plane.refusals()[0]
    assert row.id == answer.id
    return row.reason


def state_of(plane: MemoryControlPlane, node: NodeId) -> list[str]:
    return [row.state for row in plane.store.read(lambda r: r.certificates.of_node(node))]
