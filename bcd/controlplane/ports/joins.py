"""Port: the join decision, as whoever receives requests sees it. Both may be called from many threads at once."""

from typing import Protocol

from bcd.controlplane.domain.joining import JoinAnswer, JoinRequest, Refused


class Joins(Protocol):
    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        """The answer, durable. StoreUnavailable, CannotIssue: nothing is decided."""
        ...

    def malformed(self, source: str) -> Refused:
        """The answer to what is not even a request. StoreUnavailable as above."""
        ...
