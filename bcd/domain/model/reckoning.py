"""The estimated time (decision 13): what the server told last, carried on by the clock that counts while suspended.

The wall clock is a machine's least reliable part: no battery, no network yet, an image's build date. Once a server of
this boot has told the time, the wall clock is not asked any more.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

# Whatever a server or a file says, a boottime can be added to it without leaving the calendar.
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Reckoning:
    """`mark` is the high-water mark of server times on disk; `since_s` the boottime (seconds) at which it was loaded.

    `told` is the last server time of this run, heard at boottime `told_s`."""

    mark: datetime | None
    since_s: float
    told: datetime | None = None
    told_s: float = 0.0

    def now(self, wall: datetime, boottime_s: float) -> datetime:
        """The estimated time at boottime `boottime_s`, when the wall clock says `wall`."""
        if self.told is not None:
            return self.told + timedelta(seconds=boottime_s - self.told_s)
        if self.mark is None:
            return wall
        return max(wall, min(self.mark, LATEST) + timedelta(seconds=boottime_s - self.since_s))

    def heard(self, server_time: datetime, boottime_s: float, ceiling: datetime) -> "Reckoning":
        """With a server time just heard. The mark only rises, and never past `ceiling`, the held leaf's end: a server
        whose clock is years ahead must not leave behind a mark that makes every later certificate look expired."""
        capped = min(server_time, ceiling)
        mark = capped if self.mark is None else max(self.mark, capped)
        return replace(self, mark=mark, told=min(server_time, LATEST), told_s=boottime_s)
