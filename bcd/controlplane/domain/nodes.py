"""Nodes and machines: when two joins come from one machine (decision "known machine": claims are never proof)."""

from dataclasses import dataclass
from datetime import datetime

from bcd.controlplane.domain.ids import TokenId
from bcd.domain.model.claims import Claims, real_serial, real_uuid
from bcd.domain.model.names import NodeId, Role, SiteId

IN_TPM, UNATTESTED = "tpm", "unattested"


@dataclass(frozen=True)
class Node:
    """`generation` counts from 1 and rises with every reclaim and revocation; certificates of another one are dead.

    `renew_asked`: when the operator last asked for a renewal before its time, and `renew_reason` why; a certificate
    issued since then has answered it. `ek`: the endorsement key of a TPM it joined by, as the allow-list names it;
    `ak_name`: the TPM name of the attestation key that certified the key it joined with, None when none did."""

    id: NodeId
    site: SiteId
    role: Role
    generation: int
    machine: str
    claims: Claims
    daemon_version: str
    token_id: TokenId
    created: datetime
    joined: datetime
    last_seen: datetime | None = None
    renew_asked: datetime | None = None
    renew_reason: str = ""
    ek: str = ""
    ak_name: bytes | None = None

    @property
    def node_key(self) -> str:
        """Where its key is, as far as it was proved: a word of the node's own is no proof."""
        return UNATTESTED if self.ak_name is None else IN_TPM


def machine_of(claims: Claims) -> str:
    """What two joins must have in common to be called one machine: product UUID and board serial, both real ones.

    Empty when either is missing or a placeholder: then no other machine is ever taken for this one."""
    uuid, board = real_uuid(claims.product_uuid), real_serial(claims.board_serial)
    return f"{uuid} {board}" if uuid and board else ""
