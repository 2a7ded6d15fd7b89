"""The audit log: what happened, in the order it happened; rows are only ever added."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

OPERATOR = "operator"


class Kind(StrEnum):
    NODE_JOINED = "node.joined"
    JOIN_REFUSED = "join.refused"
    JOIN_PENDING = "join.pending"
    TOKEN_CREATED = "token.created"  # noqa: S105
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    APPROVAL_GIVEN = "approval.given"
    APPROVAL_DENIED = "approval.denied"
    STORE_CREATED = "store.created"
    STORE_RESTORED = "store.restored"
    NODE_RENEWED = "node.renewed"
    NODE_REVOKED = "node.revoked"
    NODE_CLONED = "node.cloned"
    NODE_DELETED = "node.deleted"
    RENEWAL_ASKED = "node.renew-now"
    CERTIFICATE_ADOPTED = "certificate.adopted"
    CERTIFICATE_ALARM = "certificate.alarm"
    TRUST_CHANGED = "trust.changed"
    EK_ROOT_ADDED = "ek-root.added"
    EK_ROOT_ADMITS = "ek-root.admits"
    EK_ROOT_WITHDRAWN = "ek-root.withdrawn"
    EK_ROOT_REMOVED = "ek-root.removed"
    EK_ALLOWED = "ek.allowed"
    EK_DENIED = "ek.denied"
    EK_REMOVED = "ek.removed"


@dataclass(frozen=True)
class Event:
    """`actor` is `operator` (an admin command) or `node:<source address>`. `detail` holds JSON values, no secret."""

    at: datetime
    actor: str
    kind: Kind
    detail: Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Recorded:
    """An event with its place in the log, counted from 1."""

    seq: int
    event: Event
