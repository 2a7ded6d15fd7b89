"""Port: asking the JoinService."""

from dataclasses import dataclass
from typing import Protocol

from bcd.domain.model.attestation import ChallengeAnswer, TpmEvidence
from bcd.domain.model.claims import Claims
from bcd.domain.model.joining import Answer
from bcd.domain.model.pending import PendingJoin


@dataclass(frozen=True)
class JoinQuestion:
    """One Join request: the pending join, what the machine says of itself, and what its TPM shows and proves."""

    pending: PendingJoin
    claims: Claims
    daemon_version: str
    evidence: TpmEvidence | None = None
    answer: ChallengeAnswer | None = None


class JoinTransport(Protocol):
    def join(self, question: JoinQuestion) -> Answer:
        """What came back, within a bounded time (30 s); a lost or confused answer is Failed.

        FixConfiguration (SERVING_PIN) when the server is not the one that is pinned."""
        ...

    def close(self) -> None:
        """Ends every connection."""
        ...
