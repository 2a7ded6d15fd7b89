"""`bcd node`: a session that lives, a certificate that is renewed, until the control plane revokes the identity.

One thread decides (this one); two work: one dials, one renews and writes. What they find comes back as an event. What
to do next is domain.model.running's to say.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bcd.app.pairs import PairInUse
from bcd.domain.lifecycle.change_identity import ChangeIdentity, IdentityChanged
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.renew import NewPair, NextKey, NotRenewed, Renew, RenewOutcome
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model.datadir import KEY, MAX_FILE_BYTES, NEXT_KEY
from bcd.domain.model.failures import Failure, IdentityDead, Message, MustJoinAgain, NotJoined, TryLater
from bcd.domain.model.identity import Identity, Leaf
from bcd.domain.model.keys import KeyState
from bcd.domain.model.loading import Loaded
from bcd.domain.model.reckoning import Reckoning
from bcd.domain.model.running import Running, Todo
from bcd.ports.clock import Clock
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.gateway import (
    Bundle,
    Connection,
    Ended,
    Gateway,
    Heard,
    Hello,
    Pair,
    RenewNow,
    Retired,
    Revoked,
    Welcome,
)
from bcd.ports.journal import NodeJournal
from bcd.ports.keys import KeyStore
from bcd.ports.supervisor import Supervisor

LOCK_WAIT_S = 45.0
WAY_BACK = "bcd join --reset --yes, then bcd join"


class Stop:
    """Somebody asked the node to end."""


@dataclass(frozen=True)
class Dialled:
    """What came of a dial: a connection with Hello said on it, or why there is none."""

    number: int
    result: Connection | Ended


@dataclass(frozen=True)
class Said:
    """Something heard on connection `number`."""

    number: int
    heard: Heard


@dataclass(frozen=True)
class RenewalEnded:
    outcome: RenewOutcome


@dataclass(frozen=True)
class Trouble:
    """A worker's task did not end as it should: `why` for an operator."""

    task: str
    why: str


class ChangedOnDisk:
    """The disk holds another identity than the one in use."""


Event = Stop | Dialled | Said | RenewalEnded | Trouble | ChangedOnDisk


class Inbox:
    """Events for the life that runs; those of one that is over are dropped, whoever still sends them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int, Event]] = queue.SimpleQueue()
        self._life = 0

    def begin(self) -> "Callable[[Event], None]":
        """A new life; what it returns is how its threads send."""
        self._life += 1
        life = self._life
        return lambda event: self._queue.put((life, event))

    def stop(self) -> None:
        """Ends the node, whichever life it is in. Safe in a signal handler."""
        self._queue.put((0, Stop()))

    def get(self, timeout_s: float) -> Event | None:
        """The next event, or None when none came in time."""
        try:
            life, event = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        return event if life in (0, self._life) else None


class _LoadAnew(Exception):
    """Everything known of the identity is to be forgotten and read again; after a retirement this leaf is not to be
    dialled with again soon."""

    def __init__(self, retired: Leaf | None = None) -> None:
        super().__init__()
        self.retired = retired


@dataclass(frozen=True)
class Node:
    """`open_journal` opens the loaded node's journal, under the lock; `check` raises what keeps a node from starting.

    `fs`, `load` and `change` serve this thread, `renew` and `take_in` the one that writes: each has a directory of
    its own, both the data directory, since a lock belongs to one."""

    fs: Fs
    load: Load
    keys: KeyStore
    change: ChangeIdentity
    renew: Renew
    take_in: TakeIn
    gateway: Callable[[Callable[[bytes], None]], Gateway]
    open_journal: Callable[[Loaded], NodeJournal]
    check: Callable[[], None]
    clock: Clock
    entropy: Entropy
    events: Events
    supervisor: Supervisor
    boot_id: str
    version: str

    def __call__(self, inbox: Inbox) -> None:
        """Runs until `inbox` is told to stop. IdentityDead when the identity was revoked; a Failure of loading."""
        retired: Leaf | None = None
        while True:
            self.check()
            with self.fs.lock(LOCK_WAIT_S):
                loaded = self.load()
                if not isinstance(loaded, Loaded):
                    raise NotJoined(Message.NOT_JOINED)
                journal = self.open_journal(loaded)
            try:
                pair = self._pair(loaded)
                life = _Life(self, inbox, identity=loaded.identity, pair=pair, journal=journal, retired=retired)
                life.run()
                return
            except _LoadAnew as anew:
                retired = anew.retired
            finally:
                journal.close()

    def _pair(self, loaded: Loaded) -> Pair:
        """The leaf with its key: in `node.key`, or still in `node.key.next` where the disk could not be put right."""
        leaf = loaded.identity.leaf
        for name in (KEY, NEXT_KEY):
            record = self.fs.read(name, MAX_FILE_BYTES)
            key = self.keys.open(record) if record is not None else None
            if key is not None and not isinstance(key, KeyState) and key.spki == leaf.spki:
                return Pair(leaf, loaded.identity.chain, key)
        raise MustJoinAgain(Message.KEY_MISMATCH)


class _Life:
    """One identity's time, from a load to the next."""

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        *,
        identity: Identity,
        pair: Pair,
        journal: NodeJournal,
        retired: Leaf | None,
    ) -> None:
        self._node = node
        self._inbox = inbox
        self._send = inbox.begin()
        self._journal = journal
        self._signatures: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._gateway = node.gateway(self._signatures.put)
        self._pairs = PairInUse(pair, node.events)
        self._next_key: NextKey | None = None
        self._dialled = 0
        self._session = 0
        self._connections: dict[int, Connection] = {}
        self._leaves: dict[int, Leaf] = {}
        self._dialler = _Worker("bcd-dial", self._send)
        self._writer = _Worker("bcd-write", self._send)
        now_s = node.clock.boottime_s()
        marks = [at for at in (identity.server_time, journal.server_time) if at is not None]
        self._state = Running(pair.leaf, Reckoning(max(marks) if marks else None, now_s), held_s=now_s, looked_s=now_s)
        if retired is not None and retired.der == pair.leaf.der:
            node.events.error(
                "this certificate was replaced by another, which is not on this disk: is there a copy of this node?",
                node=identity.node_id,
                wayBack=WAY_BACK,
            )
            self._state = self._state.retired(now_s, node.entropy.fraction())

    # ---- the loop

    def run(self) -> None:
        node = self._node
        node.events.info("identity loaded", node=self._pairs.pair.leaf.spiffe_id.node)
        self._tell_plan()
        node.supervisor.tell("READY=1", f"STATUS={self._status()}")
        try:
            while True:
                self._start_what_is_due()
                event = self._next()
                if isinstance(event, Stop):
                    node.supervisor.tell("STOPPING=1")
                    return
                if event is not None:
                    self._take(event)
        finally:
            for connection in self._connections.values():
                connection.close()
            self._dialler.end()
            self._writer.end()

    def _next(self) -> Event | None:
        clock, watchdog_s = self._node.clock, self._node.supervisor.watchdog_s()
        wait_s = self._state.wait_s(clock.now(), clock.boottime_s())
        if watchdog_s is not None:
            wait_s = min(wait_s, watchdog_s / 2)
        # A floor: a clock that steps between two looks must not make this spin.
        event = self._inbox.get(max(0.02, wait_s))
        if watchdog_s is not None:
            self._node.supervisor.tell("WATCHDOG=1")
        return event

    def _start_what_is_due(self) -> None:
        clock = self._node.clock
        boottime_s = clock.boottime_s()
        self._pairs.release(boottime_s)
        self._count_signatures()
        for todo in self._state.todo(clock.now(), boottime_s):
            match todo:
                case Todo.DIAL:
                    self._dial(boottime_s)
                case Todo.GIVE_DIAL_UP:
                    self._drop(self._dialled)
                    self._dial_failed(Ended("the gateway took Hello and answered nothing"))
                case Todo.RENEW:
                    self._state = replace(self._state, renewing=True)
                    self._writer.do("renewal", self._renew)
                case Todo.TELL_EXPIRED:
                    self._tell_expired(boottime_s)
                case Todo.LOOK_AT_DISK:
                    self._state = replace(self._state, looked_s=boottime_s)
                    self._writer.do("look at the disk", self._look_at_disk)

    def _take(self, event: Event) -> None:
        match event:
            case Dialled():
                self._take_dialled(event)
            case Said():
                self._take_said(event)
            case RenewalEnded():
                self._take_renewal(event)
            case Trouble("renewal", why):
                self._not_renewed(Ended(why))
            case Trouble("dial", why):
                self._dial_failed(Ended(why))
            case Trouble(task, why):
                self._node.events.error(f"{task} failed", why=why)
            case ChangedOnDisk():
                self._node.events.warning("identity changed on disk")
                raise _LoadAnew
            case Stop():
                return

    # ---- the session

    def _dial(self, boottime_s: float) -> None:
        self._dialled += 1
        number, pair = self._dialled, self._pairs.pair
        self._leaves[number] = pair.leaf
        self._state = self._state.dialling(boottime_s)
        hello = Hello(self._journal.journal_id, self._node.boot_id, self._node.version, pair.key.kind.value)

        def dial() -> Event:
            connection = self._gateway.connect(pair)
            if not isinstance(connection, Ended):
                connection.start(hello, lambda heard: self._send(Said(number, heard)))
            return Dialled(number, connection)

        self._dialler.do("dial", dial)

    def _take_dialled(self, event: Dialled) -> None:
        if isinstance(event.result, Ended):
            if event.number == self._dialled:
                self._dial_failed(event.result)
        elif event.number != self._dialled or not self._state.link.dialling:
            # Given up meanwhile, or ended before this came: what was heard on it is settled.
            self._leaves.pop(event.number, None)
            event.result.close()
        else:
            self._connections[event.number] = event.result

    def _take_said(self, event: Said) -> None:
        number, heard = event.number, event.heard
        leaf = self._leaves.get(number)
        if leaf is None:
            return
        match heard:
            case Welcome():
                self._welcomed(number, heard)
            case Bundle(signed):
                self._store(None, signed)
            case RenewNow(reason):
                self._state = replace(self._state, renewal=self._state.renewal.told_to(self._node.clock.boottime_s()))
                self._node.events.info("the gateway asks to renew now", reason=reason)
            case Revoked(reason):
                self._revoked(leaf, reason)
            case Retired() if leaf.der == self._pairs.pair.leaf.der:
                raise _LoadAnew(leaf)
            case Retired():
                # The old pair's connection, after the new pair's first use.
                self._take_ended(number, Ended("the certificate was replaced"))
            case Ended():
                self._take_ended(number, heard)

    def _take_ended(self, number: int, ended: Ended) -> None:
        self._drop(number)
        if number == self._session:
            self._session_ended(ended)
        elif number == self._dialled and self._state.link.dialling:
            self._dial_failed(ended)

    def _welcomed(self, number: int, welcome: Welcome) -> None:
        clock = self._node.clock
        if number != self._dialled:
            return
        self._state = self._state.welcomed(welcome.server_time, clock.boottime_s())
        before, self._session = self._session, number
        # The old session has nothing left to say: whatever was on its way came before this Welcome.
        self._drop(before)
        now = self._now()
        self._node.events.info("session up", server_time=welcome.server_time)
        self._journal.session("up", now)
        self._store(self._state.reckoning.mark, welcome.signed_bundle)
        self._tell_plan()

    def _session_ended(self, ended: Ended) -> None:
        clock = self._node.clock
        self._session = 0
        self._node.events.warning("session ended", why=ended.why)
        self._journal.session(f"down: {ended.why}", self._now())
        self._state = self._state.session_ended(clock.boottime_s(), self._node.entropy.fraction(), ended.pushback_s)
        self._node.supervisor.tell(f"STATUS={self._status()}")

    def _dial_failed(self, ended: Ended) -> None:
        clock = self._node.clock
        boottime_s = clock.boottime_s()
        self._state = self._state.dial_failed(boottime_s, self._node.entropy.fraction(), ended.pushback_s, ended.never)
        link = self._state.link
        fields: dict[str, object] = {"attempt": link.failures, "next_in_s": round(link.earliest_s - boottime_s, 1)}
        if ended.refused:
            fields["wayBack"] = f"if this lasts: {WAY_BACK}"
        self._node.events.warning("no session", why=ended.why, **fields)
        if not link.up:
            self._journal.session(f"down: {ended.why}", self._now())
            self._node.supervisor.tell(f"STATUS={self._status()}")

    def _drop(self, number: int) -> None:
        connection = self._connections.pop(number, None)
        self._leaves.pop(number, None)
        if connection is not None:
            connection.close()

    def _revoked(self, leaf: Leaf, reason: str) -> None:
        """The notice, or its like: this identity is dead, unless the disk has another by now."""
        node = self._node
        try:
            node.change.stored(leaf)
        except (IdentityChanged, Failure):
            raise TryLater(Message.ANOTHER_LEAF) from None
        node.events.error("certificate revoked", reason=reason, node=leaf.spiffe_id.node, wayBack=WAY_BACK)
        self._journal.session(f"revoked: {reason}", self._now())
        raise IdentityDead(Message.REVOKED)

    # ---- on the thread that writes

    def _renew(self) -> Event:
        node, pair = self._node, self._pairs.pair
        connection = self._connections.get(self._session)
        own = None
        if connection is None or self._leaves.get(self._session) != pair.leaf:
            found = self._gateway.connect(pair)
            if isinstance(found, Ended):
                return RenewalEnded(NotRenewed(found, self._next_key))
            connection = own = found
        try:
            outcome = node.renew(pair, connection, self._now(), self._next_key)
            if isinstance(outcome, NewPair):
                # On this thread, before its next task looks at the disk.
                self._pairs.replace(outcome.pair, node.clock.boottime_s())
            return RenewalEnded(outcome)
        except IdentityChanged:
            return ChangedOnDisk()
        finally:
            if own is not None:
                own.close()

    def _store(self, mark: datetime | None, signed_bundle: bytes) -> None:
        def store() -> Event | None:
            if mark is not None:
                self._journal.heard(mark)
            try:
                # The pair in use as it is now: the task before this one may have been a renewal.
                self._node.take_in(self._pairs.pair.leaf, mark, signed_bundle or None)
            except IdentityChanged:
                return ChangedOnDisk()
            return None

        self._writer.do("storing what the gateway told", store)

    def _look_at_disk(self) -> Event | None:
        try:
            # Without the lock: identity.json is replaced in one step, and only this thread does it here.
            self._node.renew.change.stored(self._pairs.pair.leaf)
        except IdentityChanged:
            return ChangedOnDisk()
        return None

    # ---- renewal

    def _take_renewal(self, event: RenewalEnded) -> None:
        outcome = event.outcome
        match outcome:
            case NewPair(pair, _, server_time):
                boottime_s = self._node.clock.boottime_s()
                self._next_key = None
                # A session with the old pair goes on until the new one is welcome.
                self._state = self._state.renewed(pair.leaf, server_time, boottime_s)
                self._journal.attempted(self._now(), 0, "")
                self._node.events.info("renewed", not_after=pair.leaf.not_after)
                self._tell_plan()
            case NotRenewed(ended, next_key):
                self._next_key = next_key
                self._not_renewed(ended)
            case Revoked(reason):
                self._revoked(self._pairs.pair.leaf, reason)
            case Retired():
                raise _LoadAnew(self._pairs.pair.leaf)

    def _not_renewed(self, ended: Ended) -> None:
        clock = self._node.clock
        self._state = self._state.not_renewed(
            clock.now(), clock.boottime_s(), self._node.entropy.fraction(), ended.pushback_s, ended.never
        )
        failures = self._state.renewal.failures
        fields: dict[str, object] = {"attempt": failures, "expiresIn": _span(self._left_s()), "why": ended.why}
        if ended.refused:
            fields["wayBack"] = f"if this lasts: {WAY_BACK}"
        self._node.events.warning("renewal failed", **fields)
        self._journal.attempted(self._now(), failures, ended.why)
        self._tell_plan()

    # ---- telling

    def _tell_plan(self) -> None:
        clock = self._node.clock
        now = self._now()
        planned = self._state.renewal.planned(self._state.leaf, now, clock.boottime_s())
        self._journal.planned(planned)
        self._node.events.info("next renewal planned", at=planned, expiresIn=_span(self._left_s()))
        self._node.supervisor.tell(f"STATUS={self._status()}")

    def _tell_expired(self, boottime_s: float) -> None:
        self._state = replace(self._state, told_expired_s=boottime_s)
        self._node.events.error(
            "the certificate expired, or the clock is wrong; the node stays up and keeps asking",
            notAfter=self._state.leaf.not_after,
            clock=self._node.clock.now(),
            serverTimeMark=self._state.reckoning.mark or "none",
            wayBack=WAY_BACK,
        )

    def _status(self) -> str:
        session = "session up" if self._state.link.up else "no session"
        return f"{session}; certificate until {self._state.leaf.not_after:%Y-%m-%dT%H:%M:%SZ}"

    def _count_signatures(self) -> None:
        counted: dict[bytes, int] = {}
        while True:
            try:
                spki = self._signatures.get_nowait()
            except queue.Empty:
                break
            counted[spki] = counted.get(spki, 0) + 1
        for spki, count in counted.items():
            self._journal.signed(_kid(spki), count)

    def _now(self) -> datetime:
        clock = self._node.clock
        return self._state.now(clock.now(), clock.boottime_s())

    def _left_s(self) -> float:
        return (self._state.leaf.not_after - self._now()).total_seconds()


class _Worker:
    """A thread that carries tasks out one after another and puts what they return, or why they failed, in the inbox."""

    def __init__(self, name: str, send: "Callable[[Event], None]") -> None:
        self._tasks: queue.SimpleQueue[tuple[str, Callable[[], Event | None]] | None] = queue.SimpleQueue()
        self._send = send
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def do(self, name: str, task: Callable[[], Event | None]) -> None:
        self._tasks.put((name, task))

    def end(self) -> None:
        """No further task; one under way is left to itself."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            name, work = task
            try:
                event = work()
            except Failure as failure:
                event = Trouble(name, failure.text)
            except Exception as error:  # noqa: BLE001 - a defect here costs an attempt, never the node
                event = Trouble(name, f"internal error ({type(error).__name__}: {error})")
            if event is not None:
                self._send(event)


def _kid(spki: bytes) -> str:
    from bcd.protocol.pki import ecdsa

    return ecdsa.thumbprint(ecdsa.public_key(spki))


def _span(seconds: float) -> str:
    sign, whole = ("-", -int(seconds)) if seconds < 0 else ("", int(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{sign}{hours}h{minutes}m{rest}s" if hours else f"{sign}{minutes}m{rest}s" if minutes else f"{sign}{rest}s"
