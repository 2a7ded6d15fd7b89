"""Real processes on a file system that is full, read-only or in use by another."""

import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.domain.model.failures import TryLater
from tests.crash import mounts, strace
from tests.fakes import commands
from tests.fakes.clock import ManualClock
from tests.fakes.plane import Machine, Plane, control_plane

_PAGE = 4096
_ORPHAN = b"a key that somebody may still need\n"


@pytest.fixture(scope="module")
def plane(own_mounts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("plane")) as serving:
        yield serving


@pytest.fixture(scope="module")
def token(plane: Plane) -> str:
    return plane.token("--uses", "50")


@contextmanager
def joined_on_ext4(plane: Plane, token: str, scratch: Path) -> Iterator[tuple[Machine, Path]]:
    """A machine with an identity whose data directory is an ext4, and the image of that."""
    machine, image = plane.machine(), scratch / "disk"
    mounts.make_ext4(image)
    with mounts.ext4(image, machine.data):
        (machine.data / "lost+found").rmdir()
        machine.data.chmod(0o700)
        done = machine.join(token)
        assert done.status == 0, done.err
        yield machine, image


@pytest.mark.parametrize("pages", [0, 1, 2])
def test_a_full_disk_is_told_and_costs_nothing(plane: Plane, token: str, pages: int) -> None:
    """B08: errno and path are told, no temporary file is left, the older file is untouched; with room it goes on."""
    machine = plane.machine()
    with mounts.tmpfs(machine.data, "64k"):
        (machine.data / "node.key").write_bytes(_ORPHAN)
        _fill(machine.data, leave=pages * _PAGE)
        before = _state(machine.data)

        done = machine.join(token)
        assert done.status == 75
        path, free = re.findall(r"^No space left on device: (\S+) \((\d+) bytes free\)", done.last_error)[0]
        name = ("join.pending", "node.key.next", "identity.json")[pages]
        assert path == str(machine.data / name)
        if pages == 0:
            assert free == "0"
        after = _state(machine.data)
        assert not [name for name in after if name.startswith(".bcd-")]
        assert _ORPHAN in [content for content, _ in after.values()]
        if pages == 0:
            assert after == before

        (machine.data / "ballast").unlink()
        # What was sent is answered again; a request that found no room was not sent.
        done = machine.join("" if pages else token)
        assert done.status == 0, done.err
        assert machine.run("status").status == 0
        assert [name for name in machine.files() if name.startswith("node.key.orphan-")]


def test_a_read_only_directory_is_told_and_nothing_changes(plane: Plane, token: str) -> None:
    """B10: a first join."""
    machine = plane.machine()
    with mounts.tmpfs(machine.data, "64k"):
        (machine.data / "node.key").write_bytes(_ORPHAN)
        mounts.read_only(machine.data)
        before = _state(machine.data)
        done = machine.join(token)
        assert done.status == 75
        assert done.last_error.startswith(f"read-only file system: {machine.data}:")
        assert _state(machine.data) == before


def test_a_directory_that_cannot_be_made_is_told(plane: Plane, token: str) -> None:
    """B10: the directory above is read-only."""
    machine = plane.machine("below/node")
    with mounts.tmpfs(machine.data.parent, "64k"):
        env = machine.env
        mounts.read_only(machine.data.parent)
        done = commands.run(*machine.words("join"), stdin=f"{token}\n".encode(), env=env)
        assert done.status == 75
        assert done.last_error.startswith(f"read-only file system: {machine.data}:")


def test_a_joined_machine_on_a_read_only_disk(plane: Plane, token: str, scratch: Path) -> None:
    """B10, B11: a join says that it has joined, a reset that it cannot; whoever reads works; the disk is the same."""
    with joined_on_ext4(plane, token, scratch) as (machine, image):
        mounts.sync(machine.data)
        mounts.read_only(machine.data)
        files, disk = _state(machine.data), _hash(image)

        again = machine.join()
        assert (again.status, again.out.split(" as ")[0]) == (0, "already joined")

        reset = machine.join(token, "--reset", "--yes")
        assert reset.status == 75
        assert reset.last_error.startswith(f"read-only file system: {machine.data}:")

        plan = machine.join("", "--reset")
        assert plan.status == 2
        assert {"identity.json", "node.key"} <= set(re.findall(r"[\w.]+", plan.out))

        status = machine.run("status")
        assert (status.status, status.err) == (0, "")
        doctor = machine.run("doctor")
        assert "internal error" not in doctor.err
        assert doctor.out != ""

        assert _state(machine.data) == files
        assert _hash(image) == disk


@pytest.mark.parametrize(("words", "wanted"), [(("status",), 0), (("doctor",), 0), (("join", "--reset"), 2)], ids=str)
def test_who_only_looks_changes_nothing_and_takes_no_lock(
    plane: Plane, token: str, tmp_path: Path, words: tuple[str, ...], wanted: int
) -> None:
    """B11: seen by strace on a directory that could be written to, while a writer holds it."""
    machine = plane.machine()
    assert machine.join(token).status == 0
    log = tmp_path / "log"
    with _held(machine.data):
        done = commands.run(*machine.words(*words), env=machine.env, prefix=strace.words(log), timeout_s=30)
    assert done.status == wanted, done.err
    assert any(str(machine.data) in line for line in strace.lines(log))
    assert strace.changes(log, machine.data) == []


def test_strace_would_have_seen_a_change(plane: Plane, token: str, tmp_path: Path) -> None:
    """B11: the same look at a join, which does change something."""
    machine = plane.machine()
    log = tmp_path / "log"
    done = commands.run(*machine.words("join"), stdin=f"{token}\n".encode(), env=machine.env, prefix=strace.words(log))
    assert done.status == 0, done.err
    calls = {re.split(r"[ (]+", line)[1] for line in strace.changes(log, machine.data)}
    assert {"flock", "openat", "write", "fsync", "renameat", "unlinkat"} <= calls


def test_a_join_waits_for_the_lock_and_goes_on_as_soon_as_it_is_free(plane: Plane, token: str) -> None:
    """Two processes: nothing is asked for, read or written before."""
    machine = plane.machine()
    machine.data.mkdir(0o700)
    with _held(machine.data):
        process = machine.start("join")
        assert process.stdin is not None
        process.stdin.write(f"{token}\n".encode())
        process.stdin.close()
        process.stdin = None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        assert machine.files() == {}
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err.decode()
    assert out.startswith(b"joined as n-")


def test_whoever_holds_the_lock_is_named(tmp_path: Path) -> None:
    """Two processes: the program and its number, as a person finds it in a list of processes."""
    words = ["flock", "--no-fork", str(tmp_path), "sh", "-c", "echo held; exec sleep 60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            fs = LocalFs(str(tmp_path), ManualClock())
            told = rf"^{tmp_path} is in use by (sh|sleep)\b.* \(process {holder.pid}\)"
            with pytest.raises(TryLater, match=told), fs.lock(45):
                pass
        finally:
            holder.kill()


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _fill(directory: Path, leave: int) -> None:
    """Leaves room for so many bytes and not one more."""
    with (directory / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(_PAGE))
        except OSError:
            pass
        file.truncate(file.tell() // _PAGE * _PAGE - leave)


def _state(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(directory.iterdir())}


def _hash(image: Path) -> str:
    return hashlib.sha256(image.read_bytes()).hexdigest()
