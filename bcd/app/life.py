"""One identity's time, from a load to the next: what happened in, what to do out. domain.model.running decides."""

from dataclasses import replace

from bcd.app.inbox import ChangedOnDisk, Event, Inbox, NotDialled, RenewalEnded, Said, Stop, Trouble
from bcd.app.pairs import PairInUse
from bcd.app.parts import Held, LoadAnew, Parts
from bcd.app.session import Session
from bcd.app.telling import Telling
from bcd.app.writing import Writing
from bcd.domain.lifecycle.renew import NewPair
from bcd.domain.model.identity import Identity, Leaf
from bcd.domain.model.reckoning import Reckoning
from bcd.domain.model.running import Running, Todo
from bcd.ports.gateway import Ended, Pair
from bcd.ports.journal import NodeJournal

# A floor to every wait: a clock that steps between two looks must not make the loop spin.
LEAST_WAIT_S = 0.02


class Life:
    """`retired` is a leaf that the gateway said was replaced, as a life before this one heard it."""

    def __init__(
        self,
        parts: Parts,
        inbox: Inbox,
        *,
        identity: Identity,
        pair: Pair,
        journal: NodeJournal,
        retired: Leaf | None,
    ) -> None:
        self._parts = parts
        self._inbox = inbox
        now_s = parts.clock.boottime_s()
        marks = [at for at in (identity.server_time, journal.server_time) if at is not None]
        reckoning = Reckoning(max(marks) if marks else None, now_s)
        state = Running(pair.leaf, reckoning, held_s=now_s, looked_s=now_s)
        self._held = Held(parts.clock, journal, PairInUse(pair), state)
        self._telling = Telling(parts, self._held)
        gateway, send = parts.gateway(self._telling.signatures.put), inbox.begin()
        self._session = Session(parts, self._held, self._telling, gateway=gateway, send=send)
        self._writing = Writing(
            parts, self._held, self._telling, gateway=gateway, open_with=self._session.open_with, send=send
        )
        if retired is not None and retired.der == pair.leaf.der:
            self._telling.retired(retired)
            self._held.state = state.retired(now_s, parts.entropy.fraction())

    def __call__(self) -> None:
        """Until the inbox holds a Stop; LoadAnew, or the Failure that ends the node."""
        self._telling.ready()
        try:
            while True:
                self._start_what_is_due()
                event = self._next()
                if isinstance(event, Stop):
                    self._telling.stopping()
                    return
                if event is not None:
                    self._take(event)
        finally:
            self._session.end()
            self._writing.end()

    def _next(self) -> Event | None:
        clock, watchdog_s = self._held.clock, self._parts.supervisor.watchdog_s()
        wait_s = self._held.state.wait_s(clock.now(), clock.boottime_s())
        if watchdog_s is not None:
            wait_s = min(wait_s, watchdog_s / 2)
        event = self._inbox.get(max(LEAST_WAIT_S, wait_s))
        if watchdog_s is not None:
            self._parts.supervisor.tell("WATCHDOG=1")
        return event

    def _start_what_is_due(self) -> None:
        held = self._held
        boottime_s = held.clock.boottime_s()
        self._writing.release(held.pairs.let_go(boottime_s))
        self._telling.count_signatures()
        for todo in held.state.todo(held.clock.now(), boottime_s):
            match todo:
                case Todo.DIAL:
                    self._session.dial(boottime_s)
                case Todo.GIVE_DIAL_UP:
                    self._session.give_dial_up()
                case Todo.RENEW:
                    self._writing.renew()
                case Todo.TELL_EXPIRED:
                    held.state = replace(held.state, told_expired_s=boottime_s)
                    self._telling.expired()
                case Todo.LOOK_AT_DISK:
                    self._writing.look_at_disk(boottime_s)

    def _take(self, event: Event) -> None:
        match event:
            case NotDialled():
                self._session.take_not_dialled(event)
            case Said():
                self._session.take_said(event, self._writing.store)
            case RenewalEnded(outcome):
                if isinstance(outcome, NewPair):
                    # A dial under way is with the old pair: nothing is sent with that any more.
                    self._session.drop_dial()
                self._writing.take_renewal(outcome)
            case Trouble("renewal", why):
                self._writing.not_renewed(Ended(why))
            case Trouble("dial", why):
                self._session.dial_broke(why)
            case Trouble(task, why):
                self._parts.events.error(f"{task} failed", why=why)
            case ChangedOnDisk():
                self._parts.events.warning("identity changed on disk")
                raise LoadAnew
            case Stop():
                return
