"""Port `Fs` on the local file system: every path is one name below one directory's descriptor."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from bcd.adapters.fs.errors import translate
from bcd.adapters.fs.holder import holder
from bcd.adapters.fs.syscalls import OsSyscalls, Syscalls, is_regular
from bcd.domain.model.datadir import Directory, Entry
from bcd.domain.model.failures import FixConfiguration, Message, TryLater
from bcd.ports.clock import Clock

TEMP_PREFIX = ".bcd-"
# How often a waiting writer looks whether the lock is free; flock itself has no time limit.
_LOCK_POLL_S = 0.05


@dataclass(frozen=True)
class Owner:
    """Whose the files are to be: the `[helper] user`, or None for whoever runs the command."""

    name: str
    uid: int
    gid: int


class LocalFs:
    """One directory; `path` is absolute. A descriptor is opened for each use, so a directory that was moved, remounted
    or made meanwhile is seen as it is; under the lock it is one descriptor throughout."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        owner: Owner | None = None,
        syscalls: Syscalls | None = None,
        random_name: Callable[[], str] = lambda: os.urandom(8).hex(),
    ) -> None:
        self._path = path
        self._clock = clock
        self._owner = owner
        self._sys = syscalls if syscalls is not None else OsSyscalls()
        self._random_name = random_name
        self._locked: int | None = None

    def look(self) -> Directory | None:
        with self._opened() as directory:
            if directory is None:
                return None
            found = self._sys.stat_open(directory)
            space = self._sys.space(directory)
            return Directory(self._path, stat.S_IMODE(found.st_mode), found.st_uid, space.free_bytes, space.read_only)

    def entries(self) -> tuple[Entry, ...]:
        with self._opened() as directory:
            if directory is None:
                return ()
            entries = (self._entry(directory, name) for name in sorted(self._sys.names(directory)))
            return tuple(entry for entry in entries if entry is not None)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        with self._opened(name) as directory:
            if directory is None:
                return None
            try:
                descriptor = self._sys.open(directory, name)
            except FileNotFoundError:
                return None
            try:
                if not is_regular(self._sys.stat_open(descriptor)):
                    raise FixConfiguration(Message.NOT_A_FILE, path=self._full(name))
                data = b""
                while len(data) <= limit_bytes:
                    part = self._sys.read(descriptor, limit_bytes + 1 - len(data))
                    if not part:
                        break
                    data += part
                return data
            finally:
                self._sys.close(descriptor)

    def write(self, name: str, data: bytes) -> None:
        with self._opened(name) as directory:
            if directory is None:
                self._none(name)
            temp = f"{TEMP_PREFIX}{name}.{self._random_name()}"
            try:
                # The data is on the disk before the name says so, and the name before anybody is told: without the
                # first a power cut leaves an empty file under the new name, without the second the old one.
                descriptor = self._sys.create(directory, temp)
                try:
                    if self._owner is not None:
                        self._sys.chown(descriptor, self._owner.uid, self._owner.gid)
                    rest = data
                    while rest:
                        rest = rest[self._sys.write(descriptor, rest) :]
                    self._sys.sync(descriptor)
                finally:
                    self._sys.close(descriptor)
                self._sys.rename(directory, temp, name)
            except OSError:
                # A full disk is no better for a half-written temporary file.
                self._drop(directory, temp)
                raise
            self._sys.sync(directory)

    def rename(self, old: str, new: str) -> None:
        _plain(new)
        with self._opened(old) as directory:
            if directory is None:
                self._none(old)
            self._sys.rename(directory, old, new)
            self._sys.sync(directory)

    def move_aside(self, old: str, new: str) -> str | None:
        _plain(new)
        with self._opened(old) as directory:
            if directory is None or self._entry(directory, old) is None:
                return None
            number = 0
            while True:
                name = f"{new}.{number}" if number else new
                try:
                    self._sys.rename_new(directory, old, name)
                except FileExistsError:
                    number += 1
                    continue
                self._sys.sync(directory)
                return name

    def remove(self, name: str) -> None:
        with self._opened(name) as directory:
            if directory is None:
                return
            try:
                self._sys.unlink(directory, name)
            except FileNotFoundError:
                return
            except OSError as error:
                # A read-only mount says so before it says that there is no such name.
                if error.errno == errno.EROFS and self._entry(directory, name) is None:
                    return
                raise
            self._sys.sync(directory)

    def hand_over(self, name: str) -> bool:
        with self._opened(*([name] if name else [])) as directory:
            if directory is None or self._owner is None:
                return False
            if not name:
                if self._sys.stat_open(directory).st_uid == self._owner.uid:
                    return False
                self._sys.chown(directory, self._owner.uid, self._owner.gid)
                self._sys.sync(directory)
                return True
            entry = self._entry(directory, name)
            if entry is None or entry.uid == self._owner.uid:
                return False
            # By name, not by descriptor: a link swapped in under the name is handed over itself, never its target.
            self._sys.chown_name(directory, name, self._owner.uid, self._owner.gid)
            self._sys.sync(directory)
            return True

    @contextmanager
    def lock(self, wait_s: float) -> Iterator[None]:
        directory = self._opened_for_lock()
        try:
            self._wait_for_lock(directory, wait_s)
            self._locked = directory
            self._settle(directory)
            yield
        finally:
            if self._locked == directory:
                self._locked = None
            # Closing the only descriptor of the open file is what gives a flock up.
            self._sys.close(directory)

    def _wait_for_lock(self, directory: int, wait_s: float) -> None:
        until = self._clock.boottime_s() + wait_s
        try:
            while not self._sys.try_lock(directory):
                if self._clock.boottime_s() >= until:
                    who = holder(self._sys.stat_open(directory)) or "another process"
                    raise TryLater(Message.LOCKED, path=self._path, holder=who)
                self._clock.wait(_LOCK_POLL_S)
        except OSError as error:
            # A network file system without locks, above all.
            raise self._failure(error, "", directory) from None

    def _opened_for_lock(self) -> int:
        try:
            try:
                return self._sys.open_directory(self._path)
            except FileNotFoundError:
                self._make_directory(self._path)
                return self._sys.open_directory(self._path)
        except OSError as error:
            raise self._failure(error, "") from None

    def _make_directory(self, path: str) -> None:
        try:
            self._sys.make_directory(path)
        except FileNotFoundError:
            self._make_directory(os.path.dirname(path))
            self._make_directory(path)
        except FileExistsError:
            # Somebody else was quicker.
            return

    def _settle(self, directory: int) -> None:
        """Finishes what a writer began that was killed; nobody else writes while the lock is held."""
        try:
            names = self._sys.names(directory)
            left = [name for name in names if name.startswith(TEMP_PREFIX)]
            for name in left:
                self._drop(directory, name)
            if len(left) == len(names):
                self._finish_making(directory)
            # A name it gave may be in memory only, and what follows relies on it: a request is not to be sent again
            # while a power cut could still take it away.
            self._sys.sync(directory)
        except OSError as error:
            raise self._failure(error, "", directory) from None

    def _finish_making(self, directory: int) -> None:
        """An empty directory is one that was just made, or whose making was cut off: nothing says which step of it."""
        path = self._path
        while (parent := os.path.dirname(path)) != path:
            try:
                self._sys.sync_parent(path)
            except PermissionError:
                # May not be read by this user, who therefore did not make anything in it.
                pass
            path = parent
        if self._owner is not None and self._sys.stat_open(directory).st_uid != self._owner.uid:
            self._sys.chown(directory, self._owner.uid, self._owner.gid)

    def _drop(self, directory: int, name: str) -> None:
        try:
            self._sys.unlink(directory, name)
        except OSError:
            # The next writer tries again; what matters is the failure that led here.
            return

    @contextmanager
    def _opened(self, name: str | None = None) -> Iterator[int | None]:
        """The directory's descriptor, None when there is none; system errors inside leave as failures."""
        if name is not None:
            _plain(name)
        directory, own = self._locked, False
        try:
            if directory is None:
                try:
                    directory, own = self._sys.open_directory(self._path), True
                except FileNotFoundError:
                    pass
            yield directory
        except OSError as error:
            raise self._failure(error, name or "", directory) from None
        finally:
            if own and directory is not None:
                self._sys.close(directory)

    def _entry(self, directory: int, name: str) -> Entry | None:
        try:
            found = self._sys.stat(directory, name)
        except FileNotFoundError:
            return None
        return Entry(
            name=name,
            regular=is_regular(found),
            mode=stat.S_IMODE(found.st_mode),
            uid=found.st_uid,
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
            inode=found.st_ino,
        )

    def _none(self, name: str) -> NoReturn:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self._full(name))

    def _full(self, name: str) -> str:
        return os.path.join(self._path, name) if name else self._path

    def _failure(self, error: OSError, name: str, directory: int | None = None) -> Exception:
        if directory is None and error.errno in (errno.ELOOP, errno.ENOTDIR):
            # The directory itself is a link or a file.
            return FixConfiguration(Message.NOT_A_DIRECTORY, path=self._path)
        try:
            free = self._sys.space(directory).free_bytes if directory is not None else None
        except OSError:
            free = None
        path = self._full(name)
        if error.errno == errno.EROFS:
            return TryLater(Message.READ_ONLY, path=self._path)
        return translate(error, path, free)


def _plain(name: str) -> None:
    if not name.isprintable() or "/" in name or name in {"", ".", ".."}:
        raise ValueError(f"not a plain name: {name!r}")
