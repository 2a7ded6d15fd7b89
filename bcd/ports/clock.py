"""Port: time."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, UTC, as wrong as the machine's."""
        ...

    def boottime_s(self) -> float:
        """Seconds since boot, suspend included (CLOCK_BOOTTIME); never goes back while the machine is up."""
        ...

    def wait(self, seconds: float) -> None:
        """Returns after `seconds` of boottime, at once for zero or less."""
        ...
