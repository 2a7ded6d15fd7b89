"""The port `Journal`: one contract over SQLite on a disk and the fake over any file system."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.domain.model.datadir import JOURNAL
from bcd.domain.model.failures import Message
from bcd.domain.model.names import NodeId
from bcd.ports.journal import CorruptJournal, Journal, JournalOf, JournalState, NoJournal
from tests.fakes.clock import ManualClock
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.joining import JournalIn, journal_of

Build = Callable[[Path], Journal]


def look(build: Build, folder: Path, data: bytes | None) -> JournalState:
    """What a journal file of `data` is, and that looking changed nothing."""
    folder.mkdir(exist_ok=True)
    path = folder / JOURNAL
    if data is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(data)
        os.utime(path, ns=(1, 1))
    found = build(folder).look()
    assert {p.name for p in folder.iterdir()} == (set() if data is None else {JOURNAL})
    if data is not None:
        assert path.read_bytes() == data
        assert path.stat().st_mtime_ns == 1
    return found


def database(sql: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(sql)
        return connection.serialize()
    finally:
        connection.close()


class JournalContract:
    @staticmethod
    def without_a_file_there_is_none(build: Build, folder: Path) -> None:
        assert look(build, folder, None) == NoJournal()

    @staticmethod
    def a_journal_tells_its_owner(build: Build, folder: Path) -> None:
        assert look(build, folder, journal_of("n-7")) == JournalOf(NodeId("n-7"))
        assert look(build, folder, journal_of("n-8")) == JournalOf(NodeId("n-8"))

    @staticmethod
    def a_journal_may_be_nobodys_yet(build: Build, folder: Path) -> None:
        assert look(build, folder, journal_of(None)) == JournalOf(None)

    @staticmethod
    def what_is_no_journal_is_corrupt_and_says_why(build: Build, folder: Path) -> None:
        whole = journal_of("n-7")
        foreign = database("CREATE TABLE jobs (id INTEGER); INSERT INTO jobs VALUES (1)")
        for data in (b"rubbish" * 200, b"\0" * 4096, whole[:100], foreign, b"X" + whole[1:]):
            found = look(build, folder, data)
            assert isinstance(found, CorruptJournal), data[:20]
            assert found.why


def over_fs(folder: Path) -> Journal:
    return JournalIn(LocalFs(str(folder), ManualClock()))


def sqlite(folder: Path) -> Journal:
    return SqliteJournal(str(folder))


@pytest.mark.parametrize("build", [sqlite, over_fs])
@pytest.mark.parametrize("check", checks_of(JournalContract).values(), ids=checks_of(JournalContract))
def test_every_implementation_meets_the_contract(
    check: Callable[[Build, Path], None], build: Build, tmp_path: Path
) -> None:
    check(build, tmp_path / "data")


class Wrong:
    """Takes `change` for what it found."""

    def __init__(self, change: Callable[[JournalState], JournalState], folder: Path) -> None:
        self._change = change
        self._folder = folder

    def look(self) -> JournalState:
        return self._change(sqlite(self._folder).look())


class MakesIt:
    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL

    def look(self) -> JournalState:
        sqlite3.connect(self._path).executescript("CREATE TABLE IF NOT EXISTS x (y)").connection.close()
        return NoJournal()


@pytest.mark.parametrize(
    ("wrong", "caught_by"),
    [
        (lambda folder: Wrong(lambda found: JournalOf(None), folder), "a_journal_tells_its_owner"),
        (lambda folder: Wrong(lambda found: JournalOf(None), folder), "without_a_file_there_is_none"),
        (lambda folder: Wrong(lambda found: JournalOf(NodeId("n-7")), folder), "a_journal_may_be_nobodys_yet"),
        (
            lambda folder: Wrong(
                lambda found: NoJournal() if isinstance(found, CorruptJournal) else found,
                folder,
            ),
            "what_is_no_journal_is_corrupt_and_says_why",
        ),
        (MakesIt, "without_a_file_there_is_none"),
    ],
)
def test_a_wrong_implementation_fails_the_contract(wrong: Build, caught_by: str, tmp_path: Path) -> None:
    number = iter(range(100))
    failed = failed_checks(JournalContract, lambda: wrong, lambda: tmp_path / str(next(number)))
    assert caught_by in failed


# --- SQLite alone


def shell(path: Path, sql: str) -> None:
    subprocess.run(["sqlite3", str(path), sql], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("CREATE TABLE meta (node_id, journal_id, server_time); INSERT INTO meta VALUES ('n-7', 'j', 0)", "n-7"),
        ("CREATE TABLE meta (node_id, journal_id, server_time); INSERT INTO meta VALUES (NULL, 'j', 0)", None),
        ("CREATE TABLE meta (node_id, journal_id, server_time)", None),
        ("PRAGMA journal_mode=WAL; CREATE TABLE meta (node_id); INSERT INTO meta VALUES ('n-7')", "n-7"),
        ("PRAGMA encoding='UTF-16'; CREATE TABLE meta (node_id); INSERT INTO meta VALUES ('n-7')", "n-7"),
    ],
)
def test_what_the_sqlite3_command_made_is_a_journal(sql: str, found: str | None, tmp_path: Path) -> None:
    shell(tmp_path / JOURNAL, sql)
    assert sqlite(tmp_path).look() == JournalOf(None if found is None else NodeId(found))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE meta (owner TEXT)",
        "CREATE TABLE meta (node_id TEXT); INSERT INTO meta VALUES ('../../etc')",
        "CREATE TABLE meta (node_id TEXT); INSERT INTO meta VALUES ('')",
        "CREATE TABLE meta (node_id BLOB); INSERT INTO meta VALUES (x'ff00')",
        "CREATE TABLE meta (node_id TEXT); INSERT INTO meta VALUES (CAST(x'ff' AS TEXT))",
    ],
)
def test_a_database_that_names_no_node_is_no_journal(sql: str, tmp_path: Path) -> None:
    shell(tmp_path / JOURNAL, sql)
    found = sqlite(tmp_path).look()
    assert isinstance(found, CorruptJournal)
    assert "etc" not in found.why


def test_an_empty_file_is_no_journal(tmp_path: Path) -> None:
    assert isinstance(look(sqlite, tmp_path, b""), CorruptJournal)


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "directory"])
def test_what_is_no_regular_file_is_no_journal_and_is_not_followed(what: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / JOURNAL
    match what:
        case "link":
            (tmp_path / "real").write_bytes(journal_of("n-7"))
            path.symlink_to(tmp_path / "real")
        case "dangling link":
            path.symlink_to("absent")
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
    assert sqlite(tmp_path / "data").look() == CorruptJournal("is not a regular file")


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "so#so", "ä", "%41"])
def test_the_path_of_the_directory_may_hold_any_character(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert look(sqlite, tmp_path / name, journal_of("n-7")) == JournalOf(NodeId("n-7"))


KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE meta SET server_time = 'later'")
connection.execute("CREATE TABLE filler (x)")
connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 3000,)] * 50)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_b11_after_kill_9_the_owner_is_still_told_and_nothing_is_recovered_or_written(tmp_path: Path) -> None:
    """Field report B11: a read-only look that recovers a hot journal would write."""
    path = tmp_path / JOURNAL
    path.write_bytes(journal_of("n-7"))
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert f"{JOURNAL}-journal" in before
    assert sqlite(tmp_path).look() == JournalOf(NodeId("n-7"))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_journal_that_another_process_writes_is_looked_at_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.write_bytes(journal_of("n-7"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    assert sqlite(tmp_path).look() == JournalOf(NodeId("n-7"))
    connection.close()


LOOK = """
import os, resource, sqlite3, sys, urllib.parse
from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.domain.model.failures import Failure
{first}
try:
    print(SqliteJournal(sys.argv[1]).look())
except Failure as failure:
    print(failure.message.name, failure.text)
"""


def looked(folder: Path, first: str) -> str:
    """What another process says of the journal in `folder` after it did `first`."""
    words = [sys.executable, "-c", LOOK.format(first=first), str(folder)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_journal_that_may_not_be_read_is_not_called_corrupt(mode: int, tmp_path: Path) -> None:
    """A join would set a corrupt journal aside, and this one may be sound."""
    path = tmp_path / JOURNAL
    path.write_bytes(journal_of("n-7"))
    path.chmod(mode)
    # All above it may be passed through.
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    said = looked(tmp_path, "os.setgroups([]); os.setgid(65534); os.setuid(65534)")
    if mode == 0o600:
        assert said.startswith(Message.PERMISSION_DENIED.name)
        assert str(path) in said
    else:
        assert said.startswith("JournalOf(owner='n-7',")


@pytest.mark.parametrize("descriptors", [3, 4, 64])
def test_a_journal_that_cannot_be_opened_now_is_not_called_corrupt_either(descriptors: int, tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.write_bytes(journal_of("n-7"))
    said = looked(tmp_path, f"resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))")
    if descriptors == 3:
        assert said.startswith(Message.FILE_SYSTEM.name)
        assert str(path) in said
    else:
        assert said.startswith("JournalOf(owner='n-7',")
