"""Joins that wait for a person."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bcd.controlplane.domain.ids import ApprovalId, TokenId
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, Role, SiteId

# A question nobody answered for this long is no longer asked; the machine needs a new token.
PENDING_FOR = timedelta(days=7)
# Who holds a token may ask with any number of keys; a person can look at this many.
MAX_PENDING_PER_TOKEN = 16
# The node asks again after a tenth of the time it has waited, within these bounds, in seconds.
RETRY_MIN_S = 2
RETRY_MAX_S = 60

EK_PREFIX = "ek:"


class ApprovalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True)
class Approval:
    """One question, by (credential, key of the CSR), or for a machine that waits with its TPM by the endorsement key.
    `spki_sha256` is what the key's pin shows: the CSR's, or the endorsement key's. Where no token says it, `site` is
    empty until somebody does.

    `node_id` is the node it would be, if that was known when it asked; `reclaims`: that node has joined before."""

    id: ApprovalId
    credential: str
    spki_sha256: bytes
    token_id: TokenId
    site: SiteId
    role: Role
    node_id: NodeId | None
    reclaims: bool
    claims: Claims
    daemon_version: str
    source: str
    asked: datetime
    state: ApprovalState = ApprovalState.PENDING
    decided: datetime | None = None

    @property
    def ek(self) -> str:
        """The endorsement key that waits, as the allow-list names it; empty when a token does."""
        return self.credential.removeprefix(EK_PREFIX) if self.credential.startswith(EK_PREFIX) else ""

    def lapsed(self, now: datetime) -> bool:
        return self.state is ApprovalState.PENDING and now >= self.asked + PENDING_FOR


def retry_after_s(approval: Approval, now: datetime) -> int:
    waited_s = (now - approval.asked).total_seconds()
    return int(min(RETRY_MAX_S, max(RETRY_MIN_S, waited_s / 10)))
