"""Port `Journal`: whose journal lies in the data directory (decision 10: SQLite, `meta(node_id, journal_id, …)`)."""

import errno
import os
import stat
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from bcd.domain.model.datadir import JOURNAL
from bcd.domain.model.failures import Message, Refused, TryLater
from bcd.domain.model.names import MalformedName, node_id
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal, Told
from bcd.protocol.files.encoding import MalformedFile, from_time

if TYPE_CHECKING:
    import sqlite3

_NOT_REGULAR = CorruptJournal("is not a regular file")


class SqliteJournal:
    """`holder` names the process that holds a file's lock: a node holds its journal's while it runs."""

    def __init__(self, directory: str, holder: Callable[[os.stat_result], str | None] = lambda _: None) -> None:
        self._path = os.path.join(directory, JOURNAL)
        self._holder = holder

    def look(self) -> JournalState:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            return self._not_opened(error)
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return _NOT_REGULAR
        return self._read(self._holder(found) or "")

    def _not_opened(self, error: OSError) -> JournalState:
        match error.errno:
            case errno.ENOENT:
                return NoJournal()
            case errno.ELOOP | errno.ENXIO:
                return _NOT_REGULAR
            case errno.EACCES | errno.EPERM:
                raise Refused(Message.PERMISSION_DENIED, path=self._path) from None
        raise TryLater(Message.FILE_SYSTEM, path=self._path, what=error.strerror) from None

    def _read(self, running: str) -> JournalState:
        # sqlite3 costs start-up time, and most commands meet no journal.
        import sqlite3
        from urllib.parse import quote

        # What SQLite says of a file that is no journal. Anything else (no descriptor left, a disk that does not answer)
        # says nothing of the file, and a join sets aside what is called corrupt.
        of_the_file = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
        try:
            # immutable: after a kill -9 a read-only open would want to write the journal's recovery (tried).
            connection = sqlite3.connect(f"file:{quote(self._path)}?mode=ro&immutable=1", uri=True)
            try:
                row = connection.execute("SELECT node_id FROM meta").fetchone()
                told = _told(connection, running)
            finally:
                connection.close()
        except sqlite3.Error as error:
            # Absent where Python itself found the fault: a text that is not UTF-8.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code & 0xFF not in of_the_file:
                raise TryLater(Message.FILE_SYSTEM, path=self._path, what=error) from None
            return CorruptJournal(f"is not a journal ({error})")
        if row is None or row[0] is None:
            return JournalOf(None, told)
        try:
            return JournalOf(node_id(str(row[0])), told)
        except MalformedName:
            return CorruptJournal("names no node")


def _told(connection: "sqlite3.Connection", running: str) -> Told:
    """What a node wrote of itself; nothing of a journal that an older bcd made, with fewer columns."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(meta)")}
    wanted = ("session", "session_since", "planned", "failures", "last_error", "last_error_at")
    if not columns.issuperset(wanted):
        return Told(running)
    row = connection.execute(f"SELECT {', '.join(wanted)} FROM meta").fetchone()  # noqa: S608 - names from above
    if row is None:
        return Told(running)
    counts = connection.execute("SELECT kid, count FROM signatures ORDER BY rowid").fetchall()
    return Told(
        running,
        session=str(row[0]),
        session_since=_instant(row[1]),
        planned=_instant(row[2]),
        failures=int(row[3]),
        last_error=str(row[4]),
        last_error_at=_instant(row[5]),
        signatures=tuple((str(kid), int(count)) for kid, count in counts),
    )


def _instant(text: object) -> datetime | None:
    try:
        return from_time(text, "time") if text is not None else None
    except MalformedFile:
        return None
