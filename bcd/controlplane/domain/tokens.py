"""Join tokens as the control plane keeps them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bcd.controlplane.domain.ids import TokenId
from bcd.domain.model.names import NodeId, Role, SiteId

DEFAULT_TTL = timedelta(hours=1)
# A token is a bearer secret on paper and in deploy scripts; one that is needed for longer is made anew.
MAX_TTL = timedelta(days=90)
MAX_USES = 10_000


@dataclass(frozen=True)
class Token:
    """`secret_sha256` is over the token's 43 base64url characters. `used` never exceeds `uses`.

    With `node_id` it is a provisioned token: it makes or reclaims exactly that node, and has one use."""

    id: TokenId
    secret_sha256: bytes
    site: SiteId
    role: Role
    node_id: NodeId | None
    allow_reclaim: bool
    require_approval: bool
    created: datetime
    expires: datetime
    uses: int
    used: int = 0
    revoked: datetime | None = None

    @property
    def used_up(self) -> bool:
        return self.used >= self.uses

    def state(self, now: datetime) -> str:
        """`revoked`, `used-up`, `expired` or `usable`, the first that holds."""
        if self.revoked is not None:
            return "revoked"
        if self.used_up:
            return "used-up"
        return "expired" if now >= self.expires else "usable"


def credential_of(token: TokenId) -> str:
    """How an answer or an approval names the token it was given for."""
    return f"token:{token}"
