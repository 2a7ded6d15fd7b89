"""The port `NodeJournal`: one contract over SQLite, the node without a journal, and the one in memory."""

import fcntl
import os
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.adapters.journal.writer import NoJournalHere, SecondNode, SqliteNodeJournal, open_journal
from bcd.domain.model.datadir import JOURNAL
from bcd.domain.model.names import NodeId
from bcd.ports.journal import JournalOf, NodeJournal, Told
from tests.fakes import pki
from tests.fakes.contracts import checks_of
from tests.fakes.joining import Recorded
from tests.fakes.running_node import MemoryJournal

ROOT = Path(__file__).resolve().parents[3]
NODE = NodeId("n-7")
HOUR = timedelta(hours=1)
KID = "k" * 43


def opened(folder: Path, events: Recorded | None = None) -> SqliteNodeJournal:
    return open_journal(str(folder / JOURNAL), NODE, events if events is not None else Recorded())


def told(folder: Path) -> Told:
    found = SqliteJournal(str(folder)).look()
    assert isinstance(found, JournalOf)
    assert found.owner == NODE
    return found.told


def mark(folder: Path) -> datetime | None:
    journal = opened(folder)
    try:
        return journal.server_time
    finally:
        journal.close()


class NodeJournalContract:
    """What any of them must do; nothing of it fails, whatever becomes of the record."""

    @staticmethod
    def its_id_is_32_hexadecimal_digits_and_stays(journal: NodeJournal) -> None:
        assert len(journal.journal_id) == 32
        assert set(journal.journal_id) <= set("0123456789abcdef")
        assert journal.journal_id == journal.journal_id

    @staticmethod
    def a_mark_never_falls(journal: NodeJournal) -> None:
        journal.heard(pki.NOW)
        first = journal.server_time
        journal.heard(pki.NOW - HOUR)
        assert journal.server_time == first

    @staticmethod
    def everything_can_be_told_and_it_can_be_closed(journal: NodeJournal) -> None:
        journal.heard(pki.NOW)
        journal.session("up", pki.NOW)
        journal.planned(pki.NOW + HOUR)
        journal.attempted(pki.NOW, 1, "no")
        journal.attempted(pki.NOW, 0, "")
        journal.signed(KID, 3)
        journal.close()


MAKERS: dict[str, Callable[[Path], NodeJournal]] = {
    "sqlite": opened,
    "none": lambda _: NoJournalHere(),
    "memory": lambda _: MemoryJournal(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("check", checks_of(NodeJournalContract).values(), ids=checks_of(NodeJournalContract))
def test_every_journal_meets_the_contract(
    check: Callable[[NodeJournal], None], make: Callable[[Path], NodeJournal], tmp_path: Path
) -> None:
    journal = make(tmp_path)
    try:
        check(journal)
    finally:
        journal.close()


@pytest.mark.parametrize("make", [opened, lambda _: MemoryJournal()])
def test_a_mark_rises(make: Callable[[Path], NodeJournal], tmp_path: Path) -> None:
    journal = make(tmp_path)
    assert journal.server_time is None
    journal.heard(pki.NOW)
    journal.heard(pki.NOW + HOUR)
    assert journal.server_time == pki.NOW + HOUR
    journal.close()


# ---- SQLite


def test_what_is_told_is_there_for_status_at_once_and_after_a_restart(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.heard(pki.NOW)
    journal.session("up", pki.NOW)
    journal.planned(pki.NOW + HOUR)
    journal.attempted(pki.NOW + HOUR, 2, "no " * 500)
    journal.signed(KID, 3)
    journal.signed(KID, 4)
    journal.signed("l" * 43, 1)
    first = journal.journal_id
    for _ in range(2):
        found = told(tmp_path)
        assert (found.session, found.session_since) == ("up", pki.NOW)
        assert found.planned == pki.NOW + HOUR
        assert (found.failures, found.last_error, found.last_error_at) == (2, ("no " * 500)[:300], pki.NOW + HOUR)
        assert dict(found.signatures) == {KID: 7, "l" * 43: 1}
        journal.close()
        journal = opened(tmp_path)
    assert journal.journal_id == first
    assert journal.server_time == pki.NOW
    journal.attempted(pki.NOW, 0, "")
    assert (told(tmp_path).failures, told(tmp_path).last_error, told(tmp_path).last_error_at) == (0, "", None)
    journal.close()


def test_the_mark_on_disk_never_falls_either(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.heard(pki.NOW)
    journal.heard(pki.NOW - HOUR)
    journal.close()
    assert mark(tmp_path) == pki.NOW


def test_a_mark_that_does_not_parse_is_none(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / JOURNAL) as connection:
        connection.execute("UPDATE meta SET server_time = 'tomorrow'")
    connection.close()
    assert mark(tmp_path) is None


def test_a_new_journal_has_a_new_id(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    first = journal.journal_id
    journal.close()
    (tmp_path / JOURNAL).unlink()
    journal = opened(tmp_path)
    assert journal.journal_id != first
    journal.close()


@pytest.mark.parametrize("broken", ["", "j", "G" * 32, 7])
def test_an_id_that_no_gateway_takes_is_replaced_for_good(tmp_path: Path, broken: object) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / JOURNAL) as connection:
        connection.execute("UPDATE meta SET journal_id = ?", (broken,))
    connection.close()
    journal = opened(tmp_path)
    first = journal.journal_id
    journal.close()
    assert re.fullmatch(r"[0-9a-f]{32}", first)
    journal = opened(tmp_path)
    assert journal.journal_id == first
    journal.close()


def test_it_is_0600_from_birth_with_its_side_files_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        journal = opened(tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / JOURNAL).stat().st_mode) == 0o600
    journal.close()


def test_it_is_in_rollback_mode_and_every_write_is_synced(tmp_path: Path) -> None:
    """Decision 10. Seen from outside: what the process does for one record."""
    (tmp_path / "data").mkdir()
    program = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.contract.ports.test_node_journal import opened, pki
journal = opened(Path({str(tmp_path / "data")!r}))
print("begin", flush=True)
journal.heard(pki.NOW)
journal.close()
"""
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-e", "trace=fsync,fdatasync,write,unlink", "-o", trace, sys.executable, "-c", program],
        check=True,
        capture_output=True,
        timeout=60,
    )
    calls = trace.read_text().split('"begin', 1)[1]
    # The rollback journal, the directory entry of it, the file itself: three at least. One is not FULL.
    assert len([line for line in calls.splitlines() if "sync(" in line]) >= 3
    assert "journal.db-journal" in calls
    with (tmp_path / "data" / JOURNAL).open("rb") as file:
        # Bytes 18 and 19: 1 is rollback, 2 would be WAL.
        assert file.read(20)[18:] == b"\x01\x01"


def test_a_journal_left_in_wal_mode_is_taken_out_of_it(tmp_path: Path) -> None:
    opened(tmp_path).close()
    connection = sqlite3.connect(tmp_path / JOURNAL)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    journal = opened(tmp_path)
    journal.heard(pki.NOW)
    assert {path.name for path in tmp_path.iterdir()} == {JOURNAL}
    journal.close()


def test_a_second_opener_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with pytest.raises(SecondNode) as second:
        opened(tmp_path)
    assert second.value.file.st_ino == (tmp_path / JOURNAL).stat().st_ino
    # Somebody who looks takes nothing from the first.
    told(tmp_path)
    with pytest.raises(SecondNode):
        opened(tmp_path)
    journal.close()
    opened(tmp_path).close()


def test_a_refused_opener_leaves_no_descriptor(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(SecondNode):
            opened(tmp_path)
    (tmp_path / "no-database").mkdir()
    (tmp_path / "no-database" / JOURNAL).write_bytes(b"rubbish" * 1000)
    for _ in range(20):
        with pytest.raises(sqlite3.Error):
            opened(tmp_path / "no-database")
    assert len(os.listdir("/proc/self/fd")) == before
    journal.close()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / JOURNAL).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        opened(tmp_path)
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_path_with_characters_of_a_uri_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=memory&b#c%20d"
    folder.mkdir()
    journal = opened(folder)
    journal.heard(pki.NOW)
    journal.close()
    assert mark(folder) == pki.NOW


def test_only_so_many_attempts_are_kept(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with sqlite3.connect(tmp_path / JOURNAL) as connection:
        connection.executemany("INSERT INTO renewals VALUES (?, '')", [(str(n),) for n in range(3000)])
    connection.close()
    journal.attempted(pki.NOW, 1, "last")
    journal.close()
    with sqlite3.connect(tmp_path / JOURNAL) as connection:
        assert connection.execute("SELECT count(*) FROM renewals").fetchone() == (1000,)
        assert connection.execute("SELECT error FROM renewals ORDER BY rowid DESC LIMIT 1").fetchone() == ("last",)
    connection.close()


def test_a_full_disk_is_told_once_and_again_after_it_was_better(tmp_path: Path) -> None:
    """Decision 10: it costs the record, not the node."""
    events = Recorded()
    journal = opened(tmp_path, events)
    journal.heard(pki.NOW)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        for hour in range(1, 5):
            journal.heard(pki.NOW + hour * HOUR)
            journal.session("up", pki.NOW)
            journal.attempted(pki.NOW, 1, "no")
            journal.signed(KID, 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    try:
        fill()
        assert [line[:2] for line in events.lines] == [("warning", "the journal could not be written")]
        # The mark in use rises all the same.
        assert journal.server_time == pki.NOW + 4 * HOUR
        journal.heard(pki.NOW + 9 * HOUR)
        fill()
        assert len(events.lines) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    journal.close()
    assert mark(tmp_path) == pki.NOW + 9 * HOUR


KILLED = """
import sys; sys.path.insert(0, sys.argv[1])
from datetime import timedelta
from pathlib import Path
from tests.contract.ports.test_node_journal import KID, opened, pki
journal = opened(Path(sys.argv[2]))
for n in range(10**6):
    journal.heard(pki.NOW + timedelta(seconds=n))
    journal.session(f"up {n}", pki.NOW)
    print(n, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 20])
def test_killed_between_writes_it_is_readable_and_holds_what_was_told_as_written(after: int, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(ROOT), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(after):
            last = int(process.stdout.readline())
        process.kill()
        process.communicate()
    assert told(tmp_path).session.startswith("up ")
    journal = opened(tmp_path)
    assert journal.server_time is not None
    assert journal.server_time >= pki.NOW + timedelta(seconds=last)
    journal.close()


def test_two_threads_write_into_one_journal(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    threads = [threading.Thread(target=lambda: [journal.signed(KID, 1) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(told(tmp_path).signatures) == {KID: 80}
    journal.close()


def test_what_comes_after_it_was_closed_is_lost_without_a_word(tmp_path: Path) -> None:
    """A renewal that ends a moment after the node did."""
    events = Recorded()
    journal = opened(tmp_path, events)
    journal.close()
    journal.close()
    journal.heard(pki.NOW)
    journal.signed(KID, 1)
    assert events.lines == []
    # And the lock is gone with it, once.
    opened(tmp_path).close()


def test_closing_waits_for_a_write_under_way_but_not_for_ever(tmp_path: Path) -> None:
    """Another process holds the file; the writer waits for it. A stop ends the node within a second all the same."""
    events = Recorded()
    journal = opened(tmp_path, events)
    other = sqlite3.connect(tmp_path / JOURNAL, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    begun = threading.Event()

    def write() -> None:
        begun.set()
        journal.heard(pki.NOW)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(5)
    journal.close()
    other.execute("ROLLBACK")
    other.close()
    thread.join()
    assert len(events.lines) <= 1


def test_the_lock_is_on_the_file_itself(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with (tmp_path / JOURNAL).open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    journal.close()
