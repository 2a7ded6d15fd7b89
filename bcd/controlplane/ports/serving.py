"""Ports: what a running server is made of."""

from typing import Protocol

from bcd.controlplane.domain.hosts import Endpoint


class Door(Protocol):
    """A listening port."""

    def bind(self, wanted: Endpoint) -> Endpoint:
        """Where it listens now (port 0 replaced by the one it got). TryLater when it cannot."""
        ...

    async def start(self) -> None: ...

    async def stop(self, grace_s: float) -> None:
        """No new calls; those under way have `grace_s` seconds."""
        ...


class AdminDoor(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Endpoints(Protocol):
    """Where each port listened last; durable."""

    def get(self, name: str) -> Endpoint | None: ...

    def put(self, name: str, endpoint: Endpoint) -> None: ...
