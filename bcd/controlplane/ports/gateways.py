"""Port: what the gateway decides, as whoever receives its calls sees it. May be called from any thread."""

from concurrent.futures import Future
from typing import Protocol

from bcd.controlplane.domain.gateway import Greeting, HelloAnswer, Presented, RenewAnswer, RenewRequest


class Gateways(Protocol):
    """Neither waits; a future is done once its answer is durable. It fails with StoreUnavailable or CannotIssue:
    then nothing is decided."""

    def hello(self, presented: Presented, greeting: Greeting) -> Future[HelloAnswer]: ...

    def renew(self, presented: Presented, request: RenewRequest) -> Future[RenewAnswer]: ...

    def ended(self, presented: Presented) -> None:
        """A session that was welcome is over."""
        ...
