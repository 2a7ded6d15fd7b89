"""What may lie in a data directory before a join."""

from bcd.adapters.keys.file import FileKey
from bcd.domain.model.datadir import JOURNAL, KEY, NEXT_KEY
from tests.crash.judge import Previous, previous_of
from tests.fakes import pki
from tests.fakes.joining import journal_of

PATH = "/var/lib/bcd"

ORPHAN = {KEY: FileKey(pki.OTHER_KEY).record}
JOURNAL_OF_ANOTHER = {
    JOURNAL: journal_of("n-old"),
    f"{JOURNAL}-journal": b"what SQLite keeps to undo",
    f"{JOURNAL}-wal": b"what SQLite keeps to do",
    f"{JOURNAL}-shm": b"an index of it",
}
STALE_NEXT = {NEXT_KEY: FileKey(pki.private_key(1010)).record}

# None: there is not even a directory.
BEFORE: dict[str, dict[str, bytes] | None] = {
    "no directory": None,
    "an empty directory": {},
    "an orphan key": ORPHAN,
    "another node's journal": JOURNAL_OF_ANOTHER,
    "a stale next key": STALE_NEXT,
    "all of them": ORPHAN | JOURNAL_OF_ANOTHER | STALE_NEXT,
}


def previous(before: dict[str, bytes] | None) -> Previous:
    return previous_of(before or {}, before or {})
