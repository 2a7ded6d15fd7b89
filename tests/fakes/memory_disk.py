"""A disk in memory that loses power: `Syscalls` with the least that POSIX promises about what survives.

What a file holds is safe after an fsync of the file; before it may be nothing, half or all of it. A name that was made,
changed or taken away is safe after an fsync of its directory; before, each such change may have reached the disk or
not, whatever came after it. An owner is safe after an fsync of either. `states_at(n)` is every disk that may be found
when the power went before change `n`; `at(n)` is the one disk that is left when only the process was killed there.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import NoReturn

from bcd.adapters.fs.syscalls import Space
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

Owner = tuple[int, int]
# More changes of names than this without one fsync between them are a mistake of the test, not a disk to enumerate.
_MOST_PENDING = 14


class PowerLost(BaseException):
    """Not an Exception: no program catches this one."""


@dataclass(frozen=True)
class File:
    """A file as it lies on the disk."""

    data: bytes
    mode: int = 0o600
    owner: Owner = (0, 0)


@dataclass(frozen=True)
class Link:
    """A symbolic link. No call of this seam follows one, so where it leads does not matter here."""

    target: str = "/elsewhere"
    mode: int = 0o777
    owner: Owner = (0, 0)


@dataclass(frozen=True)
class Folder:
    """A directory as it lies on the disk; compared, like the others, by everything in it."""

    names: tuple[tuple[str, "Image"], ...] = ()
    mode: int = 0o700
    owner: Owner = (0, 0)

    @staticmethod
    def of(names: dict[str, "Image"], mode: int = 0o700, owner: Owner = (0, 0)) -> "Folder":
        return Folder(tuple(sorted(names.items(), key=lambda item: item[0])), mode, owner)


Image = File | Link | Folder


@dataclass(eq=False)
class _File:
    mode: int
    owner: Owner
    safe_owner: Owner
    data: bytes = b""
    safe: bytes = b""

    def images(self) -> set[Image]:
        held = {self.data} if self.data == self.safe else {self.safe, b"", self.data[: len(self.data) // 2], self.data}
        return {File(data, self.mode, owner) for data in held for owner in (self.owner, self.safe_owner)}


@dataclass(eq=False)
class _Link:
    image: Link
    owner: Owner
    safe_owner: Owner

    def images(self) -> set[Image]:
        return {Link(self.image.target, self.image.mode, owner) for owner in (self.owner, self.safe_owner)}


@dataclass(eq=False)
class _Folder:
    mode: int
    owner: Owner
    safe_owner: Owner
    names: dict[str, "_Node"] = field(default_factory=dict)
    safe: dict[str, "_Node"] = field(default_factory=dict)
    # What happened to names since the last fsync: (old name or none, node that was put there or none, new name).
    pending: list[tuple[str | None, "_Node | None", str | None]] = field(default_factory=list)
    given_away: list["_Node"] = field(default_factory=list)

    def sync(self) -> None:
        self.safe = dict(self.names)
        self.safe_owner = self.owner
        for node in self.given_away:
            node.safe_owner = node.owner
        self.pending, self.given_away = [], []

    def images(self) -> set[Image]:
        assert len(self.pending) <= _MOST_PENDING
        found: set[Image] = set()
        # Which of the pending changes reached the disk: any of them, in their order.
        for kept in chain.from_iterable(combinations(self.pending, n) for n in range(len(self.pending) + 1)):
            names = dict(self.safe)
            for old, node, new in kept:
                moved = names.pop(old, None) if old is not None else node
                if new is not None and moved is not None:
                    names[new] = moved
            for children in product(*(node.images() for node in names.values())):
                content = dict(zip(names, children, strict=True))
                found |= {Folder.of(content, self.mode, owner) for owner in (self.owner, self.safe_owner)}
        return found


_Node = _File | _Link | _Folder


@dataclass
class _Handle:
    node: _Node
    name: str
    position: int = 0


class MemoryDisk:
    """Holds directories below `/`. `read_only`, `free_bytes` and `fail` make its calls fail as the system's would."""

    def __init__(self, image: Folder | None = None) -> None:
        self._image = image if image is not None else Folder(mode=0o755)
        self._root = _alive(self._image)
        self._handles: dict[int, _Handle] = {}
        self._locks: dict[int, int] = {}
        self._made: dict[str, _Node] = {}
        self._next_handle = 3
        self._faults: dict[int, int] = {}
        self._changes = 0
        self.trace: list[Change] = []
        self.read_only = False
        self.free_bytes = 1 << 30
        self.power_lost_before: int | None = None

    # What tests do with it

    @property
    def image(self) -> Folder:
        """What is on it as long as the power is on."""
        image = _now(self._root)
        assert isinstance(image, Folder)
        return image

    def plant(self, path: str, image: Image) -> None:
        """Puts `image` at `path`, safely on the disk; directories above it are made."""
        folder = self._root
        *above, name = path.strip("/").split("/")
        for part in above:
            node = folder.names.setdefault(part, _Folder(0o700, (0, 0), (0, 0)))
            assert isinstance(node, _Folder)
            folder.sync()
            folder = node
        folder.names[name] = _alive(image)
        folder.sync()
        self._image = self.image
        self.trace.clear()

    def files(self, path: str) -> dict[str, bytes]:
        """Names and contents of the files of a directory as they are now; empty when there is none."""
        node = self._find(path)
        if not isinstance(node, _Folder):
            return {}
        return {name: child.data for name, child in node.names.items() if isinstance(child, _File)}

    def fail(self, code: int, at: int) -> None:
        """The `at`-th change from now on (0: the next one) fails with this errno and is not made."""
        self._faults[self._changes + at] = code

    def mark(self, text: str) -> None:
        """Something left the machine here."""
        self._do(Mark(text))

    def replay(self, changes: Sequence[Change]) -> "MemoryDisk":
        """Makes these changes; an OSError where the system would not allow one."""
        for change in changes:
            self._do(change)
        return self

    def at(self, n: int) -> "MemoryDisk":
        """The disk after the first `n` changes, with all that is not yet safe on it: the process was killed."""
        return MemoryDisk(self._image).replay(self.trace[:n])

    def images_at(self, n: int) -> set[Image]:
        return self.at(n)._root.images()

    def states_at(self, n: int) -> Iterator["MemoryDisk"]:
        """Every disk that may be found when the power is cut before change `n` (counted from 0), each only once."""
        for image in self.images_at(n):
            assert isinstance(image, Folder)
            yield MemoryDisk(image)

    # Syscalls

    def open_directory(self, path: str) -> int:
        node = self._find(path)
        if node is None:
            _no(errno.ENOENT, path)
        if isinstance(node, _Link):
            _no(errno.ELOOP, path)
        if isinstance(node, _File):
            _no(errno.ENOTDIR, path)
        return self._handle(node, path)

    def make_directory(self, path: str) -> None:
        self._do(MakeDirectory(path))

    def sync_parent(self, path: str) -> None:
        self._do(SyncParent(path))

    def create(self, directory: int, name: str) -> int:
        self._do(Create(self._handles[directory].name, name))
        return self._handle(self._made[name], name)

    def open(self, directory: int, name: str) -> int:
        node = self._name(directory, name)
        if isinstance(node, _Link):
            _no(errno.ELOOP, name)
        return self._handle(node, name)

    def read(self, descriptor: int, limit: int) -> bytes:
        handle = self._handles[descriptor]
        if not isinstance(handle.node, _File):
            _no(errno.EISDIR, handle.name)
        data = handle.node.data[handle.position : handle.position + limit]
        handle.position += len(data)
        return data

    def write(self, descriptor: int, data: bytes) -> int:
        # A file system that is filling up takes what it can, and refuses the next.
        data = data[: self.free_bytes] if self.free_bytes else data
        self._do(Write(self._handles[descriptor].name, data))
        self.free_bytes -= len(data)
        return len(data)

    def chown(self, descriptor: int, uid: int, gid: int) -> None:
        handle = self._handles[descriptor]
        is_folder = isinstance(handle.node, _Folder)
        self._do(ChownDirectory(handle.name, uid, gid) if is_folder else Chown(handle.name, uid, gid))

    def chown_name(self, directory: int, name: str, uid: int, gid: int) -> None:
        self._do(ChownName(self._handles[directory].name, name, uid, gid))

    def sync(self, descriptor: int) -> None:
        handle = self._handles[descriptor]
        self._do(SyncDirectory(handle.name) if isinstance(handle.node, _Folder) else SyncFile(handle.name))

    def close(self, descriptor: int) -> None:
        self._locks = {node: holder for node, holder in self._locks.items() if holder != descriptor}
        del self._handles[descriptor]

    def rename(self, directory: int, old: str, new: str) -> None:
        self._do(Rename(self._handles[directory].name, old, new))

    def rename_new(self, directory: int, old: str, new: str) -> None:
        self._do(Rename(self._handles[directory].name, old, new, replace=False))

    def unlink(self, directory: int, name: str) -> None:
        self._do(Unlink(self._handles[directory].name, name))

    def stat(self, directory: int, name: str) -> os.stat_result:
        return _stat(self._name(directory, name))

    def stat_open(self, descriptor: int) -> os.stat_result:
        return _stat(self._handles[descriptor].node)

    def names(self, directory: int) -> list[str]:
        node = self._handles[directory].node
        assert isinstance(node, _Folder)
        return list(node.names)

    def space(self, directory: int) -> Space:
        return Space(self.free_bytes, self.read_only)

    def try_lock(self, directory: int) -> bool:
        holder = self._locks.setdefault(id(self._handles[directory].node), directory)
        return holder == directory

    # How

    def _do(self, change: Change) -> None:
        if self.power_lost_before is not None and len(self.trace) >= self.power_lost_before:
            raise PowerLost
        if self.read_only and not isinstance(change, SyncFile | SyncDirectory | SyncParent | Mark):
            # As the kernel does: before it looks whether there is such a name.
            _no(errno.EROFS, str(change))
        if isinstance(change, Unlink):
            _in(self._folder(change.directory), change.name)
        if self._changes in self._faults:
            self._changes += 1
            _no(self._faults[self._changes - 1], str(change))
        if self.free_bytes <= 0 and isinstance(change, Create | Write | MakeDirectory):
            _no(errno.ENOSPC, str(change))
        self._apply(change)
        self.trace.append(change)
        self._changes += 1

    def _apply(self, change: Change) -> None:
        match change:
            case MakeDirectory(path):
                folder, name = self._folder(os.path.dirname(path)), os.path.basename(path)
                self._put(folder, name, _Folder(0o700, (0, 0), (0, 0)))
            case SyncParent(path):
                self._folder(os.path.dirname(path)).sync()
            case Create(directory, name):
                node = _File(0o600, (0, 0), (0, 0))
                self._put(self._folder(directory), name, node)
                self._made[name] = node
            case Write(file, data):
                self._file(file).data += data
            case Chown(file, uid, gid):
                self._file(file).owner = (uid, gid)
            case ChownDirectory(directory, uid, gid):
                self._folder(directory).owner = (uid, gid)
            case ChownName(directory, name, uid, gid):
                folder = self._folder(directory)
                node = _in(folder, name)
                node.owner = (uid, gid)
                folder.given_away.append(node)
            case SyncFile(file):
                written = self._file(file)
                written.safe, written.safe_owner = written.data, written.owner
            case SyncDirectory(directory):
                self._folder(directory).sync()
            case Rename(directory, old, new, replace):
                folder = self._folder(directory)
                node = _in(folder, old)
                if not replace and new in folder.names:
                    _no(errno.EEXIST, new)
                del folder.names[old]
                folder.names[new] = node
                folder.pending.append((old, None, new))
            case Unlink(directory, name):
                folder = self._folder(directory)
                if isinstance(_in(folder, name), _Folder):
                    _no(errno.EISDIR, name)
                del folder.names[name]
                folder.pending.append((name, None, None))
            case Mark():
                pass

    def _put(self, folder: _Folder, name: str, node: _Node) -> None:
        if name in folder.names:
            _no(errno.EEXIST, name)
        folder.names[name] = node
        folder.pending.append((None, node, name))

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for part in path.strip("/").split("/"):
            if part:
                node = node.names.get(part) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: str) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            _no(errno.ENOENT if node is None else errno.ENOTDIR, path)
        return node

    def _file(self, name: str) -> _File:
        node = self._made.get(name)
        if not isinstance(node, _File):
            _no(errno.EBADF, name)
        return node

    def _name(self, directory: int, name: str) -> _Node:
        folder = self._handles[directory].node
        assert isinstance(folder, _Folder)
        return _in(folder, name)

    def _handle(self, node: _Node, name: str) -> int:
        self._next_handle += 1
        self._handles[self._next_handle] = _Handle(node, name)
        return self._next_handle


def _in(folder: _Folder, name: str) -> _Node:
    return folder.names[name] if name in folder.names else _no(errno.ENOENT, name)


def _alive(image: Image) -> _Node:
    match image:
        case File(data, mode, owner):
            return _File(mode, owner, owner, data, data)
        case Link(_, _, owner):
            return _Link(image, owner, owner)
        case Folder(names, mode, owner):
            nodes = {name: _alive(child) for name, child in names}
            return _Folder(mode, owner, owner, nodes, dict(nodes))


def _now(node: _Node) -> Image:
    match node:
        case _File():
            return File(node.data, node.mode, node.owner)
        case _Link():
            return Link(node.image.target, node.image.mode, node.owner)
        case _Folder():
            return Folder.of({name: _now(child) for name, child in node.names.items()}, node.mode, node.owner)


_FORMATS = {_File: stat.S_IFREG, _Link: stat.S_IFLNK, _Folder: stat.S_IFDIR}


def _stat(node: _Node) -> os.stat_result:
    mode = node.image.mode if isinstance(node, _Link) else node.mode
    size = len(node.data) if isinstance(node, _File) else 0
    uid, gid = node.owner
    # The address of a node is as good as the number of an inode, and tells one file of a name from the next.
    fields = (_FORMATS[type(node)] | mode, id(node), 0, 1, uid, gid, size, 0, 0, 0)
    return os.stat_result(fields, {"st_mtime_ns": 0})


def _no(code: int, what: str) -> NoReturn:
    raise OSError(code, os.strerror(code), what)
