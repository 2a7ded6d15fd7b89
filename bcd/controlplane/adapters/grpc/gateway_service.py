"""Gateway on the gateway port: Renew, and the session stream."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import grpc

from bcd.controlplane.adapters.grpc import gateway_messages as messages
from bcd.controlplane.adapters.grpc import status
from bcd.controlplane.adapters.grpc.messages import MalformedMessage
from bcd.controlplane.adapters.grpc.peers import Context, NotANode, presented
from bcd.controlplane.adapters.grpc.sessions import End, Session, Sessions
from bcd.controlplane.adapters.grpc.status import Status
from bcd.controlplane.domain.gateway import Malformed, No, NotNow, OutOfDate, Presented, Renewed, Welcomed
from bcd.controlplane.domain.news import BundleChanged, NodeRevoked, RenewalDue
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.gateways import Gateways
from bcd.controlplane.ports.log import Log
from bcd.domain.model.names import TrustDomain

T = TypeVar("T")
SERVICE = "bc.identity.v1.Gateway"
# Calls decided at once; the store's writer takes them in groups. Beyond it nodes are asked to wait.
MAX_CALLS = 1000
# Spread over the nodes, which wait exactly what they are told.
PUSHBACK_MS = (1000, 10_000)
# A node says Hello with the stream itself; one that says nothing holds a stream for this long, in seconds.
HELLO_WITHIN_S = 10.0
# How often a session looks at the clock, in seconds: clocks are set.
LOOK_EVERY_S = 30.0


class GatewayService:
    def __init__(
        self,
        gateways: Gateways,
        sessions: Sessions,
        domain: TrustDomain,
        clock: WallClock,
        log: Log,
        *,
        limit: int = MAX_CALLS,
        hello_within_s: float = HELLO_WITHIN_S,
    ) -> None:
        self._gateways = gateways
        self._sessions = sessions
        self._domain = domain
        self._clock = clock
        self._log = log
        self._limit = limit
        self._hello_within_s = hello_within_s
        self._under_way = 0

    def handler(self) -> grpc.GenericRpcHandler:
        renew: Any = grpc.unary_unary_rpc_method_handler(self._guarded_renew)
        session: Any = grpc.stream_stream_rpc_method_handler(self._guarded_session)
        return grpc.method_handlers_generic_handler(SERVICE, {"Renew": renew, "Session": session})

    async def _guarded_renew(self, data: bytes, context: Context) -> bytes:
        outcome = await self._guarded(context, lambda: self._renew(data, context))
        if isinstance(outcome, bytes):
            return outcome
        await context.abort(outcome.code, outcome.text, outcome.trailing)
        raise AssertionError("abort returned")

    async def _guarded_session(self, _: object, context: Context) -> None:
        outcome = await self._guarded(context, lambda: self._session(context))
        if outcome is not None:
            await context.abort(outcome.code, outcome.text, outcome.trailing)

    async def _guarded(self, context: Context, answer: Callable[[], Awaitable[T | Status]]) -> T | Status:
        """Whatever goes wrong inside, the node learns that it may ask later: nothing is final by accident."""
        try:
            return await answer()
        except NotANode as error:
            self._log.warning("a certificate that is no node's", why=error, peer=context.peer())
            return status.not_a_node()
        except MalformedMessage as error:
            return status.of(Malformed(str(error)))
        except Exception as error:  # noqa: BLE001 - gRPC would send its text to the client
            self._log.fault("a call failed", error, peer=context.peer())
            return status.unavailable()

    async def _renew(self, data: bytes, context: Context) -> bytes | Status:
        peer = presented(context, self._domain)
        request = messages.decode_renew(data)
        answer: Renewed | Status = await self._decided(peer, lambda: self._gateways.renew(peer, request))
        return answer if isinstance(answer, Status) else messages.encode_renewed(answer)

    async def _session(self, context: Context) -> Status | None:
        peer = presented(context, self._domain)
        try:
            async with asyncio.timeout(self._hello_within_s):
                first = await context.read()
        except TimeoutError:
            return status.of(Malformed("no Hello came"))
        if not isinstance(first, bytes):
            # Half-closed before a word.
            return status.of(Malformed("a session begins with Hello"))
        greeting = messages.decode_hello(first)
        session = Session(peer)
        self._sessions.open(session)
        try:
            answer: Welcomed | Status = await self._decided(peer, lambda: self._gateways.hello(peer, greeting))
            if isinstance(answer, Status):
                return answer
            await context.write(messages.encode_welcome(answer))
            return await self._up(context, session, peer, answer)
        finally:
            self._sessions.close(session)

    async def _decided(self, peer: Presented, ask: Callable[[], "Future[T | No]"]) -> T | Status:
        """The answer, or the status that a refusal is."""
        if self._under_way >= self._limit:
            return status.busy(status.spread(*PUSHBACK_MS))
        self._under_way += 1
        try:
            # Shielded: a node that goes away must not cancel what the store is about to do.
            answer = await asyncio.shield(asyncio.wrap_future(ask()))
        finally:
            self._under_way -= 1
        if not isinstance(answer, No):
            return answer
        refused = status.of(answer)
        why = answer.why if isinstance(answer, NotNow) else refused.text
        self._log.warning("a node was refused", node=peer.node_id, serial=peer.serial, source=peer.source, why=why)
        return refused

    async def _up(self, context: Context, session: Session, peer: Presented, answer: Welcomed) -> Status | None:
        self._sessions.welcome(session)
        self._log.info("session up", node=peer.node_id, serial=peer.serial, source=peer.source)
        if answer.renew_now:
            session.take(RenewalDue(peer.node_id, answer.renew_now))
        reading = asyncio.create_task(_read_on(context, session))
        try:
            return await self._speak(context, session, answer)
        finally:
            reading.cancel()
            self._gateways.ended(peer)
            self._log.info("session over", node=peer.node_id, serial=peer.serial, source=peer.source)

    async def _speak(self, context: Context, session: Session, answer: Welcomed) -> Status | None:
        version = answer.bundle.version
        while True:
            left_s = (answer.not_after - self._clock.now()).total_seconds()
            if left_s <= 0:
                return status.of(OutOfDate())
            match await session.next(min(left_s, LOOK_EVERY_S)):
                case NodeRevoked(_, generation, reason, at) if answer.generation < generation:
                    await context.write(messages.encode_revoked(reason, at))
                    return status.revoked(reason)
                case End.STOPPING:
                    return status.unavailable()
                case End.QUIETLY:
                    return None
                case RenewalDue(_, reason):
                    await context.write(messages.encode_renew_now(reason))
                case BundleChanged(bundle) if bundle.version > version:
                    version = bundle.version
                    await context.write(messages.encode_bundle(bundle))


async def _read_on(context: Context, session: Session) -> None:
    """Until the node closes its side; what a later bcd may say meanwhile is passed over."""
    while isinstance(await context.read(), bytes):
        pass
    session.take(End.QUIETLY)
