"""What `init` fixes for a control plane."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bcd.domain.model.names import TrustDomain

DEFAULT_LEAF_LIFETIME = timedelta(hours=24)
# Protocol, "States of a certificate": a node that has just renewed may have one call under way with the old leaf.
RETIRED_GRACE = timedelta(minutes=10)
MIN_RETIRED_GRACE = timedelta(seconds=1)


@dataclass(frozen=True)
class Settings:
    """`hosts` are the names and addresses nodes reach this control plane by; the first goes into their config.toml.

    `retired_grace`: how long a replaced certificate may still turn up before it counts as a copy."""

    trust_domain: TrustDomain
    hosts: tuple[str, ...]
    leaf_lifetime: timedelta
    retired_grace: timedelta = RETIRED_GRACE


@dataclass(frozen=True)
class Restoration:
    """Somebody put a backup of the store back, and said so."""

    at: datetime


@dataclass(frozen=True)
class SignedBundle:
    """One version of the trust bundle, signed once: an equal version always has equal bytes."""

    version: int
    signed: bytes
