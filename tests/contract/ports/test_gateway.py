"""The port `Gateway`: one contract over gRPC with mutual TLS and over the one in memory; and what only gRPC does."""

import contextlib
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import grpc
import pytest
from grpc import experimental
from hypothesis import given
from hypothesis import strategies as st

from bcd.adapters.grpc import pinned
from bcd.adapters.grpc.gateway import GrpcGateway
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.grpc.signer import Signer, is_client_verify
from bcd.adapters.host.clock import SystemClock
from bcd.adapters.keys.file import FileKey
from bcd.domain.model.keys import KeyKind
from bcd.ports.gateway import (
    Bundle,
    Connection,
    Ended,
    Gateway,
    Heard,
    Hello,
    Pair,
    RenewAnswer,
    Renewed,
    RenewNow,
    RenewQuestion,
    Retired,
    Revoked,
    Welcome,
)
from bcd.protocol.files.config import Address
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from tests.fakes import pki, tls
from tests.fakes.contracts import checks_of
from tests.fakes.gateway import BUNDLE, MemoryConnection, MemoryGateway
from tests.fakes.gateway_server import NODE_ROOT, SERVING, Behaviour, error_info, gateway_server, node_pair, stay
from tests.fakes.properties import few
from tests.fakes.tls import REAL_NOW, ServingCa

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


class GatewayContract:
    @staticmethod
    def hello_arrives_as_it_was_said(rig: Rig) -> None:
        session(rig, WELCOME)
        assert rig.hellos == [HELLO]

    @staticmethod
    def everything_said_is_delivered_in_order(rig: Rig) -> None:
        said = (
            WELCOME,
            Bundle(BUNDLE),
            RenewNow("quota"),
            Bundle(BUNDLE),
            Welcome(REAL_NOW + timedelta(seconds=1), b""),
        )
        assert session(rig, *said) == list(said)

    @staticmethod
    def a_notice_of_revocation_is_the_last_word(rig: Rig) -> None:
        rig.says(WELCOME, Revoked("operator: stolen"), WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            assert [ears.next(), ears.next()] == [WELCOME, Revoked("operator: stolen")]
            connection.close()
        assert ears.silent

    @staticmethod
    def a_session_refused_as_revoked_or_retired_says_so(rig: Rig) -> None:
        assert session(rig, Retired()) == [Retired()]

    @staticmethod
    def a_session_that_ends_tells_why_and_how_long_to_wait(rig: Rig) -> None:
        for ended in (Ended("x"), Ended("x", pushback_s=7.25), Ended("x", never=True), Ended("x", refused=True)):
            (found,) = session(rig, ended)
            assert isinstance(found, Ended)
            assert (found.pushback_s, found.never, found.refused) == (ended.pushback_s, ended.never, ended.refused)
            assert "x" in found.why

    @staticmethod
    def a_closed_connection_delivers_nothing_and_may_be_closed_again(rig: Rig) -> None:
        rig.says(WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            ears.next()
            connection.close()
            connection.close()
        assert ears.silent

    @staticmethod
    def a_connection_closed_before_it_started_says_no_hello(rig: Rig) -> None:
        rig.says(WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.close()
            connection.start(HELLO, ears)
        assert ears.silent
        assert rig.hellos == []

    @staticmethod
    def a_question_arrives_as_it_was_asked_and_is_answered(rig: Rig) -> None:
        assert renewal(rig, RENEWED) == RENEWED
        assert rig.asked == [QUESTION]

    @staticmethod
    def a_renewal_refused_as_revoked_or_retired_says_so(rig: Rig) -> None:
        assert renewal(rig, Revoked("operator: stolen")) == Revoked("operator: stolen")
        assert renewal(rig, Retired()) == Retired()

    @staticmethod
    def a_renewal_that_fails_tells_why_and_how_long_to_wait(rig: Rig) -> None:
        for ended in (Ended("x"), Ended("x", pushback_s=7.25), Ended("x", never=True), Ended("x", refused=True)):
            found = renewal(rig, ended)
            assert isinstance(found, Ended)
            assert (found.pushback_s, found.never, found.refused) == (ended.pushback_s, ended.never, ended.refused)
            assert "x" in found.why

    @staticmethod
    def one_connection_carries_session_and_renewals(rig: Rig) -> None:
        rig.says(WELCOME)
        rig.answers(RENEWED)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            ears.next()
            assert connection.renew(QUESTION) == RENEWED
            assert connection.renew(QUESTION) == RENEWED
        assert len(rig.asked) == 2

    @staticmethod
    def a_closed_connection_renews_nothing(rig: Rig) -> None:
        rig.answers(RENEWED)
        with connected(rig) as connection:
            connection.close()
            assert isinstance(connection.renew(QUESTION), Ended)
        assert rig.asked == []


@pytest.mark.parametrize("make", [memory, over_grpc])
@pytest.mark.parametrize("check", checks_of(GatewayContract).values(), ids=checks_of(GatewayContract))
def test_every_gateway_meets_the_contract(
    check: Callable[[Rig], None], make: Callable[[], contextlib.AbstractContextManager[Rig]]
) -> None:
    with make() as rig:
        check(rig)


# ---- what only gRPC does


@pytest.fixture(scope="module")
def shared() -> Iterator[GrpcRig]:
    with over_grpc() as rig:
        yield rig


def aborting(code: grpc.StatusCode, *trailing: tuple[str, str | bytes], details: str = "details") -> Behaviour:
    """A gateway that answers everything with that status."""

    def abort(request: object, context: grpc.ServicerContext) -> pb.RenewReply:
        context.set_trailing_metadata(trailing)
        context.abort(code, details)
        raise AssertionError

    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        abort(hello, context)
        yield pb.GatewayMessage()

    return Behaviour(session, abort)


def both(rig: GrpcRig, behaviour: Behaviour) -> tuple[Heard, RenewAnswer]:
    """What a session and a renewal come to."""
    rig.behaviour.session, rig.behaviour.renew = behaviour.session, behaviour.renew
    ears = Ears()
    with connected(rig) as connection:
        connection.start(HELLO, ears)
        return ears.next(), connection.renew(QUESTION)


STATUSES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
NO = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}


@pytest.mark.parametrize("code", STATUSES, ids=lambda code: code.name)
def test_no_bare_status_is_final(shared: GrpcRig, code: grpc.StatusCode) -> None:
    """Field report B61."""
    for found in both(shared, aborting(code)):
        assert isinstance(found, Ended)
        assert found.refused == (code in NO)
        assert (found.pushback_s, found.never) == (None, False)
        assert found.why.startswith("127.0.0.1:")
        assert found.why.endswith(f"{code.name}: details")


@pytest.mark.parametrize("code", STATUSES, ids=lambda code: code.name)
def test_our_error_info_is_final_whatever_the_status(shared: GrpcRig, code: grpc.StatusCode) -> None:
    revoked = aborting(code, error_info(code, "d", "CERTIFICATE_REVOKED"), details="clone-suspected")
    assert both(shared, revoked) == (Revoked("clone-suspected"), Revoked("clone-suspected"))
    assert both(shared, aborting(code, error_info(code, "d", "CERTIFICATE_RETIRED"))) == (Retired(), Retired())


@pytest.mark.parametrize(
    "trailing",
    [
        error_info(grpc.StatusCode.UNAUTHENTICATED, "d", "CERTIFICATE_REVOKED", "elsewhere.org"),
        error_info(grpc.StatusCode.UNAUTHENTICATED, "d", "certificate_revoked"),
        error_info(grpc.StatusCode.UNAUTHENTICATED, "d", "ACCESS_DENIED"),
        ("grpc-status-details-bin", b"\xff\xff\xff"),
        ("certificate-revoked", "CERTIFICATE_REVOKED"),
    ],
    ids=["another domain", "another case", "a join's", "rubbish", "another header"],
)
def test_anything_that_is_nearly_our_error_info_is_not_final(
    shared: GrpcRig, trailing: tuple[str, str | bytes]
) -> None:
    behaviour = aborting(grpc.StatusCode.UNAUTHENTICATED, trailing, details="CERTIFICATE_REVOKED")
    assert all(isinstance(found, Ended) and found.refused for found in both(shared, behaviour))


@pytest.mark.parametrize(
    ("sent", "pushback_s", "never"),
    [("0", 0.0, False), ("1", 0.001, False), ("7250", 7.25, False), ("-1", None, True), ("soon", None, False)],
)
def test_a_pushback_is_told_exactly(shared: GrpcRig, sent: str, pushback_s: float | None, never: bool) -> None:
    for found in both(shared, aborting(grpc.StatusCode.RESOURCE_EXHAUSTED, ("grpc-retry-pushback-ms", sent))):
        assert isinstance(found, Ended)
        assert (found.pushback_s, found.never) == (pushback_s, never)


def test_an_exception_in_the_gateway_is_waited_out(shared: GrpcRig) -> None:
    def fail(request: object, context: grpc.ServicerContext) -> pb.RenewReply:
        raise ZeroDivisionError

    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        fail(hello, context)
        yield pb.GatewayMessage()

    assert all(isinstance(found, Ended) and not found.refused for found in both(shared, Behaviour(session, fail)))


def test_a_stream_that_the_gateway_ends_without_a_word_has_ended(shared: GrpcRig) -> None:
    shared.behaviour.session = lambda hello, context: iter([])
    ears = Ears()
    with connected(shared) as connection:
        connection.start(HELLO, ears)
        ended = ears.next()
    assert isinstance(ended, Ended)
    assert "the gateway ended the session" in ended.why


@pytest.mark.parametrize("seconds", [10**15, -(10**15), 253_402_300_800])
def test_a_time_that_is_none_ends_the_session_and_fails_the_renewal(shared: GrpcRig, seconds: int) -> None:
    """Not the thread that reads: a session that nobody listens to would never hear of a revocation."""

    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        found = pb.GatewayMessage(welcome=pb.Welcome())
        found.welcome.server_time.seconds = seconds
        yield found
        stay(context)

    def renew(request: object, context: grpc.ServicerContext) -> pb.RenewReply:
        reply = pb.RenewReply(issued=statements_pb2.SignedStatement.FromString(STATEMENT))
        reply.server_time.seconds = seconds
        return reply

    for found in both(shared, Behaviour(session, renew)):
        assert isinstance(found, Ended)
        assert found.why.endswith("told a time that is none")


def test_answers_without_a_time_are_none(shared: GrpcRig) -> None:
    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        yield pb.GatewayMessage(welcome=pb.Welcome())

    def renew(request: object, context: grpc.ServicerContext) -> pb.RenewReply:
        return pb.RenewReply(issued=statements_pb2.SignedStatement.FromString(STATEMENT))

    assert all(isinstance(found, Ended) for found in both(shared, Behaviour(session, renew)))


def test_a_message_of_a_later_gateway_is_passed_over(shared: GrpcRig) -> None:
    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        yield pb.GatewayMessage.FromString(b"\xfa\x07\x02hi")
        yield pb.GatewayMessage(renew_now=pb.RenewNow(reason="r" * 5000))

    shared.behaviour.session = session
    ears = Ears()
    with connected(shared) as connection:
        connection.start(HELLO, ears)
        assert ears.next() == RenewNow("r" * 200)


def test_what_hears_and_fails_ends_the_session_with_a_word(shared: GrpcRig) -> None:
    shared.says(WELCOME)
    heard: queue.Queue[Heard] = queue.Queue()

    def fails(one: Heard) -> None:
        heard.put(one)
        if isinstance(one, Welcome):
            raise ZeroDivisionError("a defect")

    with connected(shared) as connection:
        connection.start(HELLO, fails)
        assert heard.get(timeout=SOON_S) == WELCOME
        last = heard.get(timeout=SOON_S)
    assert isinstance(last, Ended)
    assert "ZeroDivisionError" in last.why


def test_a_gateway_that_is_silent_after_hello_delivers_nothing_and_closing_is_prompt(shared: GrpcRig) -> None:
    reached = threading.Event()

    def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
        reached.set()
        stay(context)
        yield from ()

    shared.behaviour.session = session
    ears = Ears()
    with connected(shared) as connection:
        connection.start(HELLO, ears)
        assert reached.wait(SOON_S)
        before = time.monotonic()
        connection.close()
        # Far from any time that a call has, and from what a busy machine takes.
        assert time.monotonic() - before < 5
    settle()
    assert ears.silent


def test_closing_ends_a_renewal_under_way(shared: GrpcRig) -> None:
    reached = threading.Event()

    def renew(request: object, context: grpc.ServicerContext) -> pb.RenewReply:
        reached.set()
        stay(context)
        return pb.RenewReply()

    shared.behaviour.renew = renew
    found: queue.Queue[RenewAnswer] = queue.Queue()
    with connected(shared) as connection:
        thread = threading.Thread(target=lambda: found.put(connection.renew(QUESTION)))
        thread.start()
        assert reached.wait(SOON_S)
        connection.close()
        assert isinstance(found.get(timeout=SOON_S), Ended)
        thread.join()


# ---- TLS


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


def raises(message: bytes) -> bytes:
    raise OSError("the TPM is gone")


WRONG_KEYS = {
    "raises": (raises, "the node key does not sign: the TPM is gone"),
    "another key's": (FileKey(pki.OTHER_KEY).sign, "the node key's signature is not one of the certificate's key"),
    "of another message": (
        lambda message: FileKey(pki.NODE_KEY).sign(message + b"\0"),
        "the node key's signature is not one of the certificate's key",
    ),
    "not 64 bytes": (lambda message: b"\x01" * 63, "the node key's signature is not one of the certificate's key"),
    "nothing": (lambda message: b"", "the node key's signature is not one of the certificate's key"),
}


@pytest.mark.parametrize(("sign", "why"), WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_a_key_that_does_not_sign_right_is_told_as_that(
    shared: GrpcRig, sign: Callable[[bytes], bytes], why: str
) -> None:
    shared.says(WELCOME)
    shared.answers(RENEWED)
    ears = Ears()
    connection = shared.gateway.connect(node_pair(Key(sign)))
    assert not isinstance(connection, Ended)
    before = time.monotonic()
    connection.start(HELLO, ears)
    ended = ears.next()
    connection.close()
    assert isinstance(ended, Ended)
    assert ended.why.endswith(why)
    assert time.monotonic() - before < 5
    settle()


def test_why_a_signature_failed_is_known_before_grpc_hears_of_it() -> None:
    seen: queue.Queue[str] = queue.Queue()
    signer = Signer(node_pair(Key(raises)), lambda: None)
    algorithm = experimental.PrivateKeySignatureAlgorithm.ECDSA_SECP256R1_SHA256
    signer.sign(
        b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + bytes(32), algorithm, lambda _: seen.put(signer.trouble)
    )
    assert seen.get(timeout=SOON_S) == "the node key does not sign: the TPM is gone"
    settle()


def test_a_handshake_that_worked_takes_an_earlier_trouble_back() -> None:
    answers: queue.Queue[object] = queue.Queue()
    signs = [raises, FileKey(pki.NODE_KEY).sign]

    def first_fails(message: bytes) -> bytes:
        return signs.pop(0)(message)

    signer = Signer(node_pair(Key(first_fails)), lambda: None)
    algorithm = experimental.PrivateKeySignatureAlgorithm.ECDSA_SECP256R1_SHA256
    for _ in range(2):
        signer.sign(b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + bytes(32), algorithm, answers.put)
        answers.get(timeout=SOON_S)
    assert signer.trouble == ""
    settle()


def test_each_handshake_is_counted_once_with_the_keys_public_half() -> None:
    with over_grpc() as rig:
        rig.answers(RENEWED)
        for _ in range(3):
            with connected(rig) as connection:
                assert connection.renew(QUESTION) == RENEWED
                assert connection.renew(QUESTION) == RENEWED
        assert rig.signed == [pki.spki(pki.NODE_KEY)] * 3


def test_the_suite_a_grpc_server_takes_hashes_with_sha256_and_openssls_with_sha384(tmp_path: Path) -> None:
    """Both lengths of what is signed reach a peer that checks it: BoringSSL here, OpenSSL there."""
    lengths: list[int] = []

    def noting(message: bytes) -> bytes:
        lengths.append(len(message) - 98)
        return FileKey(pki.NODE_KEY).sign(message)

    with over_grpc() as rig:
        rig.pair = node_pair(Key(noting))
        assert renewal(rig, RENEWED) == RENEWED
    assert lengths == [32]
    (tmp_path / "chain.pem").write_bytes(tls.to_pem(SERVING.leaf(), SERVING.der))
    (tmp_path / "key.pem").write_bytes(tls.LEAF_KEY_PEM)
    (tmp_path / "root.pem").write_bytes(tls.to_pem(NODE_ROOT))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    context.load_verify_locations(tmp_path / "root.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["h2"])
    seen: queue.Queue[tuple[bytes | None, str]] = queue.Queue()

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            suite = secure.cipher()
            assert suite is not None
            if secure.getpeercert(True):
                seen.put((secure.getpeercert(True), suite[0]))

    pair = node_pair(Key(noting))
    ears = Ears()
    with tls.raw_server(serve) as port:
        connection = GrpcRig(port, Behaviour()).gateway.connect(pair)
        assert not isinstance(connection, Ended)
        with contextlib.closing(connection):
            connection.start(HELLO, ears)
            assert isinstance(ears.next(), Ended)
        assert seen.get(timeout=SOON_S) == (pair.leaf.der, "TLS_AES_256_GCM_SHA384")
    assert set(lengths) == {32, 48}
    settle()


def test_a_gateway_of_tls_1_2_is_told_as_one(tmp_path: Path) -> None:
    with tls.raw_server(
        tls.tls_server(tmp_path, tls.to_pem(SERVING.leaf(), SERVING.der), ssl.TLSVersion.TLSv1_2)
    ) as port:
        ended = GrpcRig(port, Behaviour()).gateway.connect(node_pair())
    assert isinstance(ended, Ended)
    assert "no TLS 1.3 there" in ended.why


def test_a_gateway_that_is_away_or_another_has_no_connection(shared: GrpcRig) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = GrpcRig(taken.getsockname()[1], Behaviour()).gateway.connect(shared.pair)
    assert isinstance(away, Ended)
    assert "connection refused" in away.why
    with gateway_server(Behaviour(), ServingCa.make(3102)) as port:
        another = GrpcRig(port, Behaviour()).gateway.connect(shared.pair)
    assert isinstance(another, Ended)
    assert another.why.startswith("serving CA pin mismatch: have sha256:")


def test_a_certificate_for_another_host_is_told_and_waited_out() -> None:
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour, names=("gateway.elsewhere.org",)) as port:
        rig = GrpcRig(port, behaviour)
        ended = first(rig)
    assert isinstance(ended, Ended)
    assert ended.why.endswith("the server's certificate is for another host name")


def first(rig: GrpcRig) -> Heard:
    """The first thing heard of a session."""
    ears = Ears()
    with connected(rig) as connection:
        connection.start(HELLO, ears)
        return ears.next()


def test_a_ca_that_was_reissued_with_the_same_key_is_found_at_the_second_dial() -> None:
    """The pin names a key. The certificate at hand does not verify the new server; the next look does."""
    renewed_ca = ServingCa.make(3101, name="serving CA, second edition")
    assert renewed_ca.pin == SERVING.pin
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour) as port:
        rig = GrpcRig(port, behaviour, ca_file=lambda: SERVING.pem)
        assert first(rig) == WELCOME
    with gateway_server(behaviour, renewed_ca, port=port):
        ended = first(rig)
        assert isinstance(ended, Ended)
        assert ended.why.endswith("the server's certificate is not by the pinned CA")
        assert first(rig) == WELCOME


def test_the_file_beside_the_configuration_serves_where_the_server_presents_no_ca() -> None:
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour, present_ca=False) as port:
        assert first(GrpcRig(port, behaviour, ca_file=lambda: SERVING.pem)) == WELCOME


def test_empty_roots_are_never_handed_to_grpc() -> None:
    """They would be the system's."""
    with pytest.raises(ValueError, match="no root certificate"):
        Signer(node_pair(), lambda: None).credentials(b"")


def test_a_connection_that_never_starts_and_200_that_do_leave_nothing_behind() -> None:
    with over_grpc() as rig:
        rig.says(WELCOME)

        def cycle() -> None:
            ears = Ears()
            with connected(rig) as connection:
                connection.start(HELLO, ears)
                assert ears.next() == WELCOME

        for _ in range(20):
            cycle()
        settle()
        threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            cycle()
            with connected(rig):
                pass
        settle()
        # gRPC lets go of a socket a moment after its channel, and its server's pool is as large as it was.
        deadline = time.monotonic() + SOON_S
        while len(os.listdir("/proc/self/fd")) > descriptors + 5 and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 5
        assert threading.active_count() <= threads + 2


# ---- what is signed


VERIFY = b"\x20" * 64 + b"TLS 1.3, client CertificateVerify\x00"


@pytest.mark.parametrize("length", [32, 48])
def test_what_a_tls_client_signs_is_known(length: int) -> None:
    assert is_client_verify(VERIFY + os.urandom(length))


@pytest.mark.parametrize("length", [0, 1, 20, 31, 33, 47, 49, 64])
def test_no_other_length_is(length: int) -> None:
    assert not is_client_verify(VERIFY + bytes(length))


def test_no_other_context_is() -> None:
    for at in range(len(VERIFY)):
        for bit in (1, 0x20, 0x80):
            other = bytearray(VERIFY)
            other[at] ^= bit
            assert not is_client_verify(bytes(other) + bytes(32)), at
    assert not is_client_verify(VERIFY.replace(b"client", b"server") + bytes(32))
    assert not is_client_verify(VERIFY[1:] + bytes(32))
    assert not is_client_verify(b" " + VERIFY + bytes(32))
    assert not is_client_verify(b"bc-statement-v1\0renew-pop\0" + bytes(100))


@few
@given(st.binary(max_size=200))
def test_property_nothing_else_is(message: bytes) -> None:
    assert not is_client_verify(message)


def test_what_is_no_handshake_or_another_algorithm_is_not_signed() -> None:
    signed: list[bytes] = []

    def noting(message: bytes) -> bytes:
        signed.append(message)
        return FileKey(pki.NODE_KEY).sign(message)

    algorithms = experimental.PrivateKeySignatureAlgorithm
    for message, algorithm in (
        (b"bc-statement-v1\0renew-pop\0payload", algorithms.ECDSA_SECP256R1_SHA256),
        (VERIFY + bytes(32), algorithms.ECDSA_SECP384R1_SHA384),
        (VERIFY + bytes(31), algorithms.ECDSA_SECP256R1_SHA256),
    ):
        answers: queue.Queue[object] = queue.Queue()
        signer = Signer(node_pair(Key(noting)), lambda: signed.append(b"counted"))
        signer.sign(message, algorithm, answers.put)
        assert isinstance(answers.get(timeout=SOON_S), Exception)
        assert signer.trouble == "gateway does not speak TLS 1.3"
    assert signed == []
    settle()


def test_a_server_that_accepts_and_says_nothing_is_not_waited_for_long() -> None:
    hold = threading.Event()
    with tls.raw_server(lambda connection: hold.wait(SOON_S) and None) as port:
        roots = Roots(
            Address("127.0.0.1", port),
            pins=SERVING.pins,
            config_path="c",
            clock=SystemClock(),
            ca_file=lambda: None,
            timeout_s=0.2,
        )
        with pytest.raises(pinned.CannotProbe, match=r"no answer within 0\.2 s"):
            roots.find()
        hold.set()
