"""Real file systems for a test: made, mounted, copied while mounted, and gone afterwards whatever happened."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNS = 0x00020000
# A journal needs 1024 blocks, and a file system that is copied fifty times should be small.
_IMAGE_BYTES = 8 << 20


def have_own_mounts() -> None:
    """This process gets mounts of its own: nothing it mounts is seen outside, nor left when it is killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    _run("mount", "--make-rprivate", "/")


def make_ext4(image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    # Nothing is left to the kernel to do later: what changes the image is what the test does.
    extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    _run("mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=1", "-m", "0", "-E", extended, str(image))


@contextmanager
def ext4(image: Path, at: Path) -> Iterator[Path]:
    """The file system in `image`, its journal replayed, mounted. It commits when it is asked to, not every 5 s."""
    with mounted(at, "-o", "loop,commit=300", str(image)):
        yield at


@contextmanager
def tmpfs(at: Path, size: str) -> Iterator[Path]:
    with mounted(at, "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs"):
        yield at


@contextmanager
def mounted(at: Path, *words: str) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    _run("mount", *words, str(at))
    try:
        yield
    finally:
        if subprocess.run(["umount", str(at)], capture_output=True, check=False).returncode != 0:
            _run("umount", "-l", str(at))


def read_only(at: Path) -> None:
    _run("mount", "-o", "remount,ro", str(at))


def writable(at: Path) -> None:
    _run("mount", "-o", "remount,rw", str(at))


def cut(image: Path, copy: Path) -> Path:
    """A copy of what has reached the block device by now: the disk as a power cut leaves it."""
    with image.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def sync(path: Path) -> None:
    """All of the file system at `path` reaches its device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(descriptor)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
