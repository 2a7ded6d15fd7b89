"""The session with the gateway: dialled, lost, dialled again; one number for each dial."""

from collections.abc import Callable
from datetime import datetime

from bcd.app.inbox import Dialled, Event, Said, Send
from bcd.app.parts import Held, LoadAnew, Parts
from bcd.app.telling import Telling
from bcd.app.worker import Worker
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
        self._worker = Worker("bcd-dial", send)
        self._dialled = 0
        self._up = 0
        self._connections: dict[int, Connection] = {}
        self._leaves: dict[int, Leaf] = {}

    def end(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._worker.end()

    def open_with(self, pair: Pair) -> Connection | None:
        """The session's connection where it is one with that pair. For any thread."""
        return self._connections.get(self._up) if self._leaves.get(self._up) == pair.leaf else None

    def dial(self, boottime_s: float) -> None:
        self._dialled += 1
        number, pair = self._dialled, self._held.pairs.pair
        self._leaves[number] = pair.leaf
        self._held.state = self._held.state.dialling(boottime_s)
        hello = Hello(self._held.journal.journal_id, self._parts.boot_id, self._parts.version, pair.key.kind.value)

        def task() -> Event:
            connection = self._gateway.connect(pair)
            if not isinstance(connection, Ended):
                connection.start(hello, lambda heard: self._send(Said(number, heard)))
            return Dialled(number, connection)

        self._worker.do("dial", task)

    def give_dial_up(self) -> None:
        self._drop(self._dialled)
        self.dial_failed(Ended("the gateway took Hello and answered nothing"))

    def take_dialled(self, event: Dialled) -> None:
        if isinstance(event.result, Ended):
            if event.number == self._dialled:
                self.dial_failed(event.result)
        elif event.number != self._dialled or not self._held.state.link.dialling:
            # Given up meanwhile, or ended before this came: what was heard on it is settled.
            self._leaves.pop(event.number, None)
            event.result.close()
        else:
            self._connections[event.number] = event.result

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
            case Revoked(reason):
                self._telling.revoked(leaf, reason)
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
        before, self._up = self._up, number
        # The old session has nothing left to say: whatever was on its way came before this Welcome.
        self._drop(before)
        self._parts.events.info("session up", server_time=welcome.server_time)
        held.journal.session("up", held.now())
        store(held.state.reckoning.mark, welcome.signed_bundle)
        self._telling.plan()

    def _ended(self, number: int, ended: Ended) -> None:
        held = self._held
        self._drop(number)
        if number == self._up:
            self._up = 0
            self._parts.events.warning("session ended", why=ended.why)
            held.journal.session(f"down: {ended.why}", held.now())
            fraction = self._parts.entropy.fraction()
            boottime_s = held.clock.boottime_s()
            held.state = held.state.session_ended(boottime_s, fraction, ended.pushback_s, ended.never)
            self._telling.status()
        elif number == self._dialled and held.state.link.dialling:
            self.dial_failed(ended)

    def _drop(self, number: int) -> None:
        connection = self._connections.pop(number, None)
        self._leaves.pop(number, None)
        if connection is not None:
            connection.close()
