"""Gateways that a test can tell what to say: one in memory, and one over gRPC with mutual TLS."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from bcd.adapters.grpc.gateway import GrpcGateway
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.host.clock import SystemClock
from bcd.domain.model.keys import KeyKind
from bcd.ports.gateway import (
    Connection,
    Ended,
    Gateway,
    Heard,
    Hello,
    Pair,
    RenewAnswer,
    Renewed,
    RenewQuestion,
    Welcome,
)
from bcd.protocol.files.config import Address
from tests.fakes import pki
from tests.fakes.gateway import BUNDLE, MemoryConnection, MemoryGateway
from tests.fakes.gateway_server import SERVING, Behaviour, gateway_server, node_pair
from tests.fakes.tls import REAL_NOW

HELLO = Hello("j" * 32, "boot-1", "1.2.3", "file")
PROOF = pki.signed(pki.statements.Purpose.RENEW_POP, b"proof", pki.NODE_KEY).SerializeToString(deterministic=True)
QUESTION = RenewQuestion(pki.CSR, (b"leaf", b"issuer"), REAL_NOW, PROOF)
STATEMENT = pki.signed(pki.statements.Purpose.RENEW_RESPONSE, b"answer").SerializeToString(deterministic=True)
RENEWED = Renewed(STATEMENT, REAL_NOW)
WELCOME = Welcome(REAL_NOW, BUNDLE)
# What a test waits for comes in milliseconds; one that waits so long has found a hang.
SOON_S = 20.0


class Ears:
    """Takes what a connection delivers."""

    def __init__(self) -> None:
        self.heard: queue.Queue[Heard] = queue.Queue()

    def __call__(self, heard: Heard) -> None:
        self.heard.put(heard)

    def next(self) -> Heard:
        return self.heard.get(timeout=SOON_S)

    @property
    def silent(self) -> bool:
        return self.heard.empty()


class Rig(Protocol):
    """A gateway, a pair it takes, and how to tell it what to say. `hellos` and `asked` are what reached it."""

    gateway: Gateway
    pair: Pair

    def says(self, *heard: Heard) -> None: ...

    def answers(self, answer: RenewAnswer) -> None: ...

    @property
    def hellos(self) -> list[Hello]: ...

    @property
    def asked(self) -> list[RenewQuestion]: ...


class MemoryRig:
    def __init__(self) -> None:
        self.pair = node_pair()
        self.gateway = MemoryGateway(lambda: REAL_NOW)

    def says(self, *heard: Heard) -> None:
        def say(connection: MemoryConnection) -> None:
            for one in heard:
                connection.say(one)

        self.gateway.on_hello = say

    def answers(self, answer: RenewAnswer) -> None:
        self.gateway.answer(answer)

    @property
    def hellos(self) -> list[Hello]:
        return [connection.hello for connection in self.gateway.connections if connection.hello]

    @property
    def asked(self) -> list[RenewQuestion]:
        return [question for connection in self.gateway.connections for question in connection.asked]


class GrpcRig:
    def __init__(self, port: int, behaviour: Behaviour, ca_file: Callable[[], bytes | None] = lambda: None) -> None:
        self.behaviour = behaviour
        self.pair = node_pair()
        self.signed: list[bytes] = []
        address = Address("127.0.0.1", port)
        self.roots = Roots(address, pins=SERVING.pins, config_path="c", clock=SystemClock(), ca_file=ca_file)
        self.gateway = GrpcGateway(address, self.roots, self.signed.append)
        self.says = behaviour.says
        self.answers = behaviour.answers
        self.hellos = behaviour.hellos
        self.asked = behaviour.asked


@contextlib.contextmanager
def memory() -> Iterator[Rig]:
    yield MemoryRig()


@contextlib.contextmanager
def over_grpc() -> Iterator[GrpcRig]:
    behaviour = Behaviour()
    with gateway_server(behaviour) as port:
        yield GrpcRig(port, behaviour)


@contextlib.contextmanager
def connected(rig: Rig) -> Iterator[Connection]:
    connection = rig.gateway.connect(rig.pair)
    assert not isinstance(connection, Ended), connection.why
    try:
        yield connection
    finally:
        connection.close()


def session(rig: Rig, *says: Heard) -> list[Heard]:
    """What is delivered when these are said and then nothing more."""
    rig.says(*says)
    ears = Ears()
    with connected(rig) as connection:
        connection.start(HELLO, ears)
        found = [ears.next() for _ in says]
    assert ears.silent
    return found


def renewal(rig: Rig, answer: RenewAnswer) -> RenewAnswer:
    rig.answers(answer)
    with connected(rig) as connection:
        return connection.renew(QUESTION)


def settle() -> None:
    """Every thread of ours has ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("bcd-"):
            thread.join(SOON_S)
            assert not thread.is_alive(), thread.name


class Key:
    """A node key that is wrong in one way."""

    kind = KeyKind.FILE
    record = b""

    def __init__(self, sign: Callable[[bytes], bytes]) -> None:
        self.sign = sign
        self.spki = pki.spki(pki.NODE_KEY)

    def request(self) -> bytes:
        return b""
