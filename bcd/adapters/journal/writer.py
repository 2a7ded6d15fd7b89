"""Port `NodeJournal` on SQLite (decision 10): rollback mode, synchronous=FULL, one file that belongs to one node id."""

import fcntl
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from bcd.domain.model.names import NodeId
from bcd.ports.events import Events
from bcd.protocol.files.encoding import MalformedFile, from_time, to_time

_ID = re.compile(r"[0-9a-f]{32}")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (
    node_id TEXT NOT NULL, journal_id TEXT NOT NULL, server_time TEXT,
    session TEXT NOT NULL DEFAULT '', session_since TEXT, planned TEXT,
    failures INTEGER NOT NULL DEFAULT 0, last_error TEXT NOT NULL DEFAULT '', last_error_at TEXT
);
CREATE TABLE IF NOT EXISTS renewals (at TEXT NOT NULL, error TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS signatures (kid TEXT PRIMARY KEY, count INTEGER NOT NULL);
"""
# Attempts kept: a year of renewals at two a day, and a bad night.
_KEEP_RENEWALS = 1000
CLOSE_WITHIN_S = 0.5


class SecondNode(Exception):
    """Another process has this journal; `file` is what fstat says of it."""

    def __init__(self, file: os.stat_result) -> None:
        super().__init__()
        self.file = file


@dataclass(frozen=True)
class Found:
    """An open journal and the descriptor whose lock makes this process the only one with it."""

    connection: sqlite3.Connection
    descriptor: int


class SqliteNodeJournal:
    """Every write is one transaction, durable on return; a failure is told once and costs the record, not the node."""

    def __init__(self, found: Found, journal_id: str, server_time: datetime | None, events: Events) -> None:
        self._found = found
        self._id = journal_id
        self._server_time = server_time
        self._events = events
        self._told_trouble = False
        self._closed = False
        self._lock = threading.Lock()

    @property
    def journal_id(self) -> str:
        return self._id

    @property
    def server_time(self) -> datetime | None:
        return self._server_time

    def heard(self, server_time: datetime) -> None:
        if self._server_time is not None and server_time <= self._server_time:
            return
        self._server_time = server_time
        self._write("UPDATE meta SET server_time = ?", to_time(server_time))

    def session(self, state: str, at: datetime) -> None:
        self._write("UPDATE meta SET session = ?, session_since = ?", state[:300], to_time(at))

    def planned(self, at: datetime) -> None:
        self._write("UPDATE meta SET planned = ?", to_time(at))

    def attempted(self, at: datetime, failures: int, error: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO renewals VALUES (?, ?)", (to_time(at), error[:300]))
            connection.execute(
                "DELETE FROM renewals WHERE rowid <= (SELECT max(rowid) FROM renewals) - ?", (_KEEP_RENEWALS,)
            )
            last = to_time(at) if error else None
            connection.execute(
                "UPDATE meta SET failures = ?, last_error = ?, last_error_at = ?", (failures, error[:300], last)
            )

        self._transact(work)

    def signed(self, kid: str, count: int) -> None:
        self._write(
            "INSERT INTO signatures VALUES (?, ?) ON CONFLICT (kid) DO UPDATE SET count = count + excluded.count",
            kid,
            count,
        )

    def close(self) -> None:
        # A write under way is waited for, but not for long: it may be one that a disk holds up, and SIGTERM does not
        # wait. The process' end closes what is left open then.
        if not self._lock.acquire(timeout=CLOSE_WITHIN_S):
            self._closed = True
            return
        try:
            if not self._closed:
                self._closed = True
                self._found.connection.close()
                os.close(self._found.descriptor)
        finally:
            self._lock.release()

    def _write(self, statement: str, *values: str | int | None) -> None:
        self._transact(lambda connection: connection.execute(statement, values))

    def _transact(self, work: Callable[[sqlite3.Connection], object]) -> None:
        try:
            # The node decides on one thread and writes on another; each has something to record.
            with self._lock:
                if self._closed:
                    # A renewal that ends after its node did.
                    return
                with self._found.connection as connection:
                    work(connection)
            self._told_trouble = False
        except sqlite3.Error as error:
            if not self._told_trouble:
                self._events.warning("the journal could not be written", why=error)
            self._told_trouble = True


def open_journal(path: str, node: NodeId, events: Events) -> SqliteNodeJournal:
    """The journal at `path`, made when there is none. The caller has made sure that it is this node's, or nobody's.

    SecondNode when another process has it; OSError or sqlite3.Error when it cannot be opened for writing."""
    # Born 0600: SQLite would take the process' umask, and its side files follow this one.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SecondNode(os.fstat(descriptor)) from None
        connection = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=1.0, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = FULL")
            with connection:
                connection.executescript(_SCHEMA)
            with connection:
                row = connection.execute("SELECT journal_id, server_time FROM meta").fetchone()
                if row is None:
                    row = (secrets.token_hex(16), None)
                    connection.execute("INSERT INTO meta (node_id, journal_id) VALUES (?, ?)", (node, row[0]))
                elif not _ID.fullmatch(str(row[0])):
                    # No gateway would welcome the node with it.
                    row = (secrets.token_hex(16), row[1])
                    connection.execute("UPDATE meta SET journal_id = ?", (row[0],))
        except BaseException:
            connection.close()
            raise
    except BaseException:
        os.close(descriptor)
        raise
    return SqliteNodeJournal(Found(connection, descriptor), str(row[0]), _time(row[1]), events)


def _time(text: str | None) -> datetime | None:
    try:
        return from_time(text, "server_time") if text is not None else None
    except MalformedFile:
        return None


class NoJournalHere:
    """Port `NodeJournal` where the disk takes none: the node runs all the same, and forgets."""

    server_time: datetime | None = None

    def __init__(self) -> None:
        self.journal_id = secrets.token_hex(16)

    def heard(self, server_time: datetime) -> None:
        """Forgotten."""

    def session(self, state: str, at: datetime) -> None:
        """Forgotten."""

    def planned(self, at: datetime) -> None:
        """Forgotten."""

    def attempted(self, at: datetime, failures: int, error: str) -> None:
        """Forgotten."""

    def signed(self, kid: str, count: int) -> None:
        """Forgotten."""

    def close(self) -> None:
        """Nothing is open."""
