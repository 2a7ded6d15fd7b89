"""The real adapter of the port `Fs` alone: processes, umasks, system calls that fail."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.adapters.fs.syscalls import OsSyscalls, Space
from bcd.domain.model.datadir import IDENTITY, JOURNAL, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import Failure, FixConfiguration, Message, Refused
from tests.contract.ports.fs_contract import ELSEWHERE, NAMES, enter, refused
from tests.fakes.clock import ManualClock


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
