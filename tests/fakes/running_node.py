"""A whole `bcd node` in a simulated world: real rules and files, fakes at every other port, and no time of the test's.

The node asks its inbox to wait; the world then goes on to the next thing on its agenda, or to the end of the wait.
Workers are done with what they are given at once, unless the world holds their kind of task up."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bcd.adapters.fs.local import LocalFs
from bcd.app.inbox import Event, Inbox, Send
from bcd.app.node import Node
from bcd.app.worker import Task, Worker, outcome
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.renew import Renew
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model.datadir import IDENTITY, KEY
from bcd.domain.model.identity import Leaf
from bcd.domain.model.loading import Loaded
from bcd.ports.entropy import Entropy
from bcd.ports.gateway import Ended
from bcd.ports.journal import NodeJournal
from bcd.protocol.files import identity_json
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.disk_changes import Create, Rename, Unlink
from tests.fakes.gateway import MemoryGateway
from tests.fakes.joining import Half
from tests.fakes.memory_node import PATH, MemoryNode, identity, record

# More looks than this in a run are a node that spins.
MOST_LOOKS = 12_000
HOUR_S = 3600.0
# The first renewal of a world's node, after its beginning: 60 to 65 % less the 10 % that are over by then.
RENEWS_S = 0.55 * 24 * HOUR_S
GOES_ON = (
    Ended("UNAUTHENTICATED", refused=True),
    Ended("PERMISSION_DENIED", refused=True),
    Ended("UNKNOWN: internal"),
    Ended("UNIMPLEMENTED"),
    Ended("the server's certificate is for another host name", refused=True),
    Ended("UNAVAILABLE", pushback_s=300.0),
    Ended("RESOURCE_EXHAUSTED", never=True),
)


class MemoryJournal:
    """Port `NodeJournal` in memory."""

    def __init__(self, server_time: datetime | None = None) -> None:
        self.journal_id = "0123456789abcdef" * 2
        self.server_time = server_time
        self.sessions: list[str] = []
        self.plans: list[datetime] = []
        self.attempts: list[tuple[datetime, int, str]] = []
        self.signatures: dict[str, int] = {}
        self.closed = 0

    def heard(self, server_time: datetime) -> None:
        self.server_time = server_time if self.server_time is None else max(server_time, self.server_time)

    def session(self, state: str, at: datetime) -> None:
        self.sessions.append(state)

    def planned(self, at: datetime) -> None:
        self.plans.append(at)

    def attempted(self, at: datetime, failures: int, error: str) -> None:
        self.attempts.append((at, failures, error))

    def signed(self, kid: str, count: int) -> None:
        self.signatures[kid] = self.signatures.get(kid, 0) + count

    def close(self) -> None:
        self.closed += 1


class MemorySupervisor:
    """Port `Supervisor`: kept."""

    def __init__(self, watchdog_s: float | None = None) -> None:
        self.limit_s = watchdog_s
        self.lines: list[str] = []

    def watchdog_s(self) -> float | None:
        return self.limit_s

    def tell(self, *lines: str) -> None:
        self.lines += lines


class WorldInbox(Inbox):
    """Waits by letting the world go on."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    def get(self, timeout_s: float) -> Event | None:
        if self._queue.empty():
            self._world.sleep(timeout_s)
        return super().get(0.0)


@dataclass
class InlineWorker:
    """A `Worker` that is done at once."""

    world: "World"
    send: Send
    ended: bool = False

    def do(self, name: str, task: Task) -> None:
        if name == "look at the disk" and not self.world.looks_different():
            # It would find what the one before it found; there are thousands of them in a day.
            return
        if name in self.world.held_up:
            self.world.waiting.append(lambda: self._carry_out(name, task))
        else:
            self._carry_out(name, task)

    def end(self) -> None:
        self.ended = True

    def _carry_out(self, name: str, task: Task) -> None:
        event = outcome(name, task)
        if event is not None:
            self.send(event)


@dataclass
class World:
    """`true` is what time it is; the gateway's clock differs by `gateway_off`. The node's clocks are its own."""

    lifetime: timedelta = timedelta(hours=24)
    begin: datetime = pki.NOW
    node: MemoryNode = field(default_factory=MemoryNode)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    supervisor: MemorySupervisor = field(default_factory=MemorySupervisor)
    entropy: Entropy = field(default_factory=Half)
    tpm_wait_s: float = 0.0
    attestor: MemoryAttestor = field(default_factory=MemoryAttestor)
    make_worker: Callable[[str, Send], Worker] | None = None

    def __post_init__(self) -> None:
        self.true = self.begin
        month = timedelta(days=30)
        issuer = pki.ca(not_before=self.begin - month, not_after=self.begin + month)
        self.gateway_off = timedelta(0)
        self.gateway = MemoryGateway(lambda: self.true + self.gateway_off, self.lifetime, issuer)
        self.clock = self.node.clock
        self.clock.set(self.begin)
        self.events = self.node.events
        self.inbox: Inbox = WorldInbox(self)
        self.held_up: set[str] = set()
        self.waiting: list[Callable[[], None]] = []
        self.looks = 0
        self._seen: bytes | None = None
        self.loads = 0
        self._agenda: list[tuple[datetime, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        if IDENTITY not in self.node.files:
            begin = self.true - self.lifetime / 10
            held = identity(issuer=issuer, not_before=begin, not_after=begin + self.lifetime)
            self.node.put(IDENTITY, identity_json.encode(replace(held, server_time=self.true)))
            self.node.put(KEY, record())
        self.first = self.leaf

    # What happens in it

    def at(self, after_s: float, what: Callable[[], object]) -> None:
        """Once so much true time has passed since the world began."""
        when = self.begin + timedelta(seconds=after_s)
        heapq.heappush(self._agenda, (when, next(self._numbers), what))

    def every(self, step_s: float, until_s: float, what: Callable[[], object]) -> None:
        for number in range(1, int(until_s / step_s) + 1):
            self.at(number * step_s, what)

    def sleep(self, seconds: float) -> None:
        """Nobody does anything for that long, or until the next thing on the agenda."""
        self.looks += 1
        assert self.looks < MOST_LOOKS, "the node spins"
        end = self.true + timedelta(seconds=seconds)
        if not self._agenda or self._agenda[0][0] > end:
            self.pass_time(seconds)
            return
        when, _, what = heapq.heappop(self._agenda)
        self.pass_time(max(0.0, (when - self.true).total_seconds()))
        what()

    def pass_time(self, seconds: float, *, boottime: bool = True, wall: bool = True) -> None:
        self.true += timedelta(seconds=seconds)
        before = self.clock.now()
        if boottime:
            self.clock.forward(seconds)
        self.clock.set(before + timedelta(seconds=seconds if wall else 0))
        for connection in self.gateway.sessions:
            if connection.pair.leaf.not_after <= self.gateway.now():
                connection.say(Ended("the certificate has expired"))

    def suspend(self, seconds: float, *, boottime: bool = True, wall: bool = True) -> None:
        """The machine sleeps; whoever was connected to it is not any more."""
        self.pass_time(seconds, boottime=boottime, wall=wall)
        self.gateway.say(Ended("Socket closed"))

    def step_wall(self, by: timedelta) -> None:
        self.clock.set(self.clock.now() + by)

    def looks_different(self) -> bool:
        """Whether the identity on the disk is another file than at the last look."""
        found = self.files.get(IDENTITY)
        before, self._seen = self._seen, found
        return found is None or found != before

    def release(self) -> None:
        """What was held up is carried out."""
        self.held_up.clear()
        waiting, self.waiting = self.waiting, []
        for task in waiting:
            task()

    # The node in it

    def run(self, seconds: float) -> "World":
        """The node for so much true time from now, and SIGTERM. Raises what ends it before."""
        self.at((self.true - self.begin).total_seconds() + seconds, self.inbox.stop)
        self.start()
        return self

    def start(self) -> None:
        node, writing = self.node, LocalFs(PATH, self.clock, None, self.node.disk)
        change = ChangeIdentity(writing)
        Node(
            fs=node.fs,
            load=node.load,
            keys=node.keys,
            change=ChangeIdentity(node.fs),
            renew=Renew(writing, node.keys, self.attestor, change, pki.PINS),
            take_in=TakeIn(writing, change, self.events, pki.PINS),
            gateway=self.gateway,
            open_journal=self._open_journal,
            check=lambda: None,
            clock=self.clock,
            entropy=self.entropy,
            events=self.events,
            supervisor=self.supervisor,
            boot_id="boot",
            version="0.0.0-test",
            tpm_wait_s=self.tpm_wait_s,
            worker=self.make_worker or (lambda name, send: InlineWorker(self, send)),
        )(self.inbox)

    def _open_journal(self, loaded: Loaded) -> NodeJournal:
        self.loads += 1
        return self.journal

    # What became of it

    @property
    def files(self) -> dict[str, bytes]:
        return self.node.files

    @property
    def leaf(self) -> Leaf:
        """The one on the disk."""
        return identity_json.decode(self.files[IDENTITY]).leaf

    def put_another_identity(self) -> Leaf:
        """A reset and a join by somebody else."""
        self.node.joined(serial=4712, not_before=self.first.not_before, not_after=self.first.not_after)
        return self.leaf

    def used(self, what: str) -> list[Leaf]:
        """The leaves with which "hello" or "renew" reached the gateway, in order."""
        return [leaf for how, leaf in self.gateway.used if how == what]

    def told(self, text: str) -> list[dict[str, object]]:
        """The fields of each log line with that text."""
        return [fields for _, found, fields in self.events.lines if found == text]


def changes(world: World) -> int:
    return sum(isinstance(change, Create | Rename | Unlink) for change in world.node.disk.trace)
