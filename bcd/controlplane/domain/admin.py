"""What the operator may ask, and what he is shown. Each is a value, so that it can cross the admin socket."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bcd.controlplane.domain.admin_eks import EkCommand


@dataclass(frozen=True)
class CreateToken:
    """`ttl_s` in seconds."""

    site: str
    role: str
    node_id: str | None
    allow_reclaim: bool
    require_approval: bool
    ttl_s: int
    uses: int


@dataclass(frozen=True)
class ListTokens:
    pass


@dataclass(frozen=True)
class RevokeToken:
    id: str


@dataclass(frozen=True)
class ListNodes:
    pass


@dataclass(frozen=True)
class ShowNode:
    id: str


@dataclass(frozen=True)
class RevokeNode:
    id: str
    reason: str


@dataclass(frozen=True)
class DeleteNode:
    id: str


@dataclass(frozen=True)
class AskRenewal:
    """Of one node, or without `id` of all."""

    id: str | None
    reason: str


@dataclass(frozen=True)
class ShowTrust:
    pass


@dataclass(frozen=True)
class AddRoot:
    """`spki` is the key's DER in hexadecimal."""

    spki: str


@dataclass(frozen=True)
class RemoveRoot:
    pin: str


@dataclass(frozen=True)
class AddApprover:
    """`spki` as in AddRoot."""

    name: str
    spki: str


@dataclass(frozen=True)
class RemoveApprover:
    name: str


@dataclass(frozen=True)
class Restored:
    """A backup was put back. `bundle_above`: a bundle version that some node is known to hold, or 0."""

    bundle_above: int


@dataclass(frozen=True)
class ListRefusals:
    limit: int


@dataclass(frozen=True)
class ShowRefusal:
    id: str


@dataclass(frozen=True)
class TailAudit:
    """The last `limit` events, or with `after` those behind that place."""

    limit: int
    after: int | None


@dataclass(frozen=True)
class ListApprovals:
    pass


@dataclass(frozen=True)
class DecideApproval:
    """`site`: where a machine that waits with its TPM is to belong; a token says it for its own."""

    id: str
    approve: bool
    site: str | None = None


Command = (
    CreateToken
    | ListTokens
    | RevokeToken
    | ListNodes
    | ShowNode
    | RevokeNode
    | DeleteNode
    | AskRenewal
    | ShowTrust
    | AddRoot
    | RemoveRoot
    | AddApprover
    | RemoveApprover
    | Restored
    | ListRefusals
    | ShowRefusal
    | TailAudit
    | ListApprovals
    | DecideApproval
    | EkCommand
)


@dataclass(frozen=True)
class TokenView:
    """`state`: usable, used-up, expired or revoked."""

    id: str
    site: str
    role: str
    node_id: str | None
    allow_reclaim: bool
    require_approval: bool
    state: str
    uses: int
    used: int
    created: datetime
    expires: datetime
    revoked: datetime | None


@dataclass(frozen=True)
class NewToken:
    """`token` is the credential itself; it exists nowhere else."""

    token: str
    id: str
    expires: datetime

    def __repr__(self) -> str:
        return f"NewToken({self.id})"


@dataclass(frozen=True)
class ClaimsView:
    product_uuid: str
    product_serial: str
    board_serial: str
    chassis_serial: str
    macs: tuple[str, ...]
    gpu_uuids: tuple[str, ...]
    hostname: str
    boot_id: str


@dataclass(frozen=True)
class CertificateView:
    """`key_pin` is the certified key's pin, `first_used_from` the address it was first used from, `reason` why it was
    revoked."""

    serial: str
    generation: int
    state: str
    state_since: datetime
    key_pin: str
    not_before: datetime
    not_after: datetime
    first_used: datetime | None
    first_used_from: str
    reason: str


@dataclass(frozen=True)
class NodeView:
    """`certificate` is the state of its newest certificate, `not_after` its end. `renewal_asked`: since when a renewal
    is asked for that has not come. `node_key`: `tpm` when the key it joined with was certified to be in one, else
    `unattested`; `ek` as the allow-list names it, `ak_name` hexadecimal, each empty without one."""

    id: str
    site: str
    role: str
    spiffe_id: str
    generation: int
    hostname: str
    daemon_version: str
    token_id: str
    created: datetime
    joined: datetime
    certificate: str
    not_after: datetime | None
    session: bool
    last_seen: datetime | None
    renewal_asked: datetime | None
    node_key: str
    ek: str
    ak_name: str


@dataclass(frozen=True)
class NodeDetail:
    node: NodeView
    claims: ClaimsView
    certificates: tuple[CertificateView, ...]


@dataclass(frozen=True)
class RevokedView:
    """`generation` is the node's now; certificates of a lower one are dead. `ek`: the endorsement key by which its
    machine may join again; empty when there is none, or it is denied."""

    id: str
    generation: int
    ek: str = ""


@dataclass(frozen=True)
class DeletedView:
    """`ek` as in RevokedView."""

    id: str
    ek: str = ""


@dataclass(frozen=True)
class RenewalsView:
    """How many nodes are asked, and how many of them have a session and hear of it now."""

    nodes: int
    sessions: int


@dataclass(frozen=True)
class ApproverView:
    name: str
    key_pin: str


@dataclass(frozen=True)
class TrustView:
    """The trust bundle every node is given. `command_roots` are pins."""

    version: int
    command_roots: tuple[str, ...]
    approvers: tuple[ApproverView, ...]
    quorum: int


@dataclass(frozen=True)
class RestoredView:
    at: datetime
    bundle_version: int


@dataclass(frozen=True)
class RefusalView:
    id: str
    at: datetime
    reason: str
    detail: str
    way_back: str
    source: str
    attestor: str
    token_id: str
    claims: ClaimsView


@dataclass(frozen=True)
class EventView:
    seq: int
    at: datetime
    actor: str
    kind: str
    detail: Mapping[str, str | int | bool]


@dataclass(frozen=True)
class ApprovalView:
    """`key_pin` is the pin of the CSR's key; for a machine that waits with its TPM it is empty, and `ek` says which, as
    the allow-list does. `beside_denied`: a key that is denied, whose TPM showed `ek` too; empty when there is none.
    `state`: pending, approved, denied or lapsed."""

    id: str
    state: str
    asked: datetime
    decided: datetime | None
    token_id: str
    site: str
    role: str
    node_id: str | None
    reclaims: bool
    key_pin: str
    source: str
    daemon_version: str
    claims: ClaimsView
    ek: str
    beside_denied: str


@dataclass(frozen=True)
class InitView:
    """What `init` made."""

    dir: str
    trust_domain: str
    hosts: tuple[str, ...]
    leaf_lifetime: str


@dataclass(frozen=True)
class NodeConfigView:
    """What `node-config` wrote, and the pins in it."""

    files: tuple[str, ...]
    join: str
    gateway: str
    serving_ca_spki_pin: str
    join_encryption_key_pin: str
    join_signing_key_pin: str
