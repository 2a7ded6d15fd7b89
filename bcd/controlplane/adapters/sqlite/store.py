"""`ports.store.Store` on SQLite: one writer thread with group commit, readers beside it (WAL).

Two writers on one file starve each other, so every change goes through this one (decision 25). All that waits is done
in one transaction, each work in a savepoint of its own, and answered after the one commit, which synchronous=FULL
makes an fsync of the WAL.
"""

import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from bcd.controlplane.adapters.sqlite.records import SqliteRecords
from bcd.controlplane.adapters.sqlite.schema import CHANGES, OLDEST, SCHEMA, VERSION
from bcd.controlplane.ports.store import Records, StoreUnavailable

T = TypeVar("T")
_Job = tuple[Callable[[Records], Any], Future[Any]]

# More than joins can wait at once (app limits them); bounds how long the first of a group waits for the last.
MAX_GROUP = 128
# How long somebody else's writing (a backup, an operator's shell) is waited for before a change fails, in seconds.
BUSY_S = 2.0


class NotAStore(Exception):
    """The file is no store of this version; the message completes "store.db …"."""


class NewerStore(NotAStore):
    """A later version wrote it, and what that keeps there is not known here."""

    def __init__(self, version: int) -> None:
        super().__init__(f"has version {version}, this bcd-controlplane knows {VERSION}")
        self.version = version


class SqliteStore:
    def __init__(self, path: str) -> None:
        """Opens what `create` made, here or in an older version, which it is brought up from. NotAStore when it is
        something else, StoreUnavailable when it cannot be read or brought up now."""
        if not os.path.exists(path):
            raise NotAStore("is missing")
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._reading = threading.Lock()
        self._connection = _connect(path)
        _bring_up(self._connection)
        self._reader = _connect(path)
        self._writer = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._writer.start()

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                future.set_exception(StoreUnavailable("the store is closed"))
            else:
                self._jobs.put((work, future))
        return future

    def read(self, work: Callable[[Records], T]) -> T:
        with self._reading:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            try:
                self._reader.execute("BEGIN")
                try:
                    return work(SqliteRecords(self._reader))
                finally:
                    self._reader.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreUnavailable(_cause(error)) from error

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._writer.join()
        with self._reading:
            self._reader.close()

    def _write(self) -> None:
        while True:
            group, last = self._group()
            try:
                _run(self._connection, group)
            except BaseException as error:  # noqa: BLE001 - a dead writer would leave everyone waiting for ever
                for _, future in group:
                    if not future.done():
                        future.set_exception(StoreUnavailable(f"{type(error).__name__}: {error}"))
            if last:
                self._connection.close()
                return

    def _group(self) -> tuple[list[_Job], bool]:
        """The next job and all that wait behind it; whether the store closes after them."""
        jobs: list[_Job] = []
        with contextlib.suppress(queue.Empty):
            job = self._jobs.get()
            while job is not None:
                jobs.append(job)
                if len(jobs) == MAX_GROUP:
                    return jobs, False
                job = self._jobs.get_nowait()
            return jobs, True
        return jobs, False


def create(path: str) -> None:
    """An empty store at `path`, 0600, unless there is one already; whole after a crash at any point."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.close(descriptor)
    with contextlib.closing(_connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        _bring_up(connection)


def _connect(path: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA trusted_schema = OFF")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StoreUnavailable(_cause(error)) from error
        raise NotAStore(f"is damaged ({error})") from error
    return connection


def _bring_up(connection: sqlite3.Connection) -> None:
    """To VERSION, in one transaction: after a crash it is the old version or the new one."""
    if _version(connection) == VERSION:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it since.
            for version in range(_version(connection), VERSION):
                for statement in CHANGES[version]:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise StoreUnavailable(_cause(error)) from error


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise NewerStore(version)
    if version < OLDEST:
        raise NotAStore(f"has version {version}, this bcd-controlplane knows {OLDEST} to {VERSION}")
    return version


def _run(connection: sqlite3.Connection, group: list[_Job]) -> None:
    done: list[tuple[Future[Any], Any]] = []
    failed: list[tuple[Future[Any], BaseException]] = []
    if not group:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        records = SqliteRecords(connection)
        for work, future in group:
            connection.execute("SAVEPOINT work")
            try:
                done.append((future, work(records)))
            except sqlite3.Error as error:
                if not connection.in_transaction:
                    # A full disk rolls back all of the transaction, not this statement alone.
                    raise
                connection.execute("ROLLBACK TO work")
                failed.append((future, StoreUnavailable(_cause(error))))
            except Exception as error:  # noqa: BLE001 - it is the caller's, and goes to him
                connection.execute("ROLLBACK TO work")
                failed.append((future, error))
            connection.execute("RELEASE work")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        # Nothing of the group is kept, whatever was done before the statement that failed.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        for _, future in group:
            future.set_exception(StoreUnavailable(_cause(error)))
        return
    for future, result in done:
        future.set_result(result)
    for future, cause in failed:
        future.set_exception(cause)


def _cause(error: sqlite3.Error) -> str:
    return f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
