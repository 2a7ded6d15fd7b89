"""Port: whoever started this process and watches it."""

from typing import Protocol


class Supervisor(Protocol):
    def watchdog_s(self) -> float | None:
        """Seconds within which it wants to hear `WATCHDOG=1`, or None."""
        ...

    def tell(self, *lines: str) -> None:
        """Lines of sd_notify(3). Never fails."""
        ...
