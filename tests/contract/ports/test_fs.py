"""The port `Fs`: one contract over the real adapter and the same adapter on the memory disk."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.adapters.fs.syscalls import OsSyscalls, Space
from bcd.domain.model.datadir import IDENTITY, JOURNAL, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import Failure, FixConfiguration, Message, Refused, TryLater
from bcd.ports.fs import Fs
from tests.fakes.clock import ManualClock
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.memory_disk import File, Folder, Link, MemoryDisk

NAMES = (IDENTITY, KEY, NEXT_KEY, PENDING, JOURNAL)
NO_NAMES = ("../a", "a/b", "/a", "..", ".", "", "a\nb", "a\0b")
ELSEWHERE = b"somebody else's"


class Place(Protocol):
    """A directory to be, and what a test does behind an implementation's back."""

    clock: ManualClock

    def fs(self) -> Fs: ...

    def plant_file(self, name: str, data: bytes) -> None: ...

    def plant_link(self, name: str) -> None:
        """A symbolic link to a file outside that holds ELSEWHERE."""
        ...

    def plant_directory(self, name: str) -> None: ...

    def elsewhere(self) -> bytes: ...

    def files(self) -> dict[str, bytes]: ...

    def mode(self, name: str) -> int:
        """Of the directory itself for an empty name."""
        ...


def refused(message: Message, call: Callable[[], object]) -> Failure:
    with pytest.raises(Failure) as caught:
        call()
    assert caught.value.message is message
    return caught.value


class FsContract:
    @staticmethod
    def without_the_directory_there_is_nothing(place: Place) -> None:
        fs = place.fs()
        assert fs.look() is None
        assert fs.entries() == ()
        assert fs.read(KEY, 10) is None
        assert fs.move_aside(KEY, "aside") is None
        assert fs.hand_over(KEY) is False
        fs.remove(KEY)
        refused(Message.FILE_SYSTEM, lambda: fs.write(KEY, b"key"))
        assert fs.look() is None

    @staticmethod
    def the_lock_makes_the_directory_0700(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            pass
        found = fs.look()
        assert found is not None
        assert (found.mode, found.uid, found.read_only) == (0o700, os.geteuid(), False)
        assert found.free_bytes > 0
        assert place.mode("") == 0o700

    @staticmethod
    def what_is_written_is_read_and_is_0600(place: Place) -> None:
        fs = place.fs()
        for data in (b"", b"key", bytes(range(256)) * 600):
            with fs.lock(0):
                fs.write(KEY, data)
            assert fs.read(KEY, 1 << 20) == data
            assert place.files() == {KEY: data}
            assert place.mode(KEY) == 0o600

    @staticmethod
    def a_write_replaces_the_whole_file_and_leaves_no_other(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            fs.write(IDENTITY, b"a long identity")
            fs.write(IDENTITY, b"short")
        assert place.files() == {IDENTITY: b"short"}

    @staticmethod
    def a_file_that_is_read_stays_what_it_was_when_it_is_replaced(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            fs.write(IDENTITY, b"one")
            before = fs.entries()
            fs.write(IDENTITY, b"two")
        assert before[0].inode != fs.entries()[0].inode

    @staticmethod
    def a_read_stops_one_byte_after_its_limit(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"0123456789")
        assert fs.read(KEY, 10) == b"0123456789"
        assert fs.read(KEY, 9) == b"0123456789"
        assert fs.read(KEY, 8) == b"012345678"

    @staticmethod
    def entries_are_all_names_sorted_and_tell_what_is_there(place: Place) -> None:
        fs = place.fs()
        place.plant_file(NEXT_KEY, b"12345")
        place.plant_file(IDENTITY, b"")
        place.plant_link(KEY)
        place.plant_directory("folder")
        found = fs.entries()
        assert [entry.name for entry in found] == ["folder", IDENTITY, KEY, NEXT_KEY]
        assert [entry.regular for entry in found] == [False, True, False, True]
        assert (found[3].size, found[3].mode, found[3].uid) == (5, 0o600, os.geteuid())

    @staticmethod
    def a_rename_replaces(place: Place) -> None:
        fs = place.fs()
        place.plant_file(NEXT_KEY, b"new")
        place.plant_file(KEY, b"old")
        with fs.lock(0):
            fs.rename(NEXT_KEY, KEY)
        assert place.files() == {KEY: b"new"}
        refused(Message.FILE_SYSTEM, lambda: fs.rename(NEXT_KEY, KEY))
        assert place.files() == {KEY: b"new"}

    @staticmethod
    def moving_aside_replaces_nothing_and_says_the_name(place: Place) -> None:
        fs = place.fs()
        for number, name in enumerate(("aside", "aside.1", "aside.2")):
            place.plant_file(KEY, f"key {number}".encode())
            with fs.lock(0):
                assert fs.move_aside(KEY, "aside") == name
        assert place.files() == {"aside": b"key 0", "aside.1": b"key 1", "aside.2": b"key 2"}
        assert fs.move_aside(KEY, "aside") is None
        assert len(place.files()) == 3

    @staticmethod
    def moving_a_link_aside_moves_the_link(place: Place) -> None:
        fs = place.fs()
        place.plant_link(KEY)
        with fs.lock(0):
            assert fs.move_aside(KEY, "aside") == "aside"
        assert [(entry.name, entry.regular) for entry in fs.entries()] == [("aside", False)]
        assert place.elsewhere() == ELSEWHERE

    @staticmethod
    def removing_twice_is_removing(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        place.plant_file(NEXT_KEY, b"next")
        with fs.lock(0):
            fs.remove(NEXT_KEY)
            fs.remove(NEXT_KEY)
        assert place.files() == {KEY: b"key"}

    @staticmethod
    def a_planted_link_is_never_followed(place: Place) -> None:
        fs = place.fs()
        for name in NAMES:
            place.plant_link(name)
            refused(Message.NOT_A_FILE, lambda name=name: fs.read(name, 100))  # type: ignore[misc]
            with fs.lock(0):
                fs.write(name, b"ours")
            assert fs.read(name, 100) == b"ours"
        assert place.elsewhere() == ELSEWHERE
        assert place.files() == dict.fromkeys(NAMES, b"ours")

    @staticmethod
    def removing_a_link_removes_the_link(place: Place) -> None:
        fs = place.fs()
        place.plant_link(KEY)
        with fs.lock(0):
            fs.remove(KEY)
        assert fs.entries() == ()
        assert place.elsewhere() == ELSEWHERE

    @staticmethod
    def a_planted_directory_is_no_file(place: Place) -> None:
        fs = place.fs()
        for name in NAMES:
            place.plant_directory(name)
            failure = refused(Message.NOT_A_FILE, lambda name=name: fs.read(name, 100))  # type: ignore[misc]
            assert name in failure.text
            refused(Message.NOT_A_FILE, lambda name=name: fs.remove(name))  # type: ignore[misc]
        assert [entry.name for entry in fs.entries()] == sorted(NAMES)

    @staticmethod
    def a_name_that_leaves_the_directory_is_refused(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        for name in NO_NAMES:
            for call in (
                lambda name: fs.read(name, 1),
                lambda name: fs.write(name, b""),
                fs.remove,
                # An empty name is the directory, which is handed over as its files are.
                lambda name: fs.hand_over(name or "."),
                lambda name: fs.rename(name, "b"),
                lambda name: fs.rename(KEY, name),
                lambda name: fs.move_aside(name, "b"),
                lambda name: fs.move_aside(KEY, name),
            ):
                with pytest.raises(ValueError, match="not a plain name"):
                    call(name)
        assert place.files() == {KEY: b"key"}

    @staticmethod
    def one_writer_at_a_time(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with one.lock(0):
            failure = refused(Message.LOCKED, lambda: enter(other.lock(45)))
            assert isinstance(failure, TryLater)
            assert sum(place.clock.waits) >= 45
            one.write(KEY, b"one's")
        with other.lock(0):
            other.write(KEY, b"other's")
        assert place.files() == {KEY: b"other's"}

    @staticmethod
    def a_lock_ends_with_its_block_whatever_ends_that(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with pytest.raises(KeyError), one.lock(0):
            raise KeyError
        with other.lock(0):
            pass
        with one.lock(0):
            pass

    @staticmethod
    def who_waits_gets_the_lock_when_it_is_free(place: Place) -> None:
        one, other = place.fs(), place.fs()
        held = one.lock(0)
        held.__enter__()
        place.clock.on_wait = lambda: held.__exit__(None, None, None) if len(place.clock.waits) == 3 else None
        with other.lock(45):
            pass
        assert len(place.clock.waits) == 3

    @staticmethod
    def a_reader_needs_no_lock(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with one.lock(0):
            one.write(KEY, b"key")
            assert other.read(KEY, 10) == b"key"
            assert [entry.name for entry in other.entries()] == [KEY]

    @staticmethod
    def a_writer_sweeps_what_an_interrupted_write_left_and_nothing_else(place: Place) -> None:
        fs = place.fs()
        place.plant_file(".bcd-node.key.0123456789abcdef", b"half")
        place.plant_file(".other", b"not ours")
        place.plant_file("bcd-node.key", b"not ours either")
        assert len(fs.entries()) == 3
        with fs.lock(0):
            assert place.files() == {".other": b"not ours", "bcd-node.key": b"not ours either"}

    @staticmethod
    def without_an_owner_nothing_is_handed_over(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        assert fs.hand_over(KEY) is False
        assert fs.hand_over(NEXT_KEY) is False


def enter(lock: AbstractContextManager[None]) -> None:
    with lock:
        pass


class RealPlace:
    """Below a real temporary directory; `make` makes the implementation for a path and a clock."""

    def __init__(self, folder: Path, make: Callable[[str, ManualClock], Fs] = LocalFs) -> None:
        self._outside = folder / "outside"
        self._outside.write_bytes(ELSEWHERE)
        self.path = folder / "data"
        self.clock = ManualClock()
        self._make = make

    def fs(self) -> Fs:
        return self._make(str(self.path), self.clock)

    def plant_file(self, name: str, data: bytes) -> None:
        self.path.mkdir(0o700, exist_ok=True)
        (self.path / name).write_bytes(data)
        (self.path / name).chmod(0o600)

    def plant_link(self, name: str) -> None:
        self.path.mkdir(0o700, exist_ok=True)
        (self.path / name).symlink_to(self._outside)

    def plant_directory(self, name: str) -> None:
        self.path.mkdir(0o700, exist_ok=True)
        (self.path / name).mkdir()

    def elsewhere(self) -> bytes:
        return self._outside.read_bytes()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.iterdir()}

    def mode(self, name: str) -> int:
        return stat.S_IMODE((self.path / name).lstat().st_mode)


class MemoryPlace:
    """A directory of the memory disk."""

    PATH = "/var/lib/bcd"

    def __init__(self, folder: Path) -> None:
        self.disk = MemoryDisk()
        self.disk.plant("/var/lib/other", File(b"x"))
        self.clock = ManualClock()

    def fs(self) -> Fs:
        return LocalFs(self.PATH, self.clock, syscalls=self.disk)

    def plant_file(self, name: str, data: bytes) -> None:
        self._plant(name, File(data, owner=(os.geteuid(), os.getegid())))

    def plant_link(self, name: str) -> None:
        self._plant(name, Link("/elsewhere"))

    def plant_directory(self, name: str) -> None:
        self._plant(name, Folder())

    def elsewhere(self) -> bytes:
        # No call of this disk follows a link.
        return ELSEWHERE

    def files(self) -> dict[str, bytes]:
        return self.disk.files(self.PATH)

    def mode(self, name: str) -> int:
        node = dict(self.disk.image.names)
        for part in [*self.PATH.strip("/").split("/"), *([name] if name else [])]:
            found = node[part]
            node = dict(found.names) if isinstance(found, Folder) else {}
        return found.mode

    def _plant(self, name: str, image: File | Link | Folder) -> None:
        self.disk.plant(f"{self.PATH}/{name}", image)


@pytest.mark.parametrize("make", [RealPlace, MemoryPlace])
@pytest.mark.parametrize("check", checks_of(FsContract).values(), ids=checks_of(FsContract))
def test_every_implementation_meets_the_contract(
    check: Callable[[Place], None], make: Callable[[Path], Place], tmp_path: Path
) -> None:
    check(make(tmp_path))


# --- Deliberately wrong implementations


class WritesInPlace(LocalFs):
    def write(self, name: str, data: bytes) -> None:
        self.read(name, 0)
        Path(self._full(name)).write_bytes(data)


class FollowsLinks(LocalFs):
    def read(self, name: str, limit_bytes: int) -> bytes | None:
        path = Path(self._full(name))
        return path.read_bytes()[: limit_bytes + 1] if path.exists() else None


class ReadsEverything(LocalFs):
    def read(self, name: str, limit_bytes: int) -> bytes | None:
        return super().read(name, 1 << 20)


class ReplacesWhatIsAside(LocalFs):
    def move_aside(self, old: str, new: str) -> str | None:
        if self.read(old, 0) is None:
            return None
        self.rename(old, new)
        return new


class RemovesOnce(LocalFs):
    def remove(self, name: str) -> None:
        os.unlink(self._full(name))


class LocksNobodyOut(LocalFs):
    def lock(self, wait_s: float) -> AbstractContextManager[None]:
        os.makedirs(self._path, 0o700, exist_ok=True)
        return self._opened()  # type: ignore[return-value]


class NeverLetsGo(LocalFs):
    def lock(self, wait_s: float) -> AbstractContextManager[None]:
        lock = super().lock(wait_s)
        lock.__exit__ = lambda *_: None  # type: ignore[method-assign]
        return KeptOpen(lock)


class KeptOpen(AbstractContextManager[None]):
    kept: ClassVar[list[AbstractContextManager[None]]] = []

    def __init__(self, lock: AbstractContextManager[None]) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self.kept.append(self._lock)
        self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        return None


class SweepsEverything(LocalFs):
    def _settle(self, directory: int) -> None:
        for name in self._sys.names(directory):
            self._drop(directory, name)


class SweepsNothing(LocalFs):
    def _settle(self, directory: int) -> None:
        return


class TakesAnyName(LocalFs):
    def rename(self, old: str, new: str) -> None:
        Path(self._full(old)).rename(self._full(new))


class MakesTheDirectoryPublic(LocalFs):
    def _make_directory(self, path: str) -> None:
        os.mkdir(path)
        os.chmod(self._path, 0o755)


class HidesLinks(LocalFs):
    def entries(self):  # type: ignore[no-untyped-def]
        return tuple(entry for entry in super().entries() if entry.regular)


class HandsOverNothing(LocalFs):
    def hand_over(self, name: str) -> bool:
        return True


class WaitsForNobody(LocalFs):
    def lock(self, wait_s: float) -> AbstractContextManager[None]:
        return super().lock(0)


@pytest.mark.parametrize(
    ("wrong", "caught_by"),
    [
        (WritesInPlace, "what_is_written_is_read_and_is_0600"),
        (WritesInPlace, "a_file_that_is_read_stays_what_it_was_when_it_is_replaced"),
        (WritesInPlace, "a_planted_link_is_never_followed"),
        (FollowsLinks, "a_planted_link_is_never_followed"),
        (FollowsLinks, "a_name_that_leaves_the_directory_is_refused"),
        (ReadsEverything, "a_read_stops_one_byte_after_its_limit"),
        (ReplacesWhatIsAside, "moving_aside_replaces_nothing_and_says_the_name"),
        (ReplacesWhatIsAside, "moving_a_link_aside_moves_the_link"),
        (RemovesOnce, "removing_twice_is_removing"),
        (RemovesOnce, "without_the_directory_there_is_nothing"),
        (LocksNobodyOut, "one_writer_at_a_time"),
        (LocksNobodyOut, "who_waits_gets_the_lock_when_it_is_free"),
        (NeverLetsGo, "a_lock_ends_with_its_block_whatever_ends_that"),
        (WaitsForNobody, "who_waits_gets_the_lock_when_it_is_free"),
        (SweepsEverything, "a_writer_sweeps_what_an_interrupted_write_left_and_nothing_else"),
        (SweepsNothing, "a_writer_sweeps_what_an_interrupted_write_left_and_nothing_else"),
        (TakesAnyName, "a_name_that_leaves_the_directory_is_refused"),
        (MakesTheDirectoryPublic, "the_lock_makes_the_directory_0700"),
        (HidesLinks, "entries_are_all_names_sorted_and_tell_what_is_there"),
        (HandsOverNothing, "without_an_owner_nothing_is_handed_over"),
    ],
)
def test_a_wrong_implementation_fails_the_contract(wrong: type[LocalFs], caught_by: str, tmp_path: Path) -> None:
    number = iter(range(100))

    def make() -> Place:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        return RealPlace(folder, wrong)

    try:
        assert caught_by in failed_checks(FsContract, make)
    finally:
        for lock in KeptOpen.kept:
            lock.__exit__(None, None, None)
        KeptOpen.kept.clear()


# --- The real adapter alone


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_b07_a_file_is_0600_from_birth_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    """Field report B07."""
    born: list[int] = []

    class Watched(OsSyscalls):
        def create(self, directory: int, name: str) -> int:
            descriptor = super().create(directory, name)
            born.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            return descriptor

    (tmp_path / "data").mkdir(0o700)
    fs = LocalFs(str(tmp_path / "data"), ManualClock(), syscalls=Watched())
    before = os.umask(umask)
    try:
        with fs.lock(0):
            fs.write(KEY, b"key")
    finally:
        os.umask(before)
    # A umask only takes away; nothing but a mode that is too small could come of it.
    assert born == [0o600 & ~umask]
    assert not (tmp_path / "data" / KEY).stat().st_mode & 0o077


def test_a_pipe_under_a_name_is_no_file_and_holds_nobody_up(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path), ManualClock())
    for name in NAMES:
        os.mkfifo(tmp_path / name)
        refused(Message.NOT_A_FILE, lambda name=name: fs.read(name, 100))  # type: ignore[misc]
        with fs.lock(0):
            fs.write(name, b"ours")
        assert fs.read(name, 100) == b"ours"


def test_a_directory_under_a_name_is_not_written_over_and_nothing_is_left(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path), ManualClock())
    (tmp_path / KEY).mkdir()
    with fs.lock(0):
        refused(Message.NOT_A_FILE, lambda: fs.write(KEY, b"key"))
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


@pytest.mark.parametrize("what", ["link", "file", "pipe"])
def test_a_data_directory_that_is_none_is_said_to_be_none(what: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    match what:
        case "link":
            (tmp_path / "real").mkdir(0o700)
            path.symlink_to(tmp_path / "real")
        case "file":
            path.write_bytes(b"")
        case "pipe":
            os.mkfifo(path)
    fs = LocalFs(str(path), ManualClock())
    for call in (fs.look, fs.entries, lambda: fs.read(KEY, 1), lambda: enter(fs.lock(0))):
        failure = refused(Message.NOT_A_DIRECTORY, call)
        assert isinstance(failure, FixConfiguration)
        assert str(path) in failure.text
    assert not list((tmp_path / "real").glob("*"))


def test_the_directories_above_the_data_directory_are_made_too(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path / "a" / "b" / "data"), ManualClock())
    with fs.lock(0):
        fs.write(KEY, b"key")
    assert (tmp_path / "a" / "b" / "data" / KEY).read_bytes() == b"key"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


HOLDER = """
import sys, time
from bcd.adapters.fs.local import LocalFs
from bcd.adapters.host.clock import SystemClock
with LocalFs(sys.argv[1], SystemClock()).lock(0):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(path: Path) -> "subprocess.Popen[bytes]":
    """Another process that holds the lock until its standard input ends."""
    words = [sys.executable, "-c", HOLDER, str(path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_lock_holds_over_processes_names_its_holder_and_ends_with_kill_9(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path / "data"), ManualClock())
    with holding(tmp_path / "data") as process:
        failure = refused(Message.LOCKED, lambda: enter(fs.lock(1)))
        assert f"(process {process.pid})" in failure.text or "another process" in failure.text
        process.send_signal(signal.SIGKILL)
        process.wait()
        with fs.lock(0):
            fs.write(KEY, b"ours")
    assert fs.read(KEY, 10) == b"ours"


class Failing(OsSyscalls):
    """Fails at one call with one errno."""

    def __init__(self, call: str, code: int) -> None:
        self.call = call
        self.code = code

    def __getattribute__(self, name: str) -> object:
        if name not in ("call", "code") and name == self.call:
            code = self.code

            def fail(*_: object) -> None:
                raise OSError(code, os.strerror(code))

            return fail
        return super().__getattribute__(name)


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename"])
def test_b08_a_full_disk_keeps_the_old_file_and_leaves_no_other(call: str, tmp_path: Path) -> None:
    """Field report B08."""
    with LocalFs(str(tmp_path), ManualClock()).lock(0):
        LocalFs(str(tmp_path), ManualClock()).write(IDENTITY, b"old")
    fs = LocalFs(str(tmp_path), ManualClock(), syscalls=Failing(call, errno.ENOSPC))
    failure = refused(Message.NO_SPACE, lambda: fs.write(IDENTITY, b"new"))
    assert "No space left on device" in failure.text
    assert f"{tmp_path}/{IDENTITY}" in failure.text
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {IDENTITY: b"old"}


def test_a_system_that_takes_and_gives_a_few_bytes_at_a_time_makes_no_difference(tmp_path: Path) -> None:
    class Slow(OsSyscalls):
        def read(self, descriptor: int, limit: int) -> bytes:
            return super().read(descriptor, min(limit, 3))

        def write(self, descriptor: int, data: bytes) -> int:
            return super().write(descriptor, data[:3])

    fs = LocalFs(str(tmp_path), ManualClock(), syscalls=Slow())
    fs.write(KEY, b"0123456789")
    assert (tmp_path / KEY).read_bytes() == b"0123456789"
    assert fs.read(KEY, 10) == b"0123456789"
    # A limit that is a multiple of what comes at a time.
    assert fs.read(KEY, 9) == b"0123456789"


CALLS: dict[str, Callable[[LocalFs], object]] = {
    "open_directory": lambda fs: fs.look(),
    "space": lambda fs: fs.look(),
    "names": lambda fs: fs.entries(),
    "stat": lambda fs: fs.entries(),
    "open": lambda fs: fs.read(KEY, 10),
    "read": lambda fs: fs.read(KEY, 10),
    "stat_open": lambda fs: fs.read(KEY, 10),
    "create": lambda fs: fs.write(KEY, b"x"),
    "rename": lambda fs: fs.rename(KEY, NEXT_KEY),
    "rename_new": lambda fs: fs.move_aside(KEY, "aside"),
    "unlink": lambda fs: fs.remove(KEY),
    "sync": lambda fs: enter(fs.lock(0)),
    "try_lock": lambda fs: enter(fs.lock(0)),
}


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EROFS, errno.ENOLCK, errno.ESTALE, errno.EMFILE])
@pytest.mark.parametrize("call", CALLS)
def test_whatever_the_system_refuses_is_a_failure_that_names_the_path(call: str, code: int, tmp_path: Path) -> None:
    (tmp_path / KEY).write_bytes(b"key")
    fs = LocalFs(str(tmp_path), ManualClock(), syscalls=Failing(call, code))
    with pytest.raises(Failure) as caught:
        CALLS[call](fs)
    assert str(tmp_path) in caught.value.text
    assert isinstance(caught.value, Refused) is (code == errno.EACCES)
    assert (caught.value.message is Message.READ_ONLY) is (code == errno.EROFS)


def test_a_directory_that_cannot_be_listed_under_the_lock_is_a_failure_too(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path), ManualClock(), syscalls=Failing("names", errno.EIO))
    refused(Message.FILE_SYSTEM, lambda: enter(fs.lock(0)))
    with LocalFs(str(tmp_path), ManualClock()).lock(0):
        pass


def test_what_happens_in_the_locked_block_is_not_taken_for_the_locks_own(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path), ManualClock())
    with pytest.raises(OSError, match="somebody else's"), fs.lock(0):
        raise OSError(errno.EIO, "somebody else's")


@pytest.mark.parametrize("there", [False, True])
def test_b10_on_a_read_only_mount_only_a_name_that_is_there_cannot_be_removed(there: bool, tmp_path: Path) -> None:
    """Field report B10. The kernel says read-only before it says that there is no such name."""

    class ReadOnly(OsSyscalls):
        def unlink(self, directory: int, name: str) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        def space(self, directory: int) -> Space:
            return Space(super().space(directory).free_bytes, True)

    fs = LocalFs(str(tmp_path), ManualClock(), syscalls=ReadOnly())
    if there:
        (tmp_path / PENDING).write_bytes(b"{}")
        assert str(tmp_path) in refused(Message.READ_ONLY, lambda: fs.remove(PENDING)).text
    else:
        fs.remove(PENDING)


def test_a_second_lock_of_the_same_object_is_refused_and_spoils_nothing_for_the_first(tmp_path: Path) -> None:
    fs = LocalFs(str(tmp_path / "data"), ManualClock())
    with fs.lock(0):
        refused(Message.LOCKED, lambda: enter(fs.lock(0)))
        # Another directory under the same path is not the one that is locked.
        (tmp_path / "data").rename(tmp_path / "moved")
        (tmp_path / "data").mkdir()
        fs.write(KEY, b"key")
    assert (tmp_path / "moved" / KEY).read_bytes() == b"key"
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_b16_a_link_is_handed_over_itself_and_never_what_it_names(tmp_path: Path) -> None:
    """Field reports B13 and B16."""
    outside = tmp_path / "outside"
    outside.write_bytes(ELSEWHERE)
    fs = LocalFs(str(tmp_path / "data"), ManualClock(), Owner("nobody", 65534, 65534))
    with fs.lock(0):
        fs.write(KEY, b"key")
        (tmp_path / "data" / IDENTITY).symlink_to(outside)
        (tmp_path / "data" / NEXT_KEY).write_bytes(b"root's")
        assert fs.hand_over(KEY) is False
        assert fs.hand_over(IDENTITY) is True
        assert fs.hand_over(NEXT_KEY) is True
        assert fs.hand_over(NEXT_KEY) is False
        assert fs.hand_over(JOURNAL) is False
    assert outside.stat().st_uid == 0
    assert {path.name: path.lstat().st_uid for path in (tmp_path / "data").iterdir()} == {
        KEY: 65534,
        IDENTITY: 65534,
        NEXT_KEY: 65534,
    }
    assert (tmp_path / "data").stat().st_uid == 65534
