"""A clock that goes when it is told to, or when somebody waits."""

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.fakes.pki import NOW


class ManualClock:
    """Port `Clock`. Waiting takes no time of the test's; `waits` are the seconds asked for, `on_wait` is called after
    each of them (another process goes on meanwhile)."""

    def __init__(
        self, now: datetime = NOW, on_wait: Callable[[], None] | None = None, boottime_s: float = 1000.0
    ) -> None:
        self._now = now
        self._boottime_s = boottime_s
        self.waits: list[float] = []
        self.on_wait = on_wait

    def now(self) -> datetime:
        return self._now

    def boottime_s(self) -> float:
        return self._boottime_s

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.forward(max(seconds, 0.0))
        if self.on_wait is not None:
            self.on_wait()

    def forward(self, seconds: float) -> None:
        """Time passes, on both clocks."""
        self._boottime_s += seconds
        self._now += timedelta(seconds=seconds)

    def set(self, now: datetime) -> None:
        """Somebody sets the wall clock; boottime does not mind."""
        self._now = now
