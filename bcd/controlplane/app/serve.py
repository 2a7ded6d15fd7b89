"""The running server: bind, remember where, open, say so, wait for the end, close."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bcd.controlplane.domain.hosts import Endpoint
from bcd.controlplane.ports.serving import AdminDoor, Door, Endpoints

JOIN, GATEWAY, HTTP = "join", "gateway", "http"
DEFAULT_ENDPOINT = Endpoint("::", 0)
# What is under way when the end is asked for has this long, in seconds; all ends within one.
GRACE_S = 0.5


@dataclass(frozen=True)
class Serve:
    """`stopping` is called when the end has been asked for: it ends what would not end by itself. `http` is opened
    once somebody has asked for it."""

    join: Door
    gateway: Door
    http: Door
    admin: AdminDoor
    endpoints: Endpoints
    ready: Callable[[Mapping[str, Endpoint]], None]
    stopping: Callable[[], None]

    async def __call__(self, join: Endpoint | None, gateway: Endpoint | None, http: Endpoint | None) -> None:
        """Serves until SIGTERM or SIGINT."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        joining = self.join.bind(to_bind(join, self.endpoints.get(JOIN), DEFAULT_ENDPOINT))
        beside = Endpoint(joining.host, 0)
        calling = self.gateway.bind(to_bind(gateway, self.endpoints.get(GATEWAY), beside))
        bound = {JOIN: joining, GATEWAY: calling}
        kept = self.endpoints.get(HTTP)
        if http is not None or kept is not None:
            bound[HTTP] = self.http.bind(to_bind(http, kept, beside))
        # Before anyone can learn the ports: they are the ones nodes will have in their configuration.
        for name, endpoint in bound.items():
            self.endpoints.put(name, endpoint)
        await self.join.start()
        await self.gateway.start()
        await self.http.start()
        await self.admin.start()
        self.ready(bound)
        try:
            await stop.wait()
        finally:
            self.stopping()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self.admin.stop(), self.join.stop(GRACE_S), self.gateway.stop(GRACE_S), self.http.stop(GRACE_S)
                )


def to_bind(wanted: Endpoint | None, kept: Endpoint | None, default: Endpoint) -> Endpoint:
    """A port that was given once is kept: port 0 means it, and any free one only the first time."""
    if wanted is None:
        return kept or default
    if wanted.port == 0 and kept is not None:
        return Endpoint(wanted.host, kept.port)
    return wanted
