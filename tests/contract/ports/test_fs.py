"""The port `Fs`: one contract over the real adapter, over the same adapter on the memory disk, and over wrong ones."""

import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.ports.fs import Fs
from tests.contract.ports.fs_contract import ELSEWHERE, FsContract, Place
from tests.fakes.clock import ManualClock
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.memory_disk import File, Folder, Link, MemoryDisk


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
