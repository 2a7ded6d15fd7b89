"""What a running node does next: times and what is under way in, things to start out. No I/O, no clock."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from bcd.domain.model.backoff import PUSHBACK_CEILING_S, dial_delay_s
from bcd.domain.model.identity import Leaf
from bcd.domain.model.reckoning import Reckoning
from bcd.domain.model.renewal import Renewal

# Decision 14: clocks step and machines sleep, so that no plan is trusted for longer than this.
LOOK_EVERY_S = 30.0
# Decision 15: an expired certificate is told this often.
TELL_EXPIRED_EVERY_S = 600.0
# A gateway that takes Hello and never answers it is left alone after this.
WELCOME_WITHIN_S = 30.0
# Specification, "Renewal", step 5: until then something may still be signing with the old key.
OLD_KEY_S = 300.0
# Protocol, "Answers can be lost": a retired certificate's use is no verdict for 10 minutes. A node whose disk still
# holds one asks again after that, so that the control plane can tell which of two copies is to live.
RETIRED_WAIT_S = 660.0
# A session that ended before it was this old failed, Welcome or not: a gateway that welcomes and hangs up would be met
# by all of its nodes every other second, for ever.
SETTLED_S = 60.0
# More failures in a row than the backoff can tell apart.
_LONGEST = 16


class Todo(Enum):
    DIAL = auto()
    GIVE_DIAL_UP = auto()
    RENEW = auto()
    TELL_EXPIRED = auto()
    LOOK_AT_DISK = auto()


@dataclass(frozen=True)
class Link:
    """The session: `up` since a Welcome at boottime `up_s`; `dialling` since boottime `dialled_s`; `behind` when it,
    or nothing at all, runs while a newer pair is in use. `failures` in a row; no dial before boottime `earliest_s`."""

    up: bool = False
    up_s: float = 0.0
    behind: bool = True
    dialling: bool = False
    dialled_s: float = 0.0
    failures: int = 0
    earliest_s: float = 0.0


@dataclass(frozen=True)
class Running:
    """A node at one moment. Boottimes in seconds: `held_s` since when the leaf is held, `looked_s` when the disk was
    looked at last."""

    leaf: Leaf
    reckoning: Reckoning
    held_s: float
    renewal: Renewal = field(default_factory=Renewal)
    renewing: bool = False
    link: Link = field(default_factory=Link)
    told_expired_s: float | None = None
    looked_s: float = 0.0

    def now(self, wall: datetime, boottime_s: float) -> datetime:
        """The estimated time, but no earlier than the leaf's beginning and the time it was held: a server that tells
        the year 1970 once must not put the renewal off for ever."""
        floor = self.leaf.not_before + timedelta(seconds=max(0.0, boottime_s - self.held_s))
        return max(self.reckoning.now(wall, boottime_s), floor)

    def todo(self, wall: datetime, boottime_s: float) -> tuple[Todo, ...]:
        """What is to be started now."""
        return tuple(what for what, at_s in self._moments(wall, boottime_s) if boottime_s >= at_s)

    def wait_s(self, wall: datetime, boottime_s: float) -> float:
        """Seconds until `todo` says something new, as far as it is known, at most LOOK_EVERY_S."""
        first_s = min(at_s for _, at_s in self._moments(wall, boottime_s))
        return min(LOOK_EVERY_S, max(0.0, first_s - boottime_s))

    def _moments(self, wall: datetime, boottime_s: float) -> list[tuple[Todo, float]]:
        """What is not under way, each with the boottime at which it is to be started."""
        now, link = self.now(wall, boottime_s), self.link
        found = []
        if link.dialling:
            found.append((Todo.GIVE_DIAL_UP, link.dialled_s + WELCOME_WITHIN_S))
        elif link.behind:
            found.append((Todo.DIAL, link.earliest_s))
        if not self.renewing:
            found.append((Todo.RENEW, self.renewal.due_s(self.leaf, now, boottime_s)))
        expires_s = boottime_s + (self.leaf.not_after - now).total_seconds()
        if self.told_expired_s is not None:
            expires_s = max(expires_s, self.told_expired_s + TELL_EXPIRED_EVERY_S)
        found.append((Todo.TELL_EXPIRED, expires_s))
        found.append((Todo.LOOK_AT_DISK, self.looked_s + LOOK_EVERY_S))
        return found

    # ---- what happened

    def dialling(self, boottime_s: float) -> "Running":
        return replace(self, link=replace(self.link, dialling=True, dialled_s=boottime_s))

    def welcomed(self, server_time: datetime, boottime_s: float) -> "Running":
        heard = self.reckoning.heard(server_time, boottime_s, self.leaf.not_after)
        return replace(
            self, reckoning=heard, link=Link(up=True, up_s=boottime_s, behind=False, failures=self.link.failures)
        )

    def dial_failed(
        self, boottime_s: float, fraction: float, pushback_s: float | None = None, never: bool = False
    ) -> "Running":
        """No session came of the dial; one that was up before, with an older pair, may still be."""
        link = replace(self.link, dialling=False, failures=self.link.failures + 1)
        return self._dial_later(link, boottime_s, fraction, pushback_s, never)

    def session_ended(
        self, boottime_s: float, fraction: float, pushback_s: float | None = None, never: bool = False
    ) -> "Running":
        """A session that was up is no more. One that lasted is dialled again with the first backoff: a gateway that
        restarts is met by all of its nodes."""
        lasted = boottime_s >= self.link.up_s + SETTLED_S
        link = replace(self.link, up=False, behind=True, failures=1 if lasted else self.link.failures + 1)
        return self._dial_later(link, boottime_s, fraction, pushback_s, never)

    def _dial_later(
        self, link: Link, boottime_s: float, fraction: float, pushback_s: float | None, never: bool
    ) -> "Running":
        if pushback_s is None or never:
            wait_s = dial_delay_s(_LONGEST if never else link.failures, fraction)
        else:
            wait_s = min(pushback_s, PUSHBACK_CEILING_S)
        return replace(self, link=replace(link, earliest_s=boottime_s + wait_s))

    def retired(self, boottime_s: float, fraction: float) -> "Running":
        """The gateway says that this pair was replaced, and the disk has no other: it is not used for a while, for a
        session or a renewal."""
        until_s = boottime_s + RETIRED_WAIT_S * (1 + fraction / 10)
        return replace(
            self, link=replace(Link(), earliest_s=until_s), renewal=replace(self.renewal, earliest_s=until_s)
        )

    def renewed(self, leaf: Leaf, server_time: datetime, boottime_s: float) -> "Running":
        """Dialled with the new pair at once: its first use is what retires the old one."""
        return replace(
            self,
            leaf=leaf,
            held_s=boottime_s,
            reckoning=self.reckoning.heard(server_time, boottime_s, leaf.not_after),
            renewing=False,
            renewal=self.renewal.succeeded(boottime_s),
            link=replace(self.link, behind=True, dialling=False, failures=0, earliest_s=boottime_s),
            told_expired_s=None,
        )

    def told_to_renew(self, boottime_s: float) -> "Running":
        return replace(self, renewal=self.renewal.told_to(boottime_s))

    def not_renewed(
        self, wall: datetime, boottime_s: float, fraction: float, pushback_s: float | None = None, never: bool = False
    ) -> "Running":
        now = self.now(wall, boottime_s)
        renewal = self.renewal.failed(self.leaf, now, boottime_s, fraction, pushback_s=pushback_s, never=never)
        return replace(self, renewing=False, renewal=renewal)
