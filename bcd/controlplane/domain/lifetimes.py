"""How long leaves may live."""

from datetime import timedelta

from bcd.controlplane.domain.certificates import MIN_LIFETIME
from bcd.domain.model.identity import MAX_LIFETIME
from bcd.domain.model.names import Role


class BadLifetime(ValueError):
    """Outside 20 s to 24 h."""


def leaf_lifetime(value: timedelta) -> timedelta:
    if not MIN_LIFETIME <= value <= MAX_LIFETIME[Role.NODE]:
        raise BadLifetime("a leaf lifetime is at least 20s and at most 24h")
    return value
