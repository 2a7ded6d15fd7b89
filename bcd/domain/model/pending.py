"""A join that was begun: all of its request, so that the very same one can be sent again."""

from dataclasses import dataclass, field
from datetime import datetime

from bcd.domain.model.names import NodeId, Role


@dataclass(frozen=True)
class SealedToken:
    """The token as it may be kept: readable by the JoinService alone, and only beside this request."""

    kid: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class PendingJoin:
    """`join.pending` (decision 8): all of a request, so that the same one can be sent again after a crash.

    `key` is what `node.key` will hold, a secret. `csr` is PKCS#10 DER."""

    attestor: str
    role: Role
    node_id: NodeId | None
    key: bytes
    csr: bytes
    sealed: SealedToken | None
    pending_id: str
    begun: datetime

    def __repr__(self) -> str:
        return f"PendingJoin({self.attestor}, {self.role.value}, begun {self.begun})"
