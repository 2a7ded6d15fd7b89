"""The session with the gateway: dialled, lost, dialled again; one number for each dial."""

import threading
from collections.abc import Callable
from datetime import datetime

from bcd.app.inbox import Event, NotDialled, Said, Send
from bcd.app.parts import Held, LoadAnew, Parts
from bcd.app.telling import Telling
from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import (
    Bundle,
    Connection,
    Ended,
    Gateway,
    Hello,
    Pair,
    RenewNow,
    Retired,
    Revoked,
    Welcome,
)

Store = Callable[[datetime | None, bytes], None]


class Session:
    """`store` is called with what a Welcome or a new bundle told."""

    def __init__(self, parts: Parts, held: Held, telling: Telling, *, gateway: Gateway, send: Send) -> None:
        self._parts = parts
        self._held = held
        self._telling = telling
        self._gateway = gateway
        self._send = send
        self._worker = parts.worker("bcd-dial", send)
        # What follows is used on the worker's thread too; only this object's own thread changes `_up` and `_leaves`.
        self._lock = threading.Lock()
        self._dialled = 0
        self._up = 0
        self._connections: dict[int, Connection] = {}
        self._leaves: dict[int, Leaf] = {}

    def end(self) -> None:
        with self._lock:
            # A dial that is still under way keeps nothing.
            self._dialled += 1
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        self._worker.end()

    def open_with(self, pair: Pair) -> Connection | None:
        """The session's connection where it is one with that pair. For any thread."""
        return self._connections.get(self._up) if self._leaves.get(self._up) == pair.leaf else None

    def dial(self, boottime_s: float) -> None:
        with self._lock:
            self._dialled += 1
        number, pair = self._dialled, self._held.pairs.pair
        self._leaves[number] = pair.leaf
        self._held.state = self._held.state.dialling(boottime_s)
        hello = Hello(self._held.journal.journal_id, self._parts.boot_id, self._parts.version, pair.key.kind.value)

        def task() -> Event | None:
            # A dial that was held up and given up, or overtaken by a renewal, is not made any more.
            if number != self._dialled:
                return None
            connection = self._gateway.connect(pair)
            if isinstance(connection, Ended):
                return NotDialled(number, connection)
            # Before Hello: whatever is heard on it must find it known.
            if self._keep(number, connection):
                connection.start(hello, lambda heard: self._send(Said(number, heard)))
            else:
                connection.close()
            return None

        self._worker.do("dial", task)

    def drop_dial(self) -> None:
        """Whatever dial is under way comes to nothing."""
        with self._lock:
            dropped, self._dialled = self._dialled, self._dialled + 1
        if dropped != self._up:
            self._drop(dropped)

    def give_dial_up(self) -> None:
        self.drop_dial()
        self.dial_failed(Ended("the gateway took Hello and answered nothing"))

    def take_not_dialled(self, event: NotDialled) -> None:
        if event.number == self._dialled:
            self._drop(event.number)
            self.dial_failed(event.ended)

    def dial_broke(self, why: str) -> None:
        """The task that dials ran into something it did not expect."""
        if self._held.state.link.dialling:
            self.drop_dial()
            self.dial_failed(Ended(why))

    def take_said(self, event: Said, store: Store) -> None:
        held, number, heard = self._held, event.number, event.heard
        leaf = self._leaves.get(number)
        if leaf is None:
            return
        match heard:
            case Welcome():
                self._welcomed(number, heard, store)
            case Bundle(signed):
                store(None, signed)
            case RenewNow(reason):
                held.state = held.state.told_to_renew(held.clock.boottime_s())
                self._parts.events.info("the gateway asks to renew now", reason=reason)
            case Revoked(reason) if leaf.der == held.pairs.pair.leaf.der:
                self._telling.revoked(leaf, reason)
            case Revoked(reason):
                # Of a pair that was replaced. What holds for the one in use, its own dial tells.
                self._ended(number, Ended(f"the certificate before this one was revoked: {reason}"))
            case Retired() if leaf.der == held.pairs.pair.leaf.der:
                raise LoadAnew(leaf)
            case Retired():
                # The old pair's connection, after the new pair's first use.
                self._ended(number, Ended("the certificate was replaced"))
            case Ended():
                self._ended(number, heard)

    def dial_failed(self, ended: Ended) -> None:
        held, fraction = self._held, self._parts.entropy.fraction()
        held.state = held.state.dial_failed(held.clock.boottime_s(), fraction, ended.pushback_s, ended.never)
        self._telling.no_session(ended)

    def _welcomed(self, number: int, welcome: Welcome, store: Store) -> None:
        held = self._held
        if number != self._dialled:
            return
        held.state = held.state.welcomed(welcome.server_time, held.clock.boottime_s())
        if self._up != number:
            # The old session has nothing left to say: whatever was on its way came before this Welcome.
            self._drop(self._up)
        self._up = number
        # Recorded and then told, here and below: whoever reads the log and asks `bcd status` finds the same there.
        held.journal.session("up", held.now())
        self._parts.events.info("session up", server_time=welcome.server_time)
        store(held.state.reckoning.mark, welcome.signed_bundle)
        self._telling.plan()

    def _ended(self, number: int, ended: Ended) -> None:
        held = self._held
        self._drop(number)
        if number == self._up:
            self._up = 0
            held.journal.session(f"down: {ended.why}", held.now())
            self._parts.events.warning("session ended", why=ended.why)
            fraction = self._parts.entropy.fraction()
            boottime_s = held.clock.boottime_s()
            held.state = held.state.session_ended(boottime_s, fraction, ended.pushback_s, ended.never)
            self._telling.status()
        elif number == self._dialled and held.state.link.dialling:
            self.dial_failed(ended)

    def _keep(self, number: int, connection: Connection) -> bool:
        """Whether the connection is still wanted; on the worker's thread."""
        with self._lock:
            wanted = number == self._dialled
            if wanted:
                self._connections[number] = connection
        return wanted

    def _drop(self, number: int) -> None:
        with self._lock:
            connection = self._connections.pop(number, None)
        self._leaves.pop(number, None)
        if connection is not None:
            connection.close()
