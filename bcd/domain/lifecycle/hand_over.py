"""Giving the identity's files to the user the node runs as (specification, "What the join does", step 7)."""

from dataclasses import dataclass

from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, NEXT_KEY
from bcd.ports.events import Events
from bcd.ports.fs import Fs

# The directory itself is the empty name: who may not enter it can read none of its files.
HANDED_OVER = ("", IDENTITY, KEY, NEXT_KEY, JOURNAL, *JOURNAL_SIDE_FILES)


@dataclass(frozen=True)
class HandOver:
    fs: Fs
    events: Events

    def __call__(self) -> None:
        """Every file of the identity belongs to the directory's intended owner afterwards, as after a restored backup
        (each change of an owner is logged). The caller holds the lock."""
        for name in HANDED_OVER:
            if self.fs.hand_over(name):
                self.events.info("handed over to the node's user", file=name or "the data directory")
