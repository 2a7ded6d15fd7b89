"""Takes down what the real system calls of a run change, as the values a memory disk can play back."""

from collections.abc import Callable

from bcd.adapters.fs.syscalls import OsSyscalls
from tests.fakes.disk_changes import (
    Change,
    Chown,
    ChownDirectory,
    ChownName,
    Create,
    MakeDirectory,
    Mark,
    Rename,
    SyncDirectory,
    SyncFile,
    SyncParent,
    Unlink,
    Write,
)


class Recorder(OsSyscalls):
    """The kernel's calls; `trace` has each change once it was made, `after` is called then. Paths below `root` are
    told as if `root` were `as_`; what is synced above it is not told."""

    def __init__(self, root: str, as_: str, after: Callable[[Change], None] = lambda change: None) -> None:
        self._root = root
        self._as = as_
        self._after = after
        self._names: dict[int, tuple[str, bool]] = {}
        self.trace: list[Change] = []

    def mark(self, text: str) -> None:
        self._did(Mark(text))

    def open_directory(self, path: str) -> int:
        return self._opened(super().open_directory(path), self._told(path), is_directory=True)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self._did(MakeDirectory(self._told(path)))

    def sync_parent(self, path: str) -> None:
        super().sync_parent(path)
        if _below(self._root, path):
            self._did(SyncParent(self._told(path)))

    def create(self, directory: int, name: str) -> int:
        descriptor = super().create(directory, name)
        self._did(Create(self._path(directory), name))
        return self._opened(descriptor, name, is_directory=False)

    def open(self, directory: int, name: str) -> int:
        return self._opened(super().open(directory, name), name, is_directory=False)

    def write(self, descriptor: int, data: bytes) -> int:
        written = super().write(descriptor, data)
        self._did(Write(self._path(descriptor), data[:written]))
        return written

    def chown(self, descriptor: int, uid: int, gid: int) -> None:
        super().chown(descriptor, uid, gid)
        path, is_directory = self._names[descriptor]
        self._did(ChownDirectory(path, uid, gid) if is_directory else Chown(path, uid, gid))

    def chown_name(self, directory: int, name: str, uid: int, gid: int) -> None:
        super().chown_name(directory, name, uid, gid)
        self._did(ChownName(self._path(directory), name, uid, gid))

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        path, is_directory = self._names[descriptor]
        self._did(SyncDirectory(path) if is_directory else SyncFile(path))

    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        del self._names[descriptor]

    def rename(self, directory: int, old: str, new: str) -> None:
        super().rename(directory, old, new)
        self._did(Rename(self._path(directory), old, new))

    def rename_new(self, directory: int, old: str, new: str) -> None:
        super().rename_new(directory, old, new)
        self._did(Rename(self._path(directory), old, new, replace=False))

    def unlink(self, directory: int, name: str) -> None:
        super().unlink(directory, name)
        self._did(Unlink(self._path(directory), name))

    def _did(self, change: Change) -> None:
        self.trace.append(change)
        self._after(change)

    def _opened(self, descriptor: int, path: str, *, is_directory: bool) -> int:
        self._names[descriptor] = (path, is_directory)
        return descriptor

    def _path(self, descriptor: int) -> str:
        return self._names[descriptor][0]

    def _told(self, path: str) -> str:
        return self._as + path.removeprefix(self._root) if _below(self._root, path) else path


def _below(root: str, path: str) -> bool:
    return path == root or path.startswith(f"{root}/")
