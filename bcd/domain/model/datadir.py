"""The data directory: which files an identity has, and whose they must be (specification, "What the identity is")."""

import stat
from dataclasses import dataclass
from datetime import UTC, datetime

from bcd.domain.model.names import NodeId

IDENTITY = "identity.json"
KEY = "node.key"
NEXT_KEY = "node.key.next"
JOURNAL = "journal.db"
PENDING = "join.pending"
# SQLite's side files in rollback and in WAL mode; they belong to the journal wherever it goes.
JOURNAL_SIDE_FILES = (f"{JOURNAL}-journal", f"{JOURNAL}-wal", f"{JOURNAL}-shm")
# Root's record of the join (specification, "What the join does", step 5), in the helper's own directory.
JOIN_RECORD = "join-response.pb"

# Decision 7: the identity goes last, so that a cut leaves a mismatch, which points back to --reset. The journal goes
# after its side files (lifecycle.set_aside).
RESET_ORDER = (NEXT_KEY, KEY, PENDING, *JOURNAL_SIDE_FILES, JOURNAL, IDENTITY)
SECRETS = (KEY, NEXT_KEY, PENDING)

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
# identity.json of a node with a long chain and a large bundle stays far below this.
MAX_FILE_BYTES = 1 << 20
# Decision 3: how long a writer waits for another.
LOCK_WAIT_S = 45.0


@dataclass(frozen=True)
class Entry:
    """What `lstat` says of one name. `mode` is the permission bits alone."""

    name: str
    regular: bool
    mode: int
    uid: int
    size: int
    mtime_ns: int
    inode: int

    @property
    def loose(self) -> bool:
        """Whether anybody but the owner may read or write it."""
        return bool(self.mode & (stat.S_IRWXG | stat.S_IRWXO))


@dataclass(frozen=True)
class Directory:
    """What the data directory is right now. `free_bytes` is what an unprivileged writer has left."""

    path: str
    mode: int
    uid: int
    free_bytes: int
    read_only: bool

    @property
    def loose(self) -> bool:
        return bool(self.mode & (stat.S_IRWXG | stat.S_IRWXO))


@dataclass(frozen=True)
class Moved:
    """One file that was, or would be, set aside."""

    name: str
    new_name: str


def stamp(now: datetime) -> str:
    """The UTC time as it stands in the name of a file moved aside: 20260926T114200Z."""
    return _utc(now).strftime("%Y%m%dT%H%M%SZ")


def reset_name(name: str, now: datetime) -> str:
    return f"{name}.reset-{stamp(now)}"


def orphan_name(name: str, now: datetime) -> str:
    """Where a join puts a key that no identity stands beside (decision 6)."""
    return f"{name}.orphan-{stamp(now)}"


def refused_name(now: datetime) -> str:
    """Where a join puts the request the control plane refused for good."""
    return f"{PENDING}.refused-{stamp(now)}"


def corrupt_name(name: str, now: datetime) -> str:
    return f"{name}.corrupt-{stamp(now)}"


def other_nodes_journal(owner: NodeId, now: datetime) -> str:
    """Where a join puts another node's journal (specification, "What the join does", step 6): Unix time, seconds."""
    return f"{JOURNAL}.{owner}-{int(_utc(now).timestamp())}"


def _utc(now: datetime) -> datetime:
    # A datetime without a zone would silently be read in the machine's own.
    if now.tzinfo is None:
        raise ValueError("a time without a zone")
    return now.astimezone(UTC)


@dataclass(frozen=True)
class Fault:
    """A directory or a file of an identity that others could read, or that the node could not. `mode` and `uid` are
    what it has, `want_uid` whose it must be where that is the fault, else None."""

    name: str
    mode: int
    uid: int
    want_uid: int | None


def faults(directory: Directory, entries: tuple[Entry, ...], owner_uid: int) -> tuple[Fault, ...]:
    """What is wrong with modes and owners (decision 11); the directory's own fault has an empty name."""
    found = []
    if directory.loose:
        found.append(Fault("", directory.mode, directory.uid, None))
    if directory.uid != owner_uid:
        found.append(Fault("", directory.mode, directory.uid, owner_uid))
    for entry in entries:
        # A link's own mode says nothing, and a chmod would follow it; that it is no file is told elsewhere.
        if entry.name not in (IDENTITY, *SECRETS, JOURNAL) or not entry.regular:
            continue
        if entry.loose:
            found.append(Fault(entry.name, entry.mode, entry.uid, None))
        if entry.uid != owner_uid and entry.name != PENDING:
            found.append(Fault(entry.name, entry.mode, entry.uid, owner_uid))
    return tuple(found)
