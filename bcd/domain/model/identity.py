"""A node's identity as values: the leaf, what `identity.json` holds, and when a leaf is to be replaced."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId, TrustDomain

# Specification, "Renewal": a certificate is replaced at 60 % of its lifetime.
RENEW_FRACTION = 0.60
# Decision 14: up to 5 % later, the same for one node every time, so that a rack does not renew in one second.
RENEW_SPREAD = 0.05
# Specification, "Renewal", and protocol "Lifetime": notAfter - notBefore in all.
MAX_LIFETIME = {Role.NODE: timedelta(hours=24), Role.SITE: timedelta(hours=24), Role.RAMDISK: timedelta(hours=2)}


@dataclass(frozen=True)
class Leaf:
    """What a verified node certificate says. Times are UTC; `der` is the certificate, `spki` its key, DER both."""

    der: bytes
    spki: bytes
    spiffe_id: SpiffeId
    role: Role
    not_before: datetime
    not_after: datetime
    ak_name: bytes | None = None

    @property
    def sha256(self) -> bytes:
        return sha256(self.der).digest()

    @property
    def lifetime(self) -> timedelta:
        return self.not_after - self.not_before


@dataclass(frozen=True)
class Trust:
    """The trust bundle a node holds (specification, `identity.json`). Without roots signed intent is not enforced."""

    version: int
    roots: tuple[bytes, ...]
    bundle: bytes
    signed: bytes | None = None


@dataclass(frozen=True)
class Identity:
    """What `identity.json` holds. `chain` is DER, leaf first; `unknown` are the fields a later bcd wrote."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    trust: Trust | None = None
    server_time: datetime | None = None
    unknown: Mapping[str, object] = field(default_factory=dict)

    @property
    def node_id(self) -> NodeId:
        return self.leaf.spiffe_id.node

    @property
    def site_id(self) -> SiteId:
        return self.leaf.spiffe_id.site

    @property
    def trust_domain(self) -> TrustDomain:
        return self.leaf.spiffe_id.trust_domain

    @property
    def role(self) -> Role:
        return self.leaf.role


def same_identity(one: Leaf, other: Leaf) -> bool:
    """Whether both are of one node in one role (specification, `renewOnce` step 4)."""
    return one.spiffe_id == other.spiffe_id and one.role == other.role


def renew_at(leaf: Leaf) -> datetime:
    """When the leaf is to be replaced: 60 % of its lifetime, and up to 5 % more that the node id decides."""
    spread = int.from_bytes(sha256(leaf.spiffe_id.node.encode()).digest()[:8]) / 2**64
    return leaf.not_before + leaf.lifetime * (RENEW_FRACTION + RENEW_SPREAD * spread)
