"""Port `CredentialSource` (specification, "Joining"; decisions 16 and 17)."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bcd.domain.model.failures import Message, Usage
from bcd.domain.model.tokens import MAX_TOKEN_BYTES, JoinToken, MalformedToken, parse_token
from bcd.ports.credential import CredentialSource
from bcd.ports.events import Events

ENVIRONMENT = "BCD_JOIN_TOKEN"
# One more than a token and its line end can be: enough to tell that it is too long.
_ENOUGH = MAX_TOKEN_BYTES + 3
_MODES = (0o600, 0o400)


class StandardInput:
    """The first line of standard input; the rest stays unread."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor

    def take(self) -> JoinToken:
        try:
            with _no_echo(self._descriptor) as terminal:
                # Only now: whoever answers at once is not to see the token either.
                if terminal:
                    sys.stderr.write("bcd join: waiting for the join token on this terminal (it is not shown)\n")
                    sys.stderr.flush()
                line = self._line()
        except OSError:
            # Standard input is closed, as under some supervisors.
            line = b""
        if not line:
            raise Usage(Message.NO_TOKEN)
        return _parse(line, "on standard input")

    def spent(self) -> None:
        """Nothing of standard input stays behind."""

    def _line(self) -> bytes:
        # Byte by byte: whatever follows the line belongs to somebody else.
        line = b""
        while len(line) < _ENOUGH and not line.endswith(b"\n"):
            byte = os.read(self._descriptor, 1)
            if not byte:
                break
            line += byte
        return line


class InheritedDescriptor:
    """What `BCD_JOIN_TOKEN` held, in a pipe from the process that took it out of its environment (decision 16)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def take(self) -> JoinToken:
        raw = b""
        try:
            while len(raw) < _ENOUGH and (part := os.read(self._descriptor, _ENOUGH)):
                raw += part
            os.close(self._descriptor)
        except OSError:
            raw = b""
        return _parse(raw, f"in {ENVIRONMENT}")

    def spent(self) -> None:
        """The pipe ends with the process."""


class TokenFile:
    """A regular file, 0600 or 0400, at most 4 KiB; deleted when the machine has an identity."""

    def __init__(self, path: str, data_dir: str, events: Events) -> None:
        self._path = path
        self._data_dir = data_dir
        self._events = events

    def take(self) -> JoinToken:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
            descriptor = os.open(self._path, flags)
        except OSError as error:
            link = error.errno == errno.ELOOP
            raise self._wrong("is a symbolic link, want a file" if link else _words(error)) from None
        try:
            fault = self._fault(os.fstat(descriptor))
            if fault:
                raise self._wrong(fault)
            raw = os.read(descriptor, _ENOUGH)
        except OSError as error:
            raise self._wrong(_words(error)) from None
        finally:
            os.close(descriptor)
        return _parse(raw, f"in {self._path}")

    def spent(self) -> None:
        try:
            found = os.lstat(self._path)
            if self._fault(found):
                # Not a token file by any rule: whatever it is, it is not ours to delete.
                self._events.warning("the token file was not deleted", path=self._path, why=self._fault(found))
                return
            os.unlink(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._events.warning("the token file could not be deleted", path=self._path, why=_words(error))

    def _fault(self, found: os.stat_result) -> str:
        """What keeps the file from being a token file, or nothing."""
        if not stat.S_ISREG(found.st_mode):
            return "is not a regular file"
        if stat.S_IMODE(found.st_mode) not in _MODES:
            return f"has mode {stat.S_IMODE(found.st_mode):04o}, want 0600 or 0400: chmod 0600 {self._path}"
        if found.st_size > MAX_TOKEN_BYTES:
            return f"is {found.st_size} bytes, want at most {MAX_TOKEN_BYTES}"
        try:
            # A key of ours passes every other rule, and would be deleted.
            if os.path.samefile(os.path.dirname(os.path.abspath(self._path)), self._data_dir):
                return "lies in the data directory, which is no place for a token"
        except OSError:
            return ""
        return ""

    def _wrong(self, why: str) -> Usage:
        # The token itself, typed where its file's name belongs, is not to be shown.
        path = self._path if "bcjt_" not in self._path else "(a name like a token's)"
        return Usage(Message.TOKEN_FILE, path=path, why=why.replace(self._path, path))


class Taken:
    """A token that was read already, by `source`."""

    def __init__(self, token: JoinToken, source: CredentialSource) -> None:
        self._token = token
        self._source = source

    def take(self) -> JoinToken:
        return self._token

    def spent(self) -> None:
        self._source.spent()


def _parse(raw: bytes, source: str) -> JoinToken:
    try:
        return parse_token(raw)
    except MalformedToken as error:
        raise Usage(Message.TOKEN_MALFORMED, source=source, why=error) from None


def _words(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()


@contextmanager
def _no_echo(descriptor: int) -> Iterator[bool]:
    """A token typed or pasted on a terminal does not stay on the screen. Yields whether it is one."""
    if not os.isatty(descriptor):
        yield False
        return
    import termios

    before = termios.tcgetattr(descriptor)
    quiet = termios.tcgetattr(descriptor)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
    try:
        yield True
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
