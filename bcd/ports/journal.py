"""Ports: the journal (decision 10): whose it is, and what a running node writes in it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bcd.domain.model.names import NodeId

# How the session of an identity that was revoked is written down: this word, and the reason.
REVOKED = "revoked"


@dataclass(frozen=True)
class NoJournal:
    """There is none."""


@dataclass(frozen=True)
class CorruptJournal:
    """There is a file, and it is no journal: `why` in words."""

    why: str


@dataclass(frozen=True)
class Told:
    """What the node that runs, or ran last, wrote of itself; None and empty where it wrote nothing yet. It may be a
    little stale while a node runs: nobody waits for it. `running` is the process that has the journal open, if any."""

    running: str = ""
    session: str = ""
    session_since: datetime | None = None
    planned: datetime | None = None
    failures: int = 0
    last_error: str = ""
    last_error_at: datetime | None = None
    signatures: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class JournalOf:
    """A journal; `owner` is None in one that belongs to nobody yet."""

    owner: NodeId | None
    told: Told = field(default_factory=Told)


JournalState = NoJournal | CorruptJournal | JournalOf


class Journal(Protocol):
    def look(self) -> JournalState:
        """Whose journal lies in the data directory and what it says. Writes nothing and takes no lock.

        Refused (PERMISSION_DENIED) or TryLater (FILE_SYSTEM) when it cannot be read: that makes it no corrupt one."""
        ...


class NodeJournal(Protocol):
    """The journal of the node that runs. No method fails: a full or read-only disk costs the record, not the node.
    Times are UTC."""

    @property
    def journal_id(self) -> str:
        """32 hexadecimal digits, new with every new journal."""
        ...

    @property
    def server_time(self) -> datetime | None:
        """The high-water mark of server times."""
        ...

    def heard(self, server_time: datetime) -> None:
        """Raises the mark; durable on return."""
        ...

    def session(self, state: str, at: datetime) -> None:
        """How the session stands since `at`, in words; those of a revoked identity begin with REVOKED."""
        ...

    def planned(self, at: datetime) -> None:
        """When the next renewal is to be."""
        ...

    def attempted(self, at: datetime, failures: int, error: str) -> None:
        """A renewal ended: with `error`, the `failures`-th in a row, or well (no failures, no error)."""
        ...

    def signed(self, kid: str, count: int) -> None:
        """`count` more signatures by the key with that thumbprint."""
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...
