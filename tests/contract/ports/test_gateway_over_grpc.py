"""What only gRPC's `Gateway` meets: statuses, messages that are none, silence."""

import queue
import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from bcd.ports.gateway import Ended, Heard, RenewAnswer, RenewNow, Retired, Revoked, Welcome
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from tests.contract.ports.gateway_rig import (
    HELLO,
    QUESTION,
    SOON_S,
    STATEMENT,
    WELCOME,
    Ears,
    GrpcRig,
    connected,
    over_grpc,
    settle,
)
from tests.fakes.gateway_server import Behaviour, error_info, stay


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
