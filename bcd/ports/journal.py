"""Port: the command journal, as far as a join needs it: whose it is."""

from dataclasses import dataclass
from typing import Protocol

from bcd.domain.model.names import NodeId


@dataclass(frozen=True)
class NoJournal:
    """There is none."""


@dataclass(frozen=True)
class CorruptJournal:
    """There is a file, and it is no journal: `why` in words."""

    why: str


@dataclass(frozen=True)
class JournalOf:
    """A journal; `owner` is None in one that belongs to nobody yet."""

    owner: NodeId | None


JournalState = NoJournal | CorruptJournal | JournalOf


class Journal(Protocol):
    def look(self) -> JournalState:
        """Whose journal lies in the data directory. Writes nothing and takes no lock.

        Refused (PERMISSION_DENIED) or TryLater (FILE_SYSTEM) when it cannot be read: that makes it no corrupt one."""
        ...
