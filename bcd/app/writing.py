"""What a running node writes, on a thread of its own: a renewal, what a Welcome told; and its look at the disk."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from bcd.app.inbox import ChangedOnDisk, Event, RenewalEnded, Send
from bcd.app.parts import Held, LoadAnew, Parts
from bcd.app.telling import Telling
from bcd.domain.lifecycle.change_identity import IdentityChanged
from bcd.domain.lifecycle.renew import NewPair, NextKey, NotRenewed, RenewOutcome
from bcd.ports.gateway import Connection, Ended, Gateway, Pair, Retired, Revoked
from bcd.ports.keys import NodeKey


class Writing:
    """`open_with` is the session's connection where it is one with that pair, else None."""

    def __init__(
        self,
        parts: Parts,
        held: Held,
        telling: Telling,
        *,
        gateway: Gateway,
        open_with: Callable[[Pair], Connection | None],
        send: Send,
    ) -> None:
        self._parts = parts
        self._held = held
        self._telling = telling
        self._gateway = gateway
        self._open_with = open_with
        self._worker = parts.worker("bcd-write", send)
        self._next_key: NextKey | None = None

    def end(self) -> None:
        self._worker.end()

    def renew(self) -> None:
        self._held.state = replace(self._held.state, renewing=True)
        self._worker.do("renewal", self._renew)

    def release(self, keys: tuple[NodeKey, ...]) -> None:
        def task() -> None:
            for key in keys:
                key.release()
                self._parts.events.info("the old key is released")

        # Not at once: it waits for a TPM that is busy, and who decides waits for nobody.
        if keys:
            self._worker.do("release", task)

    def store(self, mark: datetime | None, signed_bundle: bytes) -> None:
        def task() -> Event | None:
            if mark is not None:
                self._held.journal.heard(mark)
            try:
                # The pair in use as it is now: the task before this one may have been a renewal.
                self._parts.take_in(self._held.pairs.pair.leaf, mark, signed_bundle or None)
            except IdentityChanged:
                return ChangedOnDisk()
            return None

        self._worker.do("storing what the gateway told", task)

    def look_at_disk(self, boottime_s: float) -> None:
        self._held.state = replace(self._held.state, looked_s=boottime_s)
        self._worker.do("look at the disk", self._look_at_disk)

    def take_renewal(self, outcome: RenewOutcome) -> None:
        held = self._held
        match outcome:
            case NewPair(pair, _, server_time):
                self._next_key = None
                # A session with the old pair goes on until the new one is welcome.
                held.state = held.state.renewed(pair.leaf, server_time, held.clock.boottime_s())
                held.journal.attempted(held.now(), 0, "")
                self._parts.events.info("renewed", not_after=pair.leaf.not_after)
                self._telling.plan()
            case NotRenewed(ended, next_key):
                self._next_key = next_key
                self.not_renewed(ended)
            case Revoked(reason):
                self._telling.revoked(held.pairs.pair.leaf, reason)
            case Retired():
                raise LoadAnew(held.pairs.pair.leaf)

    def not_renewed(self, ended: Ended) -> None:
        clock, fraction = self._held.clock, self._parts.entropy.fraction()
        self._held.state = self._held.state.not_renewed(
            clock.now(), clock.boottime_s(), fraction, ended.pushback_s, ended.never
        )
        self._telling.not_renewed(ended)

    # ---- on the worker's thread

    def _renew(self) -> Event:
        held, pair = self._held, self._held.pairs.pair
        connection, own = self._open_with(pair), None
        if connection is None:
            found = self._gateway.connect(pair)
            if isinstance(found, Ended):
                return RenewalEnded(NotRenewed(found, self._next_key))
            connection = own = found
        try:
            outcome = self._parts.renew(pair, connection, held.now(), self._next_key)
            if isinstance(outcome, NewPair):
                # On this thread, before its next task looks at the disk.
                held.pairs.replace(outcome.pair, held.clock.boottime_s())
            return RenewalEnded(outcome)
        except IdentityChanged:
            return ChangedOnDisk()
        finally:
            if own is not None:
                own.close()

    def _look_at_disk(self) -> Event | None:
        try:
            # Without the lock: identity.json is replaced in one step, and only this thread does it here.
            self._parts.renew.change.stored(self._held.pairs.pair.leaf)
        except IdentityChanged:
            return ChangedOnDisk()
        return None
