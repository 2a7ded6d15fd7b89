"""When a certificate is renewed, and when again after that failed (specification, "Renewal"; decisions 13 and 14).

Two clocks: estimated times (datetime) for what a certificate says, boottime (seconds) for how long something is ago.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bcd.domain.model.backoff import PUSHBACK_CEILING_S, RENEW_CEILING_S, renew_delay_s
from bcd.domain.model.identity import Leaf, renew_at

# Decision 14: however the dates look, a quarter of a lifetime lies between two renewals that worked.
MIN_GAP_FRACTION = 0.25
# Protocol, "Session": a gateway's "renew now" is honoured once in this long.
RENEW_NOW_EVERY_S = 600.0
# A failed attempt is followed by another before the certificate ends, but not by a storm in its last second.
LAST_MOMENT_S = 1.0


@dataclass(frozen=True)
class Renewal:
    """`failures` in a row, the first at boottime `failed_s`; no attempt before boottime `earliest_s`; the first attempt
    of the last success and the last honoured "renew now" at these boottimes, None for never; `asked` while such a
    request is to be carried out."""

    failures: int = 0
    failed_s: float = 0.0
    earliest_s: float = 0.0
    succeeded_s: float | None = None
    asked_s: float | None = None
    asked: bool = False

    def due(self, leaf: Leaf, now: datetime, boottime_s: float) -> bool:
        """Whether the leaf is to be renewed now."""
        return boottime_s >= self.due_s(leaf, now, boottime_s)

    def due_s(self, leaf: Leaf, now: datetime, boottime_s: float) -> float:
        """The boottime at which the leaf is to be renewed, as it looks now."""
        plan_s = boottime_s if self.asked else boottime_s + (renew_at(leaf) - now).total_seconds()
        return max(self._not_before_s(leaf), plan_s)

    def planned(self, leaf: Leaf, now: datetime, boottime_s: float) -> datetime:
        """The estimated time of the next attempt, as far as it is known: for the log and for `status`."""
        waits_s = max(0.0, self._not_before_s(leaf) - boottime_s)
        at = now if self.asked else renew_at(leaf)
        return max(at, now + timedelta(seconds=waits_s))

    def _not_before_s(self, leaf: Leaf) -> float:
        """The boottime before which there is no attempt, whatever the leaf says."""
        if self.asked or self.succeeded_s is None:
            return self.earliest_s
        return max(self.earliest_s, self.succeeded_s + leaf.lifetime.total_seconds() * MIN_GAP_FRACTION)

    def succeeded(self, boottime_s: float) -> "Renewal":
        # An answer that was lost is given again: its certificate is as old as the first attempt, and may end before a
        # quarter of a lifetime from now is over.
        since_s = self.failed_s if self.failures else boottime_s
        return replace(self, failures=0, earliest_s=0.0, succeeded_s=since_s, asked=False)

    def failed(
        self, leaf: Leaf, now: datetime, boottime_s: float, fraction: float, *, pushback_s: float | None, never: bool
    ) -> "Renewal":
        """After one more failure. `pushback_s` is waited exactly, but not so long that the certificate ends before the
        next attempt; `never` is "do not call again", which for a renewal means the longest backoff."""
        failures = self.failures + 1
        if never:
            wait_s = RENEW_CEILING_S
        elif pushback_s is not None:
            wait_s = min(pushback_s, PUSHBACK_CEILING_S)
        else:
            wait_s = renew_delay_s(failures, fraction)
        left_s = (leaf.not_after - now).total_seconds()
        if left_s > 0:
            wait_s = min(wait_s, max(left_s / 2, LAST_MOMENT_S))
        failed_s = self.failed_s if self.failures else boottime_s
        return replace(self, failures=failures, failed_s=failed_s, earliest_s=boottime_s + wait_s)

    def told_to(self, boottime_s: float) -> "Renewal":
        """After a "renew now"; the same value when one was honoured less than 10 minutes ago."""
        if self.asked_s is not None and boottime_s < self.asked_s + RENEW_NOW_EVERY_S:
            return self
        return replace(self, asked=True, asked_s=boottime_s)
