"""The state's file: one process at a time, each change whole or not at all."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bcd.adapters.tpmsim.state import State
from bcd.protocol.tpm2.wire import Malformed, decode, encode


class NoState(ValueError):
    """The file is no software TPM's state; the text says why."""


class Held:
    """The state, while no other process has it."""

    def __init__(self, path: str, state: State) -> None:
        self._path = path
        self.state = state

    def write(self, state: State) -> None:
        """Durable, and whole after a crash."""
        _replace(self._path, encode(state))
        self.state = state


def create(path: str, state: State) -> None:
    """A new file of mode 0600. FileExistsError when there is something already, a symbolic link included."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(encode(state))
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


@contextmanager
def held(path: str) -> Iterator[Held]:
    """The state at `path`; waits for whoever has it. OSError as the system gave it, NoState for another file."""
    descriptor = _locked(path)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
        try:
            state = decode(State, content)
        except Malformed as error:
            raise NoState(f"no software TPM: {error}") from None
        yield Held(path, state)
    finally:
        os.close(descriptor)


def _locked(path: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NoState("not a regular file")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Who had it before may have put another file in its place.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _replace(path: str, content: bytes) -> None:
    # Only the lock's holder writes: one name is enough, and what a crash left there is overwritten.
    beside = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(beside)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
