"""A journal whose process was killed in a transaction, set aside: SQLite finds what belongs to it, whatever the cut."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.domain.lifecycle.reset import Reset
from bcd.domain.lifecycle.set_aside import set_journal_aside
from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, corrupt_name, reset_name
from bcd.protocol.files import identity_json
from tests.crash.recorder import Recorder
from tests.fakes import joining, memory_node
from tests.fakes.clock import ManualClock
from tests.fakes.disk_changes import Rename
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential, Recorded

ROWS = 2000
# Changes every row in a transaction too big for SQLite's cache: a part of it is in the database when it is killed.
WRITER = """
import signal, os, sqlite3, sys
from bcd.adapters.journal.writer import open_journal
from bcd.domain.model.names import NodeId
from tests.fakes.joining import Recorded
journal = open_journal(sys.argv[1], NodeId("n-old"), Recorded())
connection = journal._found.connection
rows = int(sys.argv[2])
with connection:
    connection.executemany("INSERT INTO signatures VALUES (?, 1)", [(f"{n:05d}" + "k" * 200,) for n in range(rows)])
connection.execute("PRAGMA cache_size = 5")
connection.execute("UPDATE signatures SET count = 2, kid = kid || '!'")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with such a journal and no identity."""
    at = tmp_path_factory.mktemp("hot") / "data"
    at.mkdir(0o700)
    done = subprocess.run([sys.executable, "-c", WRITER, str(at / JOURNAL), str(ROWS)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert sorted(path.name for path in at.iterdir()) == [JOURNAL, f"{JOURNAL}-journal"]
    return at


def _is_whole(database: Path) -> bool:
    """Whether SQLite finds all rows as they were before the transaction."""
    connection = sqlite3.connect(database)
    try:
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
        rows = connection.execute("SELECT kid, count FROM signatures").fetchall()
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return sound == "ok" and len(rows) == ROWS and all(not kid.endswith("!") and count == 1 for kid, count in rows)


def _aside(at: Path) -> list[Path]:
    """The databases that were set aside."""
    sides = tuple(name.removeprefix(JOURNAL) for name in JOURNAL_SIDE_FILES)
    return [path for path in at.iterdir() if path.name.startswith(f"{JOURNAL}.") and not path.name.endswith(sides)]


def _reset(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    with fs.lock(0):
        Reset(fs, clock, Recorded())()


def _join(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    # As the adapter looks, with files as they are; a join asks again after a cut, with a token or without.
    joining.join(fs, str(at), ControlPlane(), Credential(), clock=clock)(ANY_NODE)


def _corrupt(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    with fs.lock(0):
        set_journal_aside(fs, corrupt_name(JOURNAL, clock.now()))


def _each_with_its_own_name(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    """As it was before: every file under the time of its own move."""
    with fs.lock(0):
        for name in (JOURNAL, *JOURNAL_SIDE_FILES):
            fs.move_aside(name, reset_name(name, clock.now()))


def _the_journal_first(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    with fs.lock(0):
        new_name = reset_name(JOURNAL, clock.now())
        for name in (JOURNAL, *JOURNAL_SIDE_FILES):
            fs.move_aside(name, new_name + name.removeprefix(JOURNAL))


def _the_side_files_first(fs: LocalFs, at: Path, clock: ManualClock) -> None:
    with fs.lock(0):
        new_name = reset_name(JOURNAL, clock.now())
        for name in (*JOURNAL_SIDE_FILES, JOURNAL):
            fs.move_aside(name, new_name + name.removeprefix(JOURNAL))


Way = Callable[[LocalFs, Path, ManualClock], None]


def _killed_after(cut: int, at: Path, way: Way, clock: ManualClock) -> list[object] | None:
    """Runs `way` as far as its change number `cut`; all its changes when it has no more than that."""

    def kill(change: object) -> None:
        if len(recorder.trace) == cut:
            raise Killed

    recorder = Recorder(str(at), str(at), kill)
    try:
        way(LocalFs(str(at), clock, syscalls=recorder), at, clock)
    except Killed:
        return None
    return [*recorder.trace]


def _losses(hot: Path, scratch: Path, way: Way) -> list[int]:
    """Kills `way` after each of its changes and runs it again a minute later; the cuts at which the journal is lost."""
    lost = []
    for cut in range(1, 1000):
        at, clock = scratch / f"cut-{cut}", ManualClock()
        shutil.copytree(hot, at)
        whole = _killed_after(cut, at, way, clock)
        if whole is None:
            clock.forward(60)
            way(LocalFs(str(at), clock), at, clock)
        if not any(_is_whole(found) for found in _aside(at)):
            lost.append(cut)
        shutil.rmtree(at)
        if whole is not None:
            assert sum(isinstance(change, Rename) for change in whole) >= 2
            return lost
    raise AssertionError("it never ends")


def test_the_journal_is_hot(hot: Path, tmp_path: Path) -> None:
    """Without its side file it is not what it was: what follows is about something."""
    shutil.copytree(hot, tmp_path / "both")
    assert _is_whole(tmp_path / "both" / JOURNAL)
    shutil.copytree(hot, tmp_path / "one")
    (tmp_path / "one" / f"{JOURNAL}-journal").unlink()
    assert not _is_whole(tmp_path / "one" / JOURNAL)


@pytest.mark.parametrize("way", [_reset, _join, _corrupt])
def test_a_hot_journal_set_aside_is_whole_wherever_that_was_cut(hot: Path, tmp_path: Path, way: Way) -> None:
    """B03: killed after any change, and gone on with a minute later."""
    assert _losses(hot, tmp_path, way) == []


@pytest.mark.parametrize("way", [_each_with_its_own_name, _the_journal_first, _the_side_files_first])
def test_other_names_and_orders_lose_it(hot: Path, tmp_path: Path, way: Way) -> None:
    """What this harness has not seen to fail proves nothing."""
    assert _losses(hot, tmp_path, way) != []


def test_two_resets_in_one_second_each_keep_their_journal_whole(hot: Path, tmp_path: Path) -> None:
    at, clock = tmp_path / "data", ManualClock()
    shutil.copytree(hot, at)
    fs = LocalFs(str(at), clock)
    _reset(fs, at, clock)
    for name in (JOURNAL, f"{JOURNAL}-journal"):
        shutil.copy(hot / name, at / name)
    _reset(fs, at, clock)
    first = reset_name(JOURNAL, clock.now())
    assert sorted(path.name for path in at.iterdir()) == [
        first,
        f"{first}-journal",
        f"{first}.1",
        f"{first}.1-journal",
    ]
    assert _is_whole(at / first)
    assert _is_whole(at / f"{first}.1")


def test_a_reset_after_one_that_was_cut_off_in_the_journal_also_moves_the_identity(hot: Path, tmp_path: Path) -> None:
    """Decision 7: until then the identity stands, mismatched, and points back to --reset."""
    at, clock = tmp_path / "data", ManualClock()
    shutil.copytree(hot, at)
    (at / IDENTITY).write_bytes(identity_json.encode(memory_node.identity()))
    (at / KEY).write_bytes(memory_node.record())
    fs = LocalFs(str(at), clock)

    def kill(change: object) -> None:
        if isinstance(change, Rename) and change.old == f"{JOURNAL}-journal":
            raise Killed

    with pytest.raises(Killed):
        _reset(LocalFs(str(at), clock, syscalls=Recorder(str(at), str(at), kill)), at, clock)
    assert (at / IDENTITY).exists()
    assert not (at / KEY).exists()
    clock.forward(timedelta(days=1).total_seconds())
    with fs.lock(0):
        planned = Reset(fs, clock, Recorded()).plan()
        assert Reset(fs, clock, Recorded())() == planned
    assert [one.name for one in planned] == [JOURNAL, IDENTITY]
    assert [_is_whole(found) for found in _aside(at)] == [True]
