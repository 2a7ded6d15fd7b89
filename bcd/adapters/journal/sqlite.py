"""Port `Journal`: whose journal lies in the data directory (decision 10: SQLite, `meta(node_id, journal_id, …)`)."""

import os

from bcd.domain.model.datadir import JOURNAL
from bcd.domain.model.names import MalformedName, node_id
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal


class SqliteJournal:
    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, JOURNAL)

    def look(self) -> JournalState:
        if not os.path.lexists(self._path):
            return NoJournal()
        if not os.path.isfile(self._path) or os.path.islink(self._path):
            return CorruptJournal("is not a regular file")
        # sqlite3 costs start-up time, and most commands meet no journal.
        import sqlite3
        from urllib.parse import quote

        try:
            # immutable: after a kill -9 a read-only open would want to write the journal's recovery (tried).
            connection = sqlite3.connect(f"file:{quote(self._path)}?mode=ro&immutable=1", uri=True)
            try:
                row = connection.execute("SELECT node_id FROM meta").fetchone()
            finally:
                connection.close()
        except sqlite3.Error as error:
            return CorruptJournal(f"is not a journal ({error})")
        if row is None or row[0] is None:
            return JournalOf(None)
        try:
            return JournalOf(node_id(str(row[0])))
        except MalformedName:
            return CorruptJournal("names no node")
