"""A machine's life: the real lifecycle objects on any disk, and the control plane in memory at the other end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.fs.syscalls import Syscalls
from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.controlplane.domain import gateway as answers
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.join import Joined
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.renew import NextKey, Renew, RenewOutcome
from bcd.domain.lifecycle.reset import Reset
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model.claims import Claims
from bcd.domain.model.datadir import KEY, MAX_FILE_BYTES, NEXT_KEY, Moved
from bcd.domain.model.identity import Identity
from bcd.domain.model.keys import KeyState
from bcd.domain.model.loading import Loaded
from bcd.domain.model.pins import Pin, Pins
from bcd.ports.gateway import (
    Ended,
    Heard,
    Hello,
    Pair,
    RenewAnswer,
    Renewed,
    RenewQuestion,
    Retired,
    Revoked,
    Welcome,
)
from bcd.ports.keys import NodeKey
from tests.fakes import joining, pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.clock import ManualClock
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.joining import ANY_NODE, Credential, Recorded
from tests.fakes.memory_transport import MemoryTransport

HELLO_SENT = "Hello sent"
RENEW_SENT = "Renew sent"
LOST = Ended("the answer was lost")


class NumberedKeys(FileKeys):
    """Makes the same keys in every run, never the same twice in one; each is kept in `made`."""

    def __init__(self, first: int = 500_000) -> None:
        self._numbers = count(first)
        self.made: list[bytes] = []

    def create(self) -> NodeKey:
        key = FileKey(pki.private_key(next(self._numbers)))
        self.made.append(key.spki)
        return key


class Line:
    """Port `Connection` of one pair, straight to the control plane. `sends` is told what leaves the machine."""

    def __init__(self, plane: MemoryControlPlane, pair: Pair, sends: Callable[[str], None], source: str) -> None:
        self._plane = plane
        self._pair = pair
        self._sends = sends
        self._source = source

    def hello(self) -> Heard:
        self._sends(HELLO_SENT)
        return self.answer_to_hello()

    def answer_to_hello(self) -> Heard:
        answer = self._plane.hello(self._pair.leaf.der, self._source)
        if isinstance(answer, answers.Welcomed):
            return Welcome(answer.server_time, answer.bundle.signed)
        return told(answer)

    def renew(self, question: RenewQuestion) -> RenewAnswer:
        self._sends(RENEW_SENT)
        return self.answer_to_renew(question)

    def answer_to_renew(self, question: RenewQuestion) -> RenewAnswer:
        answer = self._plane.renew(self._pair.leaf.der, question.csr, question.renew_pop, self._source, question.chain)
        if isinstance(answer, answers.Renewed):
            return Renewed(answer.signed, answer.server_time)
        return told(answer)

    def start(self, hello: Hello, deliver: Callable[[Heard], None]) -> None:
        deliver(self.hello())

    def close(self) -> None:
        """Nothing is open."""


def told(no: answers.No) -> Revoked | Retired | Ended:
    """What a node makes of a refusal as it crosses the wire (adapters.grpc.status, and answers at the other end)."""
    match no:
        case answers.Dead(reason):
            return Revoked(reason)
        case answers.Superseded():
            return Retired()
        case answers.Full(wait):
            return Ended("renewal quota used up", pushback_s=wait.total_seconds())
        case answers.Declined() | answers.Malformed():
            return Ended(repr(no), declined=True)
        case _:
            return Ended(repr(no))


@dataclass(frozen=True)
class _Hardware:
    found: Claims

    def claims(self) -> Claims:
        return self.found


@dataclass
class Life:
    """One data directory and what works in it. `source` is where the machine's calls come from."""

    disk: Syscalls
    path: str
    plane: MemoryControlPlane
    clock: ManualClock
    keys: FileKeys = field(default_factory=NumberedKeys)
    sends: Callable[[str], None] = lambda what: None
    source: str = "192.0.2.1"
    claims: Claims = field(default_factory=lambda: Claims(hostname="metal"))

    def __post_init__(self) -> None:
        self.events = Recorded()
        self.pins = Pins((Pin(self.plane.signing_pin),))
        self.fs = LocalFs(self.path, self.clock, syscalls=self.disk)
        self.load = Load(self.fs, self.keys, self.events, self.path)
        self.change = ChangeIdentity(self.fs)
        self.renewing = Renew(self.fs, self.keys, MemoryAttestor(), self.change, self.pins)
        self.take_in = TakeIn(self.fs, self.change, self.events, self.pins)
        self.resetting = Reset(self.fs, self.clock, self.events)

    def join(self, token: str | None = None) -> Joined:
        """`bcd join`, with a token or without."""
        join = joining.join(
            self.fs,
            self.path,
            MemoryTransport(self.plane),
            Credential(token.encode() if token is not None else None),
            clock=self.clock,
            events=self.events,
            keys=self.keys,
            hardware=_Hardware(self.claims),
            recipient=lambda: self.plane.recipient,
            signing_pins=self.pins,
        )
        return join(ANY_NODE)

    def reset(self) -> tuple[Moved, ...]:
        with self.fs.lock(0):
            return self.resetting()

    def start(self) -> Pair:
        """As a node starts: the identity loaded, its files put in order. A Failure when it does not load."""
        with self.fs.lock(0):
            loaded = self.load()
        assert isinstance(loaded, Loaded), loaded
        return self.pair_of(loaded.identity)

    def start_as_is(self) -> Pair:
        """As a node starts whose disk cannot be written to."""
        found = self.load.look()
        assert isinstance(found, Loaded), found
        return self.pair_of(found.identity)

    def pair_of(self, identity: Identity) -> Pair:
        for name in (KEY, NEXT_KEY):
            record = self.fs.read(name, MAX_FILE_BYTES)
            key = self.keys.open(record) if record is not None else None
            if key is not None and not isinstance(key, KeyState) and key.spki == identity.leaf.spki:
                return Pair(identity.leaf, identity.chain, key)
        raise AssertionError("the identity loads, and there is no key for it")

    def line(self, pair: Pair) -> Line:
        return Line(self.plane, pair, self.sends, self.source)

    def dial(self, pair: Pair) -> Heard:
        """Hello; what a Welcome tells is stored."""
        heard = self.line(pair).hello()
        if isinstance(heard, Welcome):
            self.take_in(pair.leaf, heard.server_time, heard.signed_bundle)
        return heard

    def renew(self, pair: Pair, next_key: NextKey | None = None, at: datetime | None = None) -> RenewOutcome:
        return self.renewing(pair, self.line(pair), at or self.clock.now(), next_key)
