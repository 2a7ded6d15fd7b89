"""The one wrapper around the service: whatever happens inside, the client gets an answer, a refusal or "later"."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from bcd.controlplane.adapters.grpc.join_service import JoinService
from bcd.controlplane.adapters.grpc.messages import encode_request
from bcd.controlplane.domain.joining import JoinAnswer, JoinRequest, Refused, TooManyChallenges
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from tests.fakes.controlplane.control_plane import HeldLog, MemoryControlPlane
from tests.fakes.controlplane.machine import Machine

PATIENCE_S = 20.0


class Aborted(Exception):
    pass


class Context:
    """The part of a gRPC context that is used."""

    def __init__(self) -> None:
        self.status: tuple[Any, ...] = ()

    def peer(self) -> str:
        return "ipv4:192.0.2.7:4711"

    async def abort(self, code: grpc.StatusCode, text: str, trailing: Any) -> None:
        self.status = (code, text, dict(trailing))
        raise Aborted


def call(service: JoinService, data: bytes) -> tuple[bytes, tuple[Any, ...]]:
    """The answer, or the status in its place."""
    method: Any = service.handler().service(cast(Any, _Details()))
    context = Context()

    async def run() -> bytes:
        try:
            answer: bytes = await method.unary_unary(data, context)
        except Aborted:
            return b""
        return answer

    return asyncio.run(run()), context.status


class _Details:
    method = "/bc.identity.v1.JoinService/Join"
    invocation_metadata = ()


class Raises:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        raise self.error

    def malformed(self, source: str) -> Refused:
        raise self.error


def test_an_answer_is_a_join_reply_with_the_servers_time() -> None:
    plane = MemoryControlPlane()
    machine = Machine()
    service = JoinService(plane.joins, plane.clock, plane.log)
    data, status = call(service, encode_request(machine.request(plane.recipient, plane.token())))
    service.close()
    reply = pb.JoinReply.FromString(data)
    assert status == ()
    assert reply.server_time.ToDatetime() == plane.clock.now().replace(tzinfo=None)
    machine.check(reply.issued.SerializeToString(deterministic=True), plane.signing_pin)


class Says:
    def __init__(self, answer: JoinAnswer) -> None:
        self.answer = answer

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        return self.answer

    def malformed(self, source: str) -> Refused:
        raise AssertionError("a request that is one")


def test_too_many_challenges_are_told_to_come_later_each_at_another_time_and_nothing_final() -> None:
    service = JoinService(Says(TooManyChallenges()), MemoryControlPlane().clock, HeldLog())
    waits = set()
    for _ in range(8):
        _, (code, _, trailing) = call(service, b"")
        assert (code, set(trailing)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, {"grpc-retry-pushback-ms"})
        waits.add(int(trailing["grpc-retry-pushback-ms"]))
    service.close()
    assert len(waits) > 1
    assert all(30_000 <= wait <= 90_000 for wait in waits)


@pytest.mark.parametrize("data", [b"\xff\xff", b"", b"\x0a\x02\xff\xff"], ids=["no message", "empty", "not UTF-8"])
def test_every_refusal_looks_the_same_but_for_its_id(data: bytes) -> None:
    plane = MemoryControlPlane()
    service = JoinService(plane.joins, plane.clock, plane.log)
    _, (code, text, trailing) = call(service, data)
    service.close()
    assert (code, text) == (grpc.StatusCode.PERMISSION_DENIED, "Join refused")
    assert trailing["refusal-id"] == plane.refusals()[0].id
    assert plane.refusals()[0].source == "192.0.2.7"
    details = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
    assert (details.code, details.message) == (7, "Join refused")
    info = error_details_pb2.ErrorInfo()
    assert details.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == ("ACCESS_DENIED", "bc.identity", {})
    assert set(trailing) == {"refusal-id", "grpc-status-details-bin"}


@pytest.mark.parametrize(
    "error", [StoreUnavailable("SQLITE_FULL"), RuntimeError("secret path"), KeyError("x"), RecursionError()], ids=repr
)
@pytest.mark.parametrize("data", [b"", b"\xff\xff"], ids=["join", "malformed"])
def test_whatever_goes_wrong_the_client_hears_only_that_it_may_ask_later(error: Exception, data: bytes) -> None:
    log = HeldLog()
    service = JoinService(Raises(error), MemoryControlPlane().clock, log)
    _, status = call(service, data)
    service.close()
    assert status == (grpc.StatusCode.UNAVAILABLE, "temporarily unavailable", {})
    ((level, _, fields),) = log.lines
    assert level == "error"
    assert fields["cause"] is error


class Slow:
    """Joins that wait until they are let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        self.begun.release()
        assert self.go.wait(PATIENCE_S)
        return Refused("00" * 16)  # type: ignore[arg-type]

    def malformed(self, source: str) -> Refused:
        raise AssertionError("not asked for")


def test_beyond_the_limit_a_join_is_told_when_to_come_back() -> None:
    slow = Slow()
    service = JoinService(slow, MemoryControlPlane().clock, HeldLog(), limit=2)
    method: Any = service.handler().service(cast(Any, _Details()))

    async def one(context: Context) -> None:
        with pytest.raises(Aborted):
            await method.unary_unary(b"", context)

    async def run() -> list[Context]:
        contexts = [Context() for _ in range(4)]
        first = [asyncio.create_task(one(context)) for context in contexts[:2]]
        for _ in first:
            assert await asyncio.to_thread(slow.begun.acquire, True, PATIENCE_S)
        await one(contexts[2])
        slow.go.set()
        await asyncio.gather(*first)
        await one(contexts[3])
        return contexts

    contexts = asyncio.run(run())
    service.close()
    codes = [context.status[0].name for context in contexts]
    assert codes == ["PERMISSION_DENIED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "PERMISSION_DENIED"]
    assert int(contexts[2].status[2]["grpc-retry-pushback-ms"]) > 0
    assert "grpc-status-details-bin" not in contexts[2].status[2]
