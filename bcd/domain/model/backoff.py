"""How long to wait before the next attempt. Randomness is an argument: `fraction` in [0, 1)."""

JOIN_ATTEMPTS = 20
JOIN_CEILING_S = 60.0
RENEW_FIRST_S = 30.0
RENEW_CEILING_S = 600.0
# Protocol: a pushback is waited exactly. But no longer than a certificate can last: one of years, or of all that 64
# bits hold, would be a node that never calls again.
PUSHBACK_CEILING_S = 86_400.0


def join_delay_s(attempt: int, fraction: float) -> float:
    """Seconds to wait after failed join attempt number `attempt`, which counts from 1."""
    return _spread(min(JOIN_CEILING_S, 2.0 ** min(attempt, 30)), fraction)


def renew_delay_s(attempt: int, fraction: float) -> float:
    """Seconds to wait after failed renewal attempt number `attempt`, which counts from 1."""
    return _spread(min(RENEW_CEILING_S, RENEW_FIRST_S * 2.0 ** min(attempt - 1, 30)), fraction)


def dial_delay_s(attempt: int, fraction: float) -> float:
    """Seconds to wait before dialling again, after `attempt` failures in a row, which count from 1."""
    return _spread(min(RENEW_CEILING_S, 2.0 ** min(attempt, 30)), fraction)


def _spread(ceiling_s: float, fraction: float) -> float:
    # Uniform in [c/2, c]: half keeps a rack that lost its control plane from coming back in one second,
    # and no node from hammering a server that is starting.
    return ceiling_s / 2 + ceiling_s / 2 * fraction
