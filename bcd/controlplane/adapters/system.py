"""The machine's clock and generator."""

import os
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class SystemRandom:
    def bytes(self, count: int) -> bytes:
        return os.urandom(count)
