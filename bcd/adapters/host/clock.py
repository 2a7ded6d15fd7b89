"""Port `Clock` on Linux."""

import time
from datetime import UTC, datetime

# A sleep does not count the time the machine is suspended; boottime does, so a long wait is looked at anew.
_SLICE_S = 30.0


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime_s(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wait(self, seconds: float) -> None:
        until = self.boottime_s() + seconds
        while (rest := until - self.boottime_s()) > 0:
            time.sleep(min(rest, _SLICE_S))
