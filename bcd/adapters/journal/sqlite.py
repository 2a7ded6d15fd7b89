"""Port `Journal`: whose journal lies in the data directory (decision 10: SQLite, `meta(node_id, journal_id, …)`)."""

import errno
import os
import stat

from bcd.domain.model.datadir import JOURNAL
from bcd.domain.model.failures import Message, Refused, TryLater
from bcd.domain.model.names import MalformedName, node_id
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal

_NOT_REGULAR = CorruptJournal("is not a regular file")


class SqliteJournal:
    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, JOURNAL)

    def look(self) -> JournalState:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            return self._not_opened(error)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _NOT_REGULAR
        finally:
            os.close(descriptor)
        return self._read()

    def _not_opened(self, error: OSError) -> JournalState:
        match error.errno:
            case errno.ENOENT:
                return NoJournal()
            case errno.ELOOP | errno.ENXIO:
                return _NOT_REGULAR
            case errno.EACCES | errno.EPERM:
                raise Refused(Message.PERMISSION_DENIED, path=self._path) from None
        raise TryLater(Message.FILE_SYSTEM, path=self._path, what=error.strerror) from None

    def _read(self) -> JournalState:
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
            finally:
                connection.close()
        except sqlite3.Error as error:
            # Absent where Python itself found the fault: a text that is not UTF-8.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code & 0xFF not in of_the_file:
                raise TryLater(Message.FILE_SYSTEM, path=self._path, what=error) from None
            return CorruptJournal(f"is not a journal ({error})")
        if row is None or row[0] is None:
            return JournalOf(None)
        try:
            return JournalOf(node_id(str(row[0])))
        except MalformedName:
            return CorruptJournal("names no node")
