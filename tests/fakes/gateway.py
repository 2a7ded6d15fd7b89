"""Port `Gateway` in memory: with a true time of its own; certifies, welcomes, and says what a test wants."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import (
    Connection,
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
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements
from tests.fakes import pki

BUNDLE = pki.trust_bundle().SerializeToString(deterministic=True)
CLOSED = Ended("the connection was closed")
REFUSED = Ended("connection refused")


def renewed(
    request: bytes,
    *,
    by: object = pki.SIGNING_KEY,
    server_time: datetime = pki.NOW,
    answers: bytes | None = None,
    bundle: pb.SignedStatement | None = None,
    purpose: statements.Purpose = statements.Purpose.RENEW_RESPONSE,
    **departures: object,
) -> Renewed:
    """The answer to `request`: a leaf for its key, from NOW on; each part may depart."""
    told: dict[str, object] = {
        "key": ecdsa.public_key(csr.key_of(request)),
        "not_before": pki.NOW,
        "not_after": pki.NOW + timedelta(hours=24),
    }
    payload = pki.response_payload(
        request=request if answers is None else answers,
        certificates=pki.chain(**(told | departures)),
        bundle=bundle,
        server_time=server_time,
    )
    return Renewed(pki.signed(purpose, payload, by).SerializeToString(deterministic=True), server_time)  # type: ignore[arg-type]


@dataclass(eq=False)
class MemoryConnection:
    gateway: "MemoryGateway"
    pair: Pair
    hello: Hello | None = None
    closed: bool = False
    over: bool = False
    deliver: Callable[[Heard], None] | None = None
    asked: list[RenewQuestion] = field(default_factory=list)

    def start(self, hello: Hello, deliver: Callable[[Heard], None]) -> None:
        if self.closed:
            return
        self.hello, self.deliver = hello, deliver
        self.gateway.used.append(("hello", self.pair.leaf))
        self.gateway.on_hello(self)

    def renew(self, question: RenewQuestion) -> RenewAnswer:
        if self.closed:
            return CLOSED
        self.asked.append(question)
        self.gateway.used.append(("renew", self.pair.leaf))
        return self.gateway.on_renew(self, question)

    def close(self) -> None:
        self.closed = True

    @property
    def live(self) -> bool:
        return self.hello is not None and not self.closed and not self.over

    def say(self, heard: Heard) -> None:
        """To the node, unless it hung up."""
        if self.closed or self.over:
            return
        assert self.deliver is not None
        self.over = isinstance(heard, Ended | Revoked | Retired)
        self.deliver(heard)


class MemoryGateway:
    """`used` is what reached it with which leaf, in order. What it answers is in `connects`, `on_hello` and `on_renew`:
    a test replaces them; as they are they do what the control plane does with a node that is in order."""

    def __init__(
        self, now: Callable[[], datetime], lifetime: timedelta = timedelta(hours=24), issuer: pki.Ca = pki.CA
    ) -> None:
        self.now = now
        self.issuer = issuer
        self.lifetime = lifetime
        self.connections: list[MemoryConnection] = []
        self.used: list[tuple[str, Leaf]] = []
        self.answered: dict[tuple[bytes, bytes], bytes] = {}
        self.connects: Callable[[Pair], Ended | None] = self.reachable
        self.on_hello: Callable[[MemoryConnection], None] = self.welcome
        self.on_renew: Callable[[MemoryConnection, RenewQuestion], RenewAnswer] = self.certify
        self.signed: Callable[[bytes], None] = lambda spki: None

    def __call__(self, signed: Callable[[bytes], None]) -> "MemoryGateway":
        """As what makes a gateway for each life."""
        self.signed = signed
        return self

    def connect(self, pair: Pair) -> Connection | Ended:
        refused = self.connects(pair)
        if refused is not None:
            return refused
        connection = MemoryConnection(self, pair)
        self.connections.append(connection)
        return connection

    # What it does by itself

    def reachable(self, pair: Pair) -> Ended | None:
        self.signed(pair.leaf.spki)
        # As seen with gRPC: a certificate out of date looks like a network fault.
        return None if pair.leaf.not_before <= self.now() < pair.leaf.not_after else Ended("Socket closed")

    def welcome(self, connection: MemoryConnection) -> None:
        connection.say(Welcome(self.now(), BUNDLE))

    def certify(self, connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        now = self.now().astimezone(UTC).replace(microsecond=0)
        if not connection.pair.leaf.not_before <= now < connection.pair.leaf.not_after:
            return Ended("UNAUTHENTICATED: expired", refused=True)
        asked = (connection.pair.leaf.der, question.csr)
        if asked not in self.answered:
            begin = now - min(timedelta(minutes=5), self.lifetime / 10)
            end = begin + self.lifetime
            answer = renewed(question.csr, issuer=self.issuer, server_time=now, not_before=begin, not_after=end)
            self.answered[asked] = answer.signed
        return Renewed(self.answered[asked], now)

    # What a test asks of it

    @property
    def sessions(self) -> list[MemoryConnection]:
        return [connection for connection in self.connections if connection.live]

    @property
    def session(self) -> MemoryConnection:
        (only,) = self.sessions
        return only

    def say(self, heard: Heard) -> None:
        """To every node that listens."""
        for connection in self.sessions:
            connection.say(heard)

    def answer(self, answer: RenewAnswer) -> None:
        """From now on, to every Renew."""
        self.on_renew = lambda connection, question: answer

    def welcome_with(self, heard: Heard) -> None:
        """From now on, to every Hello."""
        self.on_hello = lambda connection: connection.say(heard)

    def refuse(self, why: Ended = REFUSED) -> None:
        self.connects = lambda pair: why

    def accept(self) -> None:
        self.connects = self.reachable
        self.on_hello = self.welcome
        self.on_renew = self.certify
