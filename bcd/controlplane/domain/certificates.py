"""Node certificates as the control plane keeps them, and the answers it may have to give again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bcd.domain.model.identity import MAX_LIFETIME
from bcd.domain.model.names import NodeId, Role, SpiffeId

# Protocol, "Lifetime": notBefore lies this much before the issue, for machines whose clocks are a little slow.
BACKDATE = timedelta(minutes=5)
BACKDATE_FRACTION = 0.10
MIN_LIFETIME = timedelta(seconds=20)
# What certificates count in.
_SECOND = timedelta(seconds=1)
# Decision 26: nobody's fleet lives on leaves as short as this.
DEMONSTRATION_BELOW = timedelta(hours=1)


class CertificateState(StrEnum):
    """Protocol, "Answers can be lost; certificates can be copied"."""

    ISSUED = "issued"
    CURRENT = "current"
    RETIRED = "retired"
    VOID = "void"
    REVOKED = "revoked"


@dataclass(frozen=True)
class Certificate:
    """One issued leaf. `serial` is 32 hexadecimal digits; `parent` the serial of the leaf it renewed, or empty.

    `credential` is what it was issued for: `token:<id>`, `ek:<as the allow-list names it>`, or `leaf:<serial>` for a
    renewal, or empty for one that was adopted after a restore. `first_used_from` is the address it was first used from;
    `reason` why it was revoked."""

    serial: str
    node_id: NodeId
    generation: int
    state: CertificateState
    state_since: datetime
    credential: str
    parent: str
    spki_sha256: bytes
    leaf_sha256: bytes
    issued: datetime
    not_before: datetime
    not_after: datetime
    first_used: datetime | None = None
    first_used_from: str = ""
    reason: str = ""


@dataclass(frozen=True)
class GivenAnswer:
    """An issued answer, kept so that a lost one can be given again: by (credential, key), until the leaf expires.

    `chain` is DER, leaf first; `signed` the serialized SignedStatement that answers the CSR with `csr_sha256`."""

    credential: str
    spki_sha256: bytes
    csr_sha256: bytes
    serial: str
    chain: tuple[bytes, ...]
    signed: bytes
    not_after: datetime


@dataclass(frozen=True)
class LeafToIssue:
    """All that a leaf says (protocol, "Names and encodings"). `spki` is DER; `ak_name` the TPM name of the
    attestation key that certified it, if one did."""

    spiffe_id: SpiffeId
    role: Role
    spki: bytes
    serial: int
    not_before: datetime
    not_after: datetime
    ak_name: bytes | None = None


def leaf_dates(now: datetime, lifetime: timedelta, role: Role) -> tuple[datetime, datetime]:
    """notBefore and notAfter, whole seconds, of a leaf issued `now`: `lifetime` in all, less where the role caps it."""
    whole = min(lifetime, MAX_LIFETIME[role])
    not_before = (now - _backdate(whole)).replace(microsecond=0)
    return not_before, not_before + whole


def renewed_dates(
    now: datetime, lifetime: timedelta, role: Role, held_until: datetime
) -> tuple[datetime, datetime] | None:
    """As leaf_dates, for a leaf that replaces one which ends at `held_until`, and has to end later than it.

    Two renewals in one second, and a clock that went back a little, cost some of the notBefore's margin; None when
    there is not that much of it."""
    not_before, not_after = leaf_dates(now, lifetime, role)
    later = max(timedelta(0), held_until + _SECOND - not_after)
    return (not_before + later, not_after + later) if not_before + later <= now else None


def issued_of(not_before: datetime, not_after: datetime) -> datetime:
    """When a leaf with these dates was issued, by its dates: the order of a node's leaves, whatever their lifetimes."""
    return not_before + _backdate(not_after - not_before)


def _backdate(lifetime: timedelta) -> timedelta:
    return min(BACKDATE, lifetime * BACKDATE_FRACTION)


def leaf_credential(serial: str) -> str:
    """How an answer to a renewal names the leaf it renewed."""
    return f"leaf:{serial}"
