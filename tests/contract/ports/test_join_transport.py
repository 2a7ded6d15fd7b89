"""The port `JoinTransport`: one contract over gRPC with TLS and the control plane in memory, then gRPC alone."""

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from bcd.adapters.grpc.channel import OPTIONS
from bcd.adapters.grpc.join import GrpcJoinTransport
from bcd.domain.model.claims import Claims
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.joining import Answer, Failed, Issued, JoinDenied, Pending
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.domain.model.pins import Pin, Pins
from bcd.ports.clock import Clock
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.protocol.files.config import Address
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from bcd.protocol.pki import csr, join_response, seal
from tests.fakes import pki, tls
from tests.fakes.clock import ManualClock
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.memory_transport import MemoryTransport
from tests.fakes.outside import closed_port, until
from tests.fakes.tls import REAL_NOW, ServingCa

CLAIMS = Claims(
    product_uuid="8f2a4c1e-77b0-4d3e-9a51-0c6de5b1f2a3",
    product_serial="P-1",
    board_serial="B-1",
    chassis_serial="C-1",
    macs=("3c:ec:ef:00:00:01", "3c:ec:ef:00:00:02"),
    gpu_uuids=("gpu-5e2b1c0d-8f3a-4c6e-9b1d-7a2f0e4c8d55",),
    hostname="rack-3-7",
    boot_id="1d5e9c72-40aa-4b6f-8f03-b2a9c1d7e6f4",
)
CONFIG = "/etc/bcd/config.toml"
SOON_S = 0.3


def question(plane: MemoryControlPlane, token: str, number: int = 5001, node: str | None = None) -> JoinQuestion:
    key = pki.private_key(number)
    request = csr.make_csr(key)
    sealed = seal.seal(plane.recipient, token.encode(), request)
    pending = PendingJoin(
        attestor="join-token" if node is None else "provisioned",
        role=Role.NODE,
        node_id=None if node is None else NodeId(node),
        key=b"the node's secret, which is not to leave it",
        csr=request,
        sealed=SealedToken(sealed.kid, sealed.sealed),
        pending_id="",
        begun=pki.NOW,
    )
    return JoinQuestion(pending, CLAIMS, "0.1.0")


@dataclass
class Rig:
    """A transport to the control plane `plane`; `asked` is what reached it; the `scripted` answers come first."""

    transport: JoinTransport
    plane: MemoryControlPlane
    asked: list[JoinQuestion]
    scripted: list[Answer]


class JoinTransportContract:
    @staticmethod
    def a_good_token_is_answered_with_what_was_signed(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token(node_id="n-7"), node="n-7")
        answer = rig.transport.join(asked)
        assert isinstance(answer, Issued)
        expected = join_response.Expected(
            asked.pending.csr,
            pki.spki(pki.private_key(5001)),
            Role.NODE,
            NodeId("n-7"),
            Pins((Pin(rig.plane.signing_pin),)),
        )
        assert join_response.open_join_response(answer.signed, expected).leaf.spiffe_id.node == "n-7"

    @staticmethod
    def the_whole_question_arrives_and_the_key_does_not(rig: Rig) -> None:
        for asked in (
            question(rig.plane, rig.plane.token(node_id="n-7"), node="n-7"),
            replace(question(rig.plane, rig.plane.token()), claims=Claims(), daemon_version="9.9.9"),
        ):
            rig.transport.join(asked)
            came = rig.asked[-1]
            assert (came.claims, came.daemon_version) == (asked.claims, asked.daemon_version)
            for name in ("attestor", "role", "node_id", "csr", "sealed", "pending_id"):
                assert getattr(came.pending, name) == getattr(asked.pending, name), name

    @staticmethod
    def the_same_question_gets_the_same_answer(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        first = rig.transport.join(asked)
        assert isinstance(first, Issued)
        assert rig.transport.join(asked) == first

    @staticmethod
    def a_refusal_is_final_and_has_its_id(rig: Rig) -> None:
        token = rig.plane.token()
        rig.plane.revoke_token(token)
        answer = rig.transport.join(question(rig.plane, token))
        assert isinstance(answer, JoinDenied)
        assert answer.refusal_id == rig.plane.refusals()[0].id
        assert len(answer.refusal_id) == 32

    @staticmethod
    def an_approval_is_waited_for_under_its_id_and_then_answered(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token(require_approval=True))
        waiting = rig.transport.join(asked)
        assert isinstance(waiting, Pending)
        assert waiting.id == rig.plane.approvals()[0].id
        assert waiting.retry_after_s >= 1
        rig.plane.approve(waiting.id)
        again = replace(asked, pending=replace(asked.pending, pending_id=waiting.id))
        assert isinstance(rig.transport.join(again), Issued)
        assert rig.asked[-1].pending.pending_id == waiting.id

    @staticmethod
    def what_decides_nothing_is_failed_and_the_next_question_is_answered(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        rig.scripted.append(Failed("busy"))
        answer = rig.transport.join(asked)
        assert isinstance(answer, Failed)
        assert "busy" in answer.why
        assert (answer.pushback_s, answer.never) == (None, False)
        assert isinstance(rig.transport.join(asked), Issued)

    @staticmethod
    def a_pushback_is_told_exactly(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        for pushback_s in (0.0, 0.001, 1.5, 86400.0):
            rig.scripted.append(Failed("busy", pushback_s=pushback_s))
            answer = rig.transport.join(asked)
            assert isinstance(answer, Failed)
            assert (answer.pushback_s, answer.never) == (pushback_s, False)

    @staticmethod
    def not_to_be_asked_again_is_told(rig: Rig) -> None:
        rig.scripted.append(Failed("busy", never=True))
        answer = rig.transport.join(question(rig.plane, rig.plane.token()))
        assert isinstance(answer, Failed)
        assert (answer.pushback_s, answer.never) == (None, True)

    @staticmethod
    def closing_twice_is_closing(rig: Rig) -> None:
        assert isinstance(rig.transport.join(question(rig.plane, rig.plane.token())), Issued)
        rig.transport.close()
        rig.transport.close()


@contextmanager
def in_memory() -> Iterator[Rig]:
    transport = MemoryTransport(MemoryControlPlane())
    yield Rig(transport, transport.plane, transport.asked, transport.scripted)


@dataclass
class Service:
    """What stands behind the join port."""

    plane: MemoryControlPlane = field(default_factory=MemoryControlPlane)
    asked: list[JoinQuestion] = field(default_factory=list)
    scripted: list[Answer] = field(default_factory=list)

    def __call__(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        self.asked.append(decoded(pb.JoinRequest.FromString(data)))
        assert b"secret" not in data
        if self.scripted:
            failed = self.scripted.pop(0)
            assert isinstance(failed, Failed)
            if failed.never:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", "-1"),))
            if failed.pushback_s is not None:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", str(round(failed.pushback_s * 1000))),))
            context.abort(grpc.StatusCode.UNAVAILABLE, failed.why)
        reply = self.plane.exchange(data)
        if isinstance(reply, bytes):
            return reply
        refuse(context, refusal_id=reply.id)
        raise AssertionError("abort raises")


def decoded(request: pb.JoinRequest) -> JoinQuestion:
    claims = {name: getattr(request.claims, name) for name in ("hostname", "boot_id", "product_uuid")}
    claims |= {name: getattr(request.claims, name) for name in ("product_serial", "board_serial", "chassis_serial")}
    sealed = SealedToken(request.sealed_token.kid, request.sealed_token.sealed)
    pending = PendingJoin(
        attestor=request.attestor,
        role=Role(request.role),
        node_id=NodeId(request.wanted_node_id) if request.wanted_node_id else None,
        key=b"",
        csr=request.csr,
        sealed=sealed if request.HasField("sealed_token") else None,
        pending_id=request.pending_id,
        begun=pki.NOW,
    )
    many = {"macs": tuple(request.claims.macs), "gpu_uuids": tuple(request.claims.gpu_uuids)}
    return JoinQuestion(pending, Claims(**claims, **many), request.daemon_version)


def details(reason: str = "ACCESS_DENIED", domain: str = "bc.identity") -> bytes:
    inside = any_pb2.Any()
    inside.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
    return status_pb2.Status(code=7, message="Join refused", details=[inside]).SerializeToString()


def refuse(
    context: grpc.ServicerContext,
    code: grpc.StatusCode = grpc.StatusCode.PERMISSION_DENIED,
    *,
    info: bytes | None = None,
    refusal_id: str = "r-1",
) -> None:
    trailing = (("grpc-status-details-bin", details() if info is None else info), ("refusal-id", refusal_id))
    context.set_trailing_metadata(trailing)
    context.abort(code, "Join refused")


CA = ServingCa.make(3100)
NEXT_CA = ServingCa.make(3101, "next serving CA")


def transport(
    port: int,
    pins: Pins = CA.pins,
    *,
    host: str = "127.0.0.1",
    clock: Clock | None = None,
    ca_file: bytes | None = None,
    timeout_s: float = 10.0,
) -> GrpcJoinTransport:
    return GrpcJoinTransport(
        Address(host, port),
        pins,
        CONFIG,
        clock or ManualClock(REAL_NOW),
        lambda: ca_file,
        call_timeout_s=timeout_s,
        probe_timeout_s=timeout_s,
    )


@contextmanager
def over_grpc() -> Iterator[Rig]:
    service = Service()
    with tls.grpc_server(service, [CA.leaf(), CA.der]) as port:
        yield Rig(transport(port), service.plane, service.asked, service.scripted)


@pytest.mark.parametrize("make", [in_memory, over_grpc])
@pytest.mark.parametrize("check", checks_of(JoinTransportContract).values(), ids=checks_of(JoinTransportContract))
def test_every_implementation_meets_the_contract(check: Callable[[Rig], None], make: object) -> None:
    with make() as rig:  # type: ignore[operator]
        check(rig)


class Wrong(MemoryTransport):
    """Asks `asks` of the question and says `says` of the answer."""

    def __init__(self, asks: Callable[[JoinQuestion], JoinQuestion], says: Callable[[Answer], Answer]) -> None:
        super().__init__(MemoryControlPlane())
        self._asks = asks
        self._says = says

    def join(self, question: JoinQuestion) -> Answer:
        return self._says(super().join(self._asks(question)))


class Crashing(MemoryTransport):
    """A failure of the network is one of the program."""

    def join(self, question: JoinQuestion) -> Answer:
        answer = super().join(question)
        if isinstance(answer, Failed):
            raise ConnectionError(answer.why)
        return answer


class ClosesOnce(MemoryTransport):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise ValueError("closed already")
        self.closed = True


def same(value: object) -> object:
    return value


def change(kind: type, **fields: object) -> Callable[[Answer], Answer]:
    return lambda answer: replace(answer, **fields) if isinstance(answer, kind) else answer  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("make", "caught_by"),
    [
        (lambda: Wrong(same, change(Issued, signed=b"other")), "a_good_token_is_answered_with_what_was_signed"),
        (lambda: Wrong(lambda q: replace(q, claims=Claims()), same), "the_whole_question_arrives_and_the_key_does_not"),
        (
            lambda: Wrong(lambda q: replace(q, pending=replace(q.pending, node_id=None)), same),
            "the_whole_question_arrives_and_the_key_does_not",
        ),
        (lambda: Wrong(same, change(JoinDenied, refusal_id="")), "a_refusal_is_final_and_has_its_id"),
        (
            lambda: Wrong(same, lambda a: Failed("no") if isinstance(a, JoinDenied) else a),
            "a_refusal_is_final_and_has_its_id",
        ),
        (lambda: Wrong(same, change(Pending, id="other")), "an_approval_is_waited_for_under_its_id_and_then_answered"),
        (
            lambda: Wrong(lambda q: replace(q, pending=replace(q.pending, pending_id="")), same),
            "an_approval_is_waited_for_under_its_id_and_then_answered",
        ),
        (lambda: Crashing(MemoryControlPlane()), "what_decides_nothing_is_failed_and_the_next_question_is_answered"),
        (lambda: Wrong(same, change(Failed, pushback_s=None)), "a_pushback_is_told_exactly"),
        (lambda: Wrong(same, change(Failed, never=False)), "not_to_be_asked_again_is_told"),
        (lambda: ClosesOnce(MemoryControlPlane()), "closing_twice_is_closing"),
        (
            lambda: Wrong(lambda q: question(MemoryControlPlane(), "other"), same),
            "the_same_question_gets_the_same_answer",
        ),
    ],
)
def test_a_wrong_implementation_fails_the_contract(make: Callable[[], MemoryTransport], caught_by: str) -> None:
    def rig() -> Rig:
        wrong = make()
        return Rig(wrong, wrong.plane, wrong.asked, wrong.scripted)

    assert caught_by in failed_checks(JoinTransportContract, rig)


# --- gRPC alone: what a server may answer

PLANE = MemoryControlPlane()
QUESTION = question(PLANE, "bcjt_0123456789_a-token-nobody-opens")


def ask(handler: tls.Handler, timeout_s: float = 10.0) -> Answer:
    with tls.grpc_server(handler, [CA.leaf(), CA.der]) as port:
        return transport(port, timeout_s=timeout_s).join(QUESTION)


ERRORS = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@pytest.mark.parametrize("code", ERRORS, ids=lambda code: code.name)
def test_a_status_is_final_only_with_our_own_error_info(code: grpc.StatusCode) -> None:
    answers: list[bytes | None] = [
        details(),
        details(domain="example.com"),
        details(reason="OTHER"),
        b"\xff\xff",
        b"",
        None,
    ]

    def handler(data: bytes, context: grpc.ServicerContext) -> bytes:
        info = answers.pop(0)
        if info is None:
            context.abort(code, "no")
        refuse(context, code, info=info)
        raise AssertionError("abort raises")

    with tls.grpc_server(handler, [CA.leaf(), CA.der]) as port:
        asked = transport(port)
        assert asked.join(QUESTION) == JoinDenied("r-1")
        while answers:
            failed = asked.join(QUESTION)
            assert isinstance(failed, Failed)
            assert code.name in failed.why
            assert f"127.0.0.1:{port}" in failed.why
            assert (failed.pushback_s, failed.never) == (None, False)


@pytest.mark.parametrize("refusal_id", ["r-1\x1b[31m", "x" * 200])
def test_a_refusal_id_is_printable_and_short_whatever_the_server_says(refusal_id: str) -> None:
    answer = ask(lambda data, context: refuse(context, refusal_id=refusal_id.replace("\x1b", " ")) or b"")
    assert isinstance(answer, JoinDenied)
    assert answer.refusal_id.isprintable()
    assert len(answer.refusal_id) <= 64


@pytest.mark.parametrize(
    ("told", "pushback_s", "never"),
    [
        ("0", 0.0, False),
        ("1", 0.001, False),
        ("12345", 12.345, False),
        ("-1", None, True),
        ("-9223372036854775807", None, True),
        ("soon", None, False),
        ("1.5", None, False),
        ("", None, False),
        ("99999999999999999999", None, False),
    ],
)
def test_a_pushback_counts_exactly_negative_means_never_and_else_it_is_no_pushback(
    told: str, pushback_s: float | None, never: bool
) -> None:
    def handler(data: bytes, context: grpc.ServicerContext) -> bytes:
        context.set_trailing_metadata((("grpc-retry-pushback-ms", told),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
        raise AssertionError("abort raises")

    answer = ask(handler)
    assert isinstance(answer, Failed)
    assert (answer.pushback_s, answer.never) == (pushback_s, never)


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    done = threading.Event()

    def handler(data: bytes, context: grpc.ServicerContext) -> bytes:
        done.wait(20)
        return b""

    with tls.grpc_server(handler, [CA.leaf(), CA.der]) as port:
        answer = transport(port, timeout_s=SOON_S).join(QUESTION)
        done.set()
    assert isinstance(answer, Failed)
    assert "DEADLINE_EXCEEDED" in answer.why


def test_an_exception_in_the_server_is_a_failure_in_words_that_are_cut() -> None:
    def handler(data: bytes, context: grpc.ServicerContext) -> bytes:
        raise RuntimeError("boom\n" * 200)

    answer = ask(handler)
    assert isinstance(answer, Failed)
    assert "UNKNOWN" in answer.why
    assert answer.why.isprintable()
    assert len(answer.why) < 300


REPLIES = {
    "nothing": pb.JoinReply().SerializeToString(),
    "rubbish": b"\xff\xff\xff",
    "too large": pb.JoinReply(issued=statements_pb2.SignedStatement(payload=bytes(1 << 20))).SerializeToString(),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_that_is_none_is_a_failure(reply: str) -> None:
    assert isinstance(ask(lambda data, context: REPLIES[reply]), Failed)


def test_a_reply_is_passed_on_as_it_is_and_is_not_looked_at() -> None:
    statement = statements_pb2.SignedStatement(purpose="other", payload=b"x" * 900_000, kid="k", signature=b"s")
    answer = ask(lambda data, context: pb.JoinReply(issued=statement).SerializeToString())
    assert isinstance(answer, Issued)
    assert statements_pb2.SignedStatement.FromString(answer.signed) == statement


PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def test_a_proxy_of_the_environment_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    service = Service()
    with tls.grpc_server(service, [CA.leaf(), CA.der]) as port:
        assert isinstance(transport(port).join(question(service.plane, service.plane.token())), Issued)
        # The same call without that one option goes to the proxy, where nobody is.
        options = [(name, value) for name, value in OPTIONS if name != "grpc.enable_http_proxy"]
        credentials = grpc.ssl_channel_credentials(CA.pem)
        with (
            grpc.secure_channel(f"127.0.0.1:{port}", credentials, options=options) as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            channel.unary_unary(tls.METHOD)(b"", timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


# --- Which server it is


def served(*chain: bytes, host: str = "127.0.0.1", name: str | None = None, **how: object) -> Answer:
    """The answer of a server with this chain to a good question."""
    service = Service()
    with tls.grpc_server(service, chain, host) as port:
        where = transport(port, host=name or host.strip("[]"), **how)  # type: ignore[arg-type]
        return where.join(question(service.plane, service.plane.token()))


def failed(answer: Answer) -> str:
    assert isinstance(answer, Failed)
    assert answer.why.isprintable()
    return answer.why


def mismatch(*chain: bytes, **how: object) -> FixConfiguration:
    with pytest.raises(FixConfiguration) as caught:
        served(*chain, **how)
    assert caught.value.message is Message.SERVING_PIN
    return caught.value


def test_b55_another_ca_than_the_pinned_one_is_a_mismatch_that_names_both_pins_and_the_file() -> None:
    """Field report B55."""
    failure = mismatch(NEXT_CA.leaf(), NEXT_CA.der)
    assert f"have {CA.pin}, presented {NEXT_CA.pin}" in failure.text
    assert CONFIG in failure.text


def test_b55_while_a_ca_is_rotated_both_are_pinned_and_either_serves() -> None:
    both = Pins((CA.pin, NEXT_CA.pin))
    for ca in (CA, NEXT_CA):
        assert isinstance(served(ca.leaf(), ca.der, pins=both), Issued)
        assert isinstance(served(ca.leaf(), ca.der, CA.der, NEXT_CA.der, pins=both), Issued)


@pytest.mark.parametrize("order", [(CA, NEXT_CA), (NEXT_CA, CA)])
def test_b55_of_two_cas_in_the_chain_the_pinned_one_counts(order: tuple[ServingCa, ServingCa]) -> None:
    assert isinstance(served(CA.leaf(), *(ca.der for ca in order)), Issued)
    assert "certificate" in failed(served(NEXT_CA.leaf(), *(ca.der for ca in order))).lower()


def test_the_same_ca_with_other_dates_may_stand_beside_it() -> None:
    past = ServingCa.make(3100, not_after=REAL_NOW - timedelta(days=1))
    for first, second in ((past, CA), (CA, past)):
        assert isinstance(served(CA.leaf(), first.der, second.der), Issued)


@pytest.mark.parametrize("beside", [CA.pem, NEXT_CA.pem + CA.pem])
def test_with_the_ca_beside_the_configuration_the_server_need_not_present_it(beside: bytes) -> None:
    assert isinstance(served(CA.leaf(), ca_file=beside), Issued)
    assert "no CA in the chain" in mismatch(CA.leaf()).text


STALE = {
    "rubbish": b"rubbish",
    "empty": b"",
    "another CA": NEXT_CA.pem,
    "an older one of the same key": ServingCa.make(3100, "old name").pem,
    "expired": ServingCa.make(3100, not_after=REAL_NOW - timedelta(days=1)).pem,
    "no CA": ServingCa.make(3100, is_ca=False).pem,
    "not by its own key": ServingCa.make(3100, signer=pki.OTHER_KEY).pem,
}


@pytest.mark.parametrize("beside", STALE)
def test_b55_a_stale_ca_beside_the_configuration_only_costs_a_look_at_the_server(beside: str) -> None:
    assert isinstance(served(CA.leaf(), CA.der, ca_file=STALE[beside]), Issued)


def test_b55_a_stale_ca_beside_the_configuration_hides_no_mismatch() -> None:
    assert f"presented {NEXT_CA.pin}" in mismatch(NEXT_CA.leaf(), NEXT_CA.der, ca_file=CA.pem).text


def test_b55_a_rotation_between_two_questions_of_one_transport_is_noticed() -> None:
    """The port is the same, the CA another: the second question finds it by one new look."""
    service = Service()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    asked = transport(port, Pins((CA.pin, NEXT_CA.pin)))
    good = question(service.plane, service.plane.token())
    for ca in (CA, NEXT_CA):
        with served_at(port, service, ca):
            assert isinstance(asked.join(good), Issued)


@contextmanager
def served_at(port: int, handler: tls.Handler, ca: ServingCa) -> Iterator[None]:
    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(handler)

    server = grpc.server(tls.ThreadPoolExecutor(2), handlers=[Handler()])
    chain = tls.to_pem(ca.leaf(), ca.der)
    assert server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(tls.LEAF_KEY_PEM, chain)])) == port
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("ca", ["no CA", "not by its own key"])
def test_a_pinned_certificate_that_is_no_ca_of_its_own_is_no_root(ca: str) -> None:
    kind = {"is_ca": False} if ca == "no CA" else {"signer": pki.OTHER_KEY}
    wrong = ServingCa.make(3100, **kind)  # type: ignore[arg-type]
    mismatch(CA.leaf(), wrong.der)


@pytest.mark.parametrize("beside", [None, CA.pem])
def test_a_certificate_for_another_host_is_a_failure_that_says_so(beside: bytes | None) -> None:
    why = failed(served(CA.leaf(names=("elsewhere.example",)), CA.der, ca_file=beside))
    assert "another host name" in why


@pytest.mark.parametrize("beside", [None, CA.pem])
@pytest.mark.parametrize("when", ["future", "past"])
def test_b23_a_certificate_out_of_date_is_told_with_the_local_clock(when: str, beside: bytes | None) -> None:
    """Field report B23."""
    days = timedelta(days=2 if when == "future" else -4)
    leaf = CA.leaf(not_before=REAL_NOW + days, not_after=REAL_NOW + days + timedelta(days=2))
    why = failed(served(leaf, CA.der, ca_file=beside))
    assert f"local clock {REAL_NOW:%Y-%m-%dT%H:%M:%SZ}" in why
    assert ("before the server certificate" if when == "future" else "after the server certificate") in why


@pytest.mark.parametrize(("year", "words"), [(2010, "before"), (2099, "after")])
def test_b23_a_clock_years_off_is_told_as_the_clocks_fault(year: int, words: str) -> None:
    why = failed(served(CA.leaf(), CA.der, ca_file=CA.pem, clock=ManualClock(datetime(year, 1, 1, tzinfo=UTC))))
    assert f"local clock {year}-01-01T00:00:00Z is {words} the server certificate" in why
    assert "fix the clock" in why


def test_an_ipv6_address_is_a_server_as_any_other() -> None:
    if not _has_ipv6():
        pytest.skip("no IPv6 loopback here")
    assert isinstance(served(CA.leaf(), CA.der, host="[::1]"), Issued)
    assert "[::1]:" in failed(served(CA.leaf(names=("127.0.0.1",)), CA.der, host="[::1]"))


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_host_name_is_checked_as_it_is_written() -> None:
    assert isinstance(served(CA.leaf(), CA.der, name="localhost"), Issued)
    assert "another host name" in failed(served(CA.leaf(names=("127.0.0.1",)), CA.der, name="localhost"))


@pytest.mark.parametrize("host", ["name.invalid", "a..b", ".", "-", "x" * 64 + ".invalid", "1.2.3.4.5.invalid"])
@pytest.mark.parametrize("beside", [None, CA.pem])
def test_a_name_that_does_not_resolve_is_a_failure_that_says_so(host: str, beside: bytes | None) -> None:
    why = failed(transport(443, host=host, ca_file=beside, timeout_s=5).join(QUESTION))
    assert host in why
    assert "does not resolve" in why or "UNAVAILABLE" in why


def test_a_port_where_nobody_listens_is_a_failure_that_says_so() -> None:
    with closed_port() as port:
        for beside in (None, CA.pem):
            assert "connection refused" in failed(transport(port, ca_file=beside).join(QUESTION)).lower()


# --- Servers that are none


def test_a_server_with_tls_1_2_alone_is_none(tmp_path: Path) -> None:
    chain = tls.to_pem(CA.leaf(), CA.der)
    with tls.raw_server(tls.tls_server(tmp_path, chain, ssl.TLSVersion.TLSv1_2)) as port:
        assert "no TLS 1.3 there" in failed(transport(port).join(QUESTION))


def test_a_server_with_tls_1_2_alone_is_none_for_one_that_has_the_ca_at_hand_either(tmp_path: Path) -> None:
    """No probe is made then, and gRPC itself has to refuse."""
    chain = tls.to_pem(CA.leaf(), CA.der)
    with tls.raw_server(tls.tls_server(tmp_path, chain, ssl.TLSVersion.TLSv1_2)) as port:
        assert "no TLS 1.3 there" in failed(transport(port, ca_file=tls.to_pem(CA.der)).join(QUESTION))


def test_a_server_with_tls_and_nothing_behind_it_is_given_up_in_time(tmp_path: Path) -> None:
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf(), CA.der))) as port:
        assert failed(transport(port, timeout_s=SOON_S).join(QUESTION))


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    done = threading.Event()
    with tls.raw_server(lambda connection: done.wait(20) and None) as port:
        why = failed(transport(port, timeout_s=SOON_S).join(QUESTION))
        done.set()
    assert "no answer within" in why


def test_a_server_that_says_one_byte_at_a_time_is_given_up_in_time_too() -> None:
    """Each byte comes well within the time for one read; all of them together never would."""
    done = threading.Event()

    def drip(connection: socket.socket) -> None:
        # A handshake record of 16 KiB, of which a byte comes every so often.
        connection.sendall(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb")
        while not done.wait(SOON_S / 5):
            connection.sendall(b"\0")

    with tls.raw_server(drip) as port:
        asked = threading.Thread(target=lambda: said.append(transport(port, timeout_s=SOON_S).join(QUESTION)))
        said: list[Answer] = []
        asked.start()
        # Far from the quarter of an hour that the whole record would take, and from what a busy machine does.
        asked.join(60)
        in_time = not asked.is_alive()
        done.set()
        asked.join()
    assert in_time
    assert failed(said[0])


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 No\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46", bytes(500)])
def test_a_server_that_speaks_something_else_is_a_failure(said: bytes) -> None:
    with tls.raw_server(lambda connection: connection.sendall(said)) as port:
        assert f"127.0.0.1:{port}" in failed(transport(port).join(QUESTION))


def test_a_certificate_of_an_unknown_version_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    """The chain of a bare handshake is anybody's: nothing in it may end a join other than as a failure."""
    version = bytes.fromhex("a003020102")
    assert version in CA.der
    odd = ssl.DER_cert_to_PEM_cert(CA.der.replace(version, bytes.fromhex("a003020107"))).encode()
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf()) + odd)) as port:
        assert "does not parse" in failed(transport(port).join(QUESTION))
    assert isinstance(served(CA.leaf(), CA.der, ca_file=odd), Issued)


def test_a_ca_with_a_key_of_an_unknown_kind_is_a_mismatch_and_no_crash(tmp_path: Path) -> None:
    """OpenSSL serves a curve that the cryptography package does not know."""
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:brainpoolP256t1 -nodes -subj /CN=odd"
    path = tmp_path / "odd.pem"
    command = ["openssl", *words.split(), "-keyout", str(tmp_path / "odd.key"), "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf()) + path.read_bytes())) as port:
        with pytest.raises(FixConfiguration) as caught:
            transport(port).join(QUESTION)
        assert "a key of an unknown kind" in caught.value.text
    assert isinstance(served(CA.leaf(), CA.der, ca_file=path.read_bytes() + CA.pem), Issued)


ASK = """
import sys
from bcd.adapters.grpc.join import GrpcJoinTransport
from bcd.adapters.host.clock import SystemClock
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import Role
from bcd.domain.model.pending import PendingJoin
from bcd.domain.model.pins import Pin, Pins
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.files.config import Address
address = Address("127.0.0.1", int(sys.argv[1]))
pins = Pins(tuple(Pin(pin) for pin in sys.argv[2].split(",")))
transport = GrpcJoinTransport(address, pins, "config.toml", SystemClock(), lambda: open(sys.argv[3], "rb").read())
pending = PendingJoin("join-token", Role.NODE, None, b"", b"", None, "", SystemClock().now())
print(type(transport.join(JoinQuestion(pending, Claims(), "0"))).__name__)
"""


@pytest.mark.parametrize("beside", [CA.pem, NEXT_CA.pem])
def test_grpc_writes_nothing_of_its_own_on_standard_error(beside: bytes, tmp_path: Path) -> None:
    """Its core logs a failed handshake there, in the middle of our own lines."""
    (tmp_path / "ca.pem").write_bytes(beside)
    with tls.grpc_server(lambda data, context: refuse(context) or b"", [CA.leaf(), CA.der]) as port:
        both = f"{CA.pin},{NEXT_CA.pin}"
        words = [sys.executable, "-c", ASK, str(port), both, str(tmp_path / "ca.pem")]
        done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert (done.stdout, done.stderr) == ("JoinDenied\n", "")


def test_no_descriptor_is_left_after_a_question(tmp_path: Path) -> None:
    service = Service()
    with tls.grpc_server(service, [CA.leaf(), CA.der]) as port:
        asked = transport(port)
        asked.join(QUESTION)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            asked.join(QUESTION)
        asked.close()
        # gRPC hangs up in the background, and keeps a descriptor or two of its own.
        until(lambda: len(os.listdir("/proc/self/fd")) <= before + 4, "the descriptors to be given back")
