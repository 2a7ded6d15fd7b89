"""JoinService on the join port: bytes in, bytes or a status out."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from bcd.controlplane.adapters.grpc import status
from bcd.controlplane.adapters.grpc.messages import MalformedMessage, decode_request, encode_reply
from bcd.controlplane.adapters.grpc.peers import Context, source
from bcd.controlplane.domain.joining import JoinAnswer, Refused, TooManyChallenges
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.joins import Joins
from bcd.controlplane.ports.log import Log

SERVICE = "bc.identity.v1.JoinService"
# Joins decided at once, a thread each; the store's writer takes them in groups. Beyond it nodes are asked to wait.
MAX_JOINS = 32
PUSHBACK_MS = 2000
# Some of those under way will be answered, or out of time, when a tenth of what a challenge lives is over.
CHALLENGES_PUSHBACK_MS = (30_000, 90_000)

Outcome = bytes | status.Status


class JoinService:
    """Bounded: never more than `limit` joins under way."""

    def __init__(self, joins: Joins, clock: WallClock, log: Log, limit: int = MAX_JOINS) -> None:
        self._joins = joins
        self._clock = clock
        self._log = log
        self._limit = limit
        self._under_way = 0
        self._threads = ThreadPoolExecutor(max_workers=limit, thread_name_prefix="join")

    def handler(self) -> grpc.GenericRpcHandler:
        method: Any = grpc.unary_unary_rpc_method_handler(guarded(self._log, self._answer))
        return grpc.method_handlers_generic_handler(SERVICE, {"Join": method})

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _answer(self, data: bytes, peer: str) -> Outcome:
        if self._under_way >= self._limit:
            return status.busy(PUSHBACK_MS)
        self._under_way += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._decide, data, source(peer))
        finally:
            self._under_way -= 1
        if isinstance(answer, Refused):
            return status.join_refused(answer.id)
        if isinstance(answer, TooManyChallenges):
            return status.busy(status.spread(*CHALLENGES_PUSHBACK_MS))
        return encode_reply(answer, self._clock.now())

    def _decide(self, data: bytes, peer: str) -> JoinAnswer:
        try:
            request = decode_request(data)
        except MalformedMessage:
            return self._joins.malformed(peer)
        return self._joins.join(request, peer)


def guarded(
    log: Log, answer: Callable[[bytes, str], Awaitable[Outcome]]
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    """The one wrapper around every handler: whatever goes wrong inside, the client learns that it may ask later."""

    async def handle(data: bytes, context: Context) -> bytes:
        try:
            outcome = await answer(data, context.peer())
        except Exception as error:  # noqa: BLE001 - gRPC would send its text to the client
            log.fault("a call failed", error, peer=context.peer())
            outcome = status.unavailable()
        if isinstance(outcome, bytes):
            return outcome
        await context.abort(outcome.code, outcome.text, outcome.trailing)
        raise AssertionError("abort returned")

    return handle
