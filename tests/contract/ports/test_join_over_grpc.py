"""What a join port may answer over gRPC, and what a node makes of it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest

from bcd.adapters.grpc.channel import OPTIONS
from bcd.domain.model.joining import Failed, Issued, JoinDenied
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from tests.contract.ports.join_rig import (
    CA,
    NEXT_CA,
    QUESTION,
    SOON_S,
    Service,
    ask,
    details,
    question,
    refuse,
    transport,
)
from tests.fakes import tls
from tests.fakes.outside import until

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
