"""Files that are there whole or not at all, and private from birth (decision 2)."""

import os
import secrets


def write(directory_fd: int, name: str, data: bytes) -> None:
    """`name` in the directory holds `data`, mode 0600, durable on return; after a crash the old content or the new."""
    temporary = f".cp-{name}.{secrets.token_hex(6)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=directory_fd)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except BaseException:
        os.unlink(temporary, dir_fd=directory_fd)
        raise
    os.fsync(directory_fd)


def remove_leftovers(directory_fd: int) -> None:
    """Removes what a killed writer left; only under the directory's lock."""
    for name in os.listdir(directory_fd):
        if name.startswith(".cp-"):
            os.unlink(name, dir_fd=directory_fd)


def read(directory_fd: int, name: str, limit: int = 1 << 20) -> bytes | None:
    """The whole file, or None when there is none."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit)
