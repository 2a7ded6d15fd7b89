"""What `init` fixes for a control plane."""

from dataclasses import dataclass
from datetime import timedelta

from bcd.domain.model.names import TrustDomain

DEFAULT_LEAF_LIFETIME = timedelta(hours=24)


@dataclass(frozen=True)
class Settings:
    """`hosts` are the names and addresses nodes reach this control plane by; the first goes into their config.toml."""

    trust_domain: TrustDomain
    hosts: tuple[str, ...]
    leaf_lifetime: timedelta


@dataclass(frozen=True)
class SignedBundle:
    """One version of the trust bundle, signed once: an equal version always has equal bytes."""

    version: int
    signed: bytes
