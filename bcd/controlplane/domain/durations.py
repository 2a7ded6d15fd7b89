"""Durations as people write them: a whole number and s, m, h or d."""

import re
from datetime import timedelta

_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class MalformedDuration(ValueError):
    """Not a duration; the message says what one looks like."""


def duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if not match:
        raise MalformedDuration(f"not a duration: {text[:40]!r} (a number and s, m, h or d: 40s, 30m, 24h)")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def show_duration(value: timedelta) -> str:
    """The shortest spelling that `duration` reads back as `value`, in whole seconds."""
    seconds = int(value.total_seconds())
    # Hours before days: certificates are spoken of as 24h.
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"
