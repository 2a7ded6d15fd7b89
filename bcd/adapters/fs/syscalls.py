"""The system calls the local file system adapter makes, one method each.

Everything that changes a directory goes through here and nothing else does, so that a test can stop the world between
any two of them: the memory disk of the tests is another implementation.
"""

import errno
import fcntl
import os
import stat
from dataclasses import dataclass
from typing import Protocol

_RENAME_NOREPLACE = 1


@dataclass(frozen=True)
class Space:
    """`statvfs`: what an unprivileged writer may still use, and whether the mount is read-only."""

    free_bytes: int
    read_only: bool


class Syscalls(Protocol):
    """Raises OSError as the system does. A `directory` is the descriptor of an open one, `name` plain and in it; no
    link is ever followed. Only what `sync` and `sync_parent` were called for is durable."""

    def open_directory(self, path: str) -> int:
        """The descriptor of the directory at `path`; ENOTDIR for a link to one."""
        ...

    def make_directory(self, path: str) -> None:
        """One directory, 0700."""
        ...

    def sync_parent(self, path: str) -> None:
        """fsync of the directory that `path` stands in."""
        ...

    def create(self, directory: int, name: str) -> int:
        """A descriptor to write to a new file, 0600 less the umask; EEXIST when there is a `name`."""
        ...

    def open(self, directory: int, name: str) -> int:
        """A descriptor to read from, also of a pipe or a device, which it does not wait for; ELOOP for a link."""
        ...

    def read(self, descriptor: int, limit: int) -> bytes:
        """At most `limit` bytes; none at the end."""
        ...

    def write(self, descriptor: int, data: bytes) -> int:
        """How many bytes were taken."""
        ...

    def chown(self, descriptor: int, uid: int, gid: int) -> None:
        """Of an open file, so that nothing else can be meant."""
        ...

    def chown_name(self, directory: int, name: str, uid: int, gid: int) -> None:
        """Of `name` itself, a link included."""
        ...

    def sync(self, descriptor: int) -> None:
        """fsync, of a file or a directory."""
        ...

    def close(self, descriptor: int) -> None:
        """Lets go of it, and of a lock on it."""
        ...

    def rename(self, directory: int, old: str, new: str) -> None:
        """Replaces a file called `new`."""
        ...

    def rename_new(self, directory: int, old: str, new: str) -> None:
        """EEXIST when there is a `new`."""
        ...

    def unlink(self, directory: int, name: str) -> None:
        """`name` is gone; ENOENT when it was."""
        ...

    def stat(self, directory: int, name: str) -> os.stat_result:
        """Of `name` itself, a link included."""
        ...

    def stat_open(self, descriptor: int) -> os.stat_result:
        """Of an open file or directory."""
        ...

    def names(self, directory: int) -> list[str]:
        """All but . and .., in no order."""
        ...

    def space(self, directory: int) -> Space:
        """What the file system it is on has left."""
        ...

    def try_lock(self, directory: int) -> bool:
        """flock, exclusive, on the open directory; whether it was to be had at once."""
        ...


class OsSyscalls:
    """The running kernel's."""

    def open_directory(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def sync_parent(self, path: str) -> None:
        parent = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)

    def create(self, directory: int, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=directory)

    def open(self, directory: int, name: str) -> int:
        # O_NONBLOCK: a FIFO planted under the name must not hold a command for ever.
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)

    def read(self, descriptor: int, limit: int) -> bytes:
        return os.read(descriptor, limit)

    def write(self, descriptor: int, data: bytes) -> int:
        return os.write(descriptor, data)

    def chown(self, descriptor: int, uid: int, gid: int) -> None:
        os.fchown(descriptor, uid, gid)

    def chown_name(self, directory: int, name: str, uid: int, gid: int) -> None:
        os.chown(name, uid, gid, dir_fd=directory, follow_symlinks=False)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, directory: int, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)

    def rename_new(self, directory: int, old: str, new: str) -> None:
        """renameat2 with RENAME_NOREPLACE, which Python does not offer; where a file system has no such flag the
        name is looked at first, which the directory's lock makes enough."""
        # Only a move aside needs it, and status starts faster without.
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.renameat2(directory, os.fsencode(old), directory, os.fsencode(new), _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code), old)
        try:
            self.stat(directory, new)
        except FileNotFoundError:
            self.rename(directory, old, new)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)

    def unlink(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)

    def stat(self, directory: int, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def stat_open(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor)

    def names(self, directory: int) -> list[str]:
        return os.listdir(directory)

    def space(self, directory: int) -> Space:
        found = os.fstatvfs(directory)
        return Space(found.f_bavail * found.f_frsize, bool(found.f_flag & os.ST_RDONLY))

    def try_lock(self, directory: int) -> bool:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_regular(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode)
