"""The gateway's calls as a client makes them, on one loop and without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, cast

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from google.rpc import error_details_pb2, status_pb2

from bcd.controlplane.adapters.grpc.gateway_service import GatewayService
from bcd.controlplane.adapters.grpc.sessions import Sessions
from bcd.controlplane.app.gateway import Gateway
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.member import Member

PATIENCE_S = 20.0
HELLO = pb.NodeMessage(
    hello=pb.Hello(journal_id="0a" * 16, daemon_version="0.1.0", node_key="file")
).SerializeToString()


class Aborted(Exception):
    pass


class Context:
    """The part of a gRPC context that is used: what a client sends, and what it gets."""

    def __init__(self, leaf: bytes, *sent: bytes) -> None:
        pem = x509.load_der_x509_certificate(leaf).public_bytes(serialization.Encoding.PEM) if leaf else b""
        self.auth = {"x509_pem_cert": [pem]} if leaf else {}
        self.sent: asyncio.Queue[object] = asyncio.Queue()
        for message in sent:
            self.sent.put_nowait(message)
        self.got: asyncio.Queue[pb.GatewayMessage] = asyncio.Queue()
        self.status: tuple[Any, ...] = ()

    def auth_context(self) -> dict[str, list[bytes]]:
        return self.auth

    def peer(self) -> str:
        return "ipv4:192.0.2.7:4711"

    async def read(self) -> object:
        return await self.sent.get()

    async def write(self, message: bytes) -> None:
        self.got.put_nowait(pb.GatewayMessage.FromString(message))

    async def abort(self, code: grpc.StatusCode, text: str, trailing: Any) -> None:
        self.status = (code, text, dict(trailing))
        raise Aborted

    def half_close(self) -> None:
        self.sent.put_nowait(grpc.aio.EOF)

    async def hear(self) -> tuple[str, Any]:
        """The next message's kind and value."""
        message = await asyncio.wait_for(self.got.get(), PATIENCE_S)
        kind = str(message.WhichOneof("message"))
        return kind, getattr(message, kind)


class Scene:
    """A gateway on the memory control plane, whose news reach real sessions."""

    def __init__(self, plane: MemoryControlPlane, gateways: Any = None, **options: Any) -> None:
        self.plane = plane
        self.sessions = Sessions(quiet_after_s=0.0)
        self.service = GatewayService(
            gateways or plane.gateway, self.sessions, plane.settings.trust_domain, plane.clock, plane.log, **options
        )

    def begin(self) -> None:
        """On the loop: what the control plane tells goes to the sessions from here on."""
        self.sessions.begin()
        news: Any = self.plane.news
        news.tell, news.live = self.sessions.tell, self.sessions.live

    def method(self, name: str) -> Any:
        details: Any = _Details(f"/bc.identity.v1.Gateway/{name}")
        return self.service.handler().service(cast(Any, details))

    async def renew(self, leaf: bytes, data: bytes) -> tuple[pb.RenewReply, tuple[Any, ...]]:
        context = Context(leaf)
        try:
            answer: bytes = await asyncio.wait_for(self.method("Renew").unary_unary(data, context), PATIENCE_S)
        except Aborted:
            return pb.RenewReply(), context.status
        return pb.RenewReply.FromString(answer), ()

    def session(self, context: Context) -> asyncio.Task[tuple[Any, ...]]:
        """What ends it: a status, or () when it ends well."""

        async def run() -> tuple[Any, ...]:
            try:
                await self.method("Session").stream_stream(None, context)
            except Aborted:
                pass
            return context.status

        return asyncio.create_task(run())


class _Details:
    invocation_metadata = ()

    def __init__(self, method: str) -> None:
        self.method = method


class Fails:
    """Gateways whose every future fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def hello(self, *_: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future

    renew = hello

    def ended(self, *_: object) -> None:
        raise AssertionError


class Waits:
    """Gateways that answer when they are told to."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.asked: list[Future[Any]] = []

    def hello(self, *_: object) -> Future[Any]:
        self.asked.append(Future())
        return self.asked[-1]

    renew = hello

    def ended(self, *_: object) -> None:
        pass


def run(scene: Scene, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        scene.begin()
        await test()

    asyncio.run(main())


def reason_of(status: tuple[Any, ...]) -> str:
    """The reason of our ErrorInfo; empty without one: then the status is not final."""
    found = status_pb2.Status.FromString(status[2].get("grpc-status-details-bin", b""))
    info = error_details_pb2.ErrorInfo()
    for detail in found.details:
        assert detail.Unpack(info) and info.domain == "bc.identity"
        assert found.code == status[0].value[0]
    return info.reason


def renewal(member: Member, **changes: Any) -> bytes:
    asked = member.ask()
    proof = statements_pb2.SignedStatement.FromString(asked.pop)
    chain = (member.leaf, member.plane.issuing.der)
    request = pb.RenewRequest(**({"csr": asked.csr, "chain": chain, "renew_pop": proof} | changes))
    return request.SerializeToString()


async def welcomed(scene: Scene, member: Member) -> tuple[Context, asyncio.Task[tuple[Any, ...]]]:
    context = Context(member.leaf, HELLO)
    task = scene.session(context)
    assert (await context.hear())[0] == "welcome"
    return context, task
