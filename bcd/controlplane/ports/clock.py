"""Port: the time that goes into certificates and records."""

from datetime import datetime
from typing import Protocol


class WallClock(Protocol):
    def now(self) -> datetime:
        """The wall clock, UTC."""
        ...
