"""What only the SQLite store has to answer for: its file, its groups, its log that is never rewritten."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bcd.controlplane.adapters.sqlite.schema import VERSION
from bcd.controlplane.adapters.sqlite.store import NotAStore, SqliteStore, create
from bcd.controlplane.ports.store import Records, StoreUnavailable
from tests.fakes.controlplane import rows

PATIENCE_S = 20.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    create(str(tmp_path / "store.db"))
    return str(tmp_path / "store.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


def test_a_row_the_tables_do_not_take_fails_its_work_whole_and_alone_in_its_group(store: SqliteStore) -> None:
    go, held = threading.Event(), threading.Event()

    def hold(records: Records) -> None:
        held.set()
        assert go.wait(PATIENCE_S)

    def half(records: Records) -> None:
        records.nodes.put(rows.node("n-half"))
        records.tokens.put(rows.token(uses=1, used=2))

    first = store.change(hold)
    assert held.wait(PATIENCE_S)
    # These three wait together, and so are one group.
    before = store.change(lambda r: r.nodes.put(rows.node("n-1")))
    wrong = store.change(half)
    after = store.change(lambda r: r.nodes.put(rows.node("n-2")))
    go.set()
    assert [future.exception(PATIENCE_S) for future in (first, before, after)] == [None] * 3
    assert isinstance(wrong.exception(PATIENCE_S), StoreUnavailable)
    assert [node.id for node in store.read(lambda r: r.nodes.all())] == ["n-1", "n-2"]


def test_a_full_disk_fails_the_work_and_the_store_goes_on(store: SqliteStore) -> None:
    store.change(lambda r: r.nodes.put(rows.node("n-1"))).result(PATIENCE_S)
    connection = store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    large = store.change(lambda r: r.answers.put(rows.answer(signed=b"x" * 1_000_000)))
    error = large.exception(PATIENCE_S)
    assert isinstance(error, StoreUnavailable)
    assert "FULL" in str(error)
    connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.change(lambda r: r.answers.put(rows.answer(signed=b"x" * 1_000_000))).result(PATIENCE_S)
    assert [node.id for node in store.read(lambda r: r.nodes.all())] == ["n-1"]


@pytest.mark.parametrize("change", ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"])
def test_the_audit_log_cannot_be_rewritten(store: SqliteStore, path: str, change: str) -> None:
    store.change(lambda r: r.audit.add(rows.event())).result(PATIENCE_S)
    with closing(sqlite3.connect(path)) as other, pytest.raises(sqlite3.IntegrityError, match="only added"):
        other.execute(change)


def test_what_was_answered_is_there_when_it_is_opened_again(path: str) -> None:
    first = SqliteStore(path)
    first.change(lambda r: r.nodes.put(rows.node())).result(PATIENCE_S)
    first.close()
    second = SqliteStore(path)
    assert second.read(lambda r: r.nodes.get(rows.node().id)) == rows.node()
    second.close()


def test_a_change_is_on_the_disk_before_it_is_answered(path: str, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from bcd.controlplane.adapters.sqlite.store import SqliteStore\n"
        "from tests.fakes.controlplane import rows\n"
        "store = SqliteStore(sys.argv[1])\n"
        "for number in range(3):\n"
        "    os.write(1, b'asked')\n"
        "    store.change(lambda r: r.nodes.put(rows.node(f'n-{number}'))).result()\n"
        "    os.write(1, b'answered')\n"
        "store.close()\n"
    )
    trace = str(tmp_path / "trace")
    words = ["strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=write,pwrite64,fsync,fdatasync"]
    root = Path(__file__).resolve().parents[3]
    subprocess.run([*words, sys.executable, "-c", program, path], check=True, capture_output=True, cwd=root)
    lines = Path(trace).read_text().splitlines()
    asked = [number for number, line in enumerate(lines) if '"asked"' in line]
    answered = [number for number, line in enumerate(lines) if '"answered"' in line]
    assert len(asked) == len(answered) == 3
    for begin, end in zip(asked, answered, strict=True):
        wal = [line for line in lines[begin:end] if "store.db-wal" in line]
        assert "pwrite64" in wal[-2]
        assert "sync(" in wal[-1]


def test_creating_twice_changes_nothing(path: str, store: SqliteStore) -> None:
    store.change(lambda r: r.nodes.put(rows.node())).result(PATIENCE_S)
    create(path)
    assert store.read(lambda r: r.nodes.get(rows.node().id)) is not None


def test_what_is_no_store_of_this_version_is_not_used(path: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("not a database " * 100)
    for wrong in (path, str(tmp_path / "empty.db"), str(tmp_path / "text.db"), str(tmp_path / "none.db")):
        with pytest.raises(NotAStore):
            SqliteStore(wrong)
