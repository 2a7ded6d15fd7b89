"""Asking the server that runs in a directory, or doing the work here when none does."""

import socket
import time
from collections.abc import Callable

from bcd.controlplane.adapters.admin import codec
from bcd.controlplane.adapters.files.directory import SOCKET, Directory
from bcd.controlplane.domain.admin import Command
from bcd.controlplane.domain.failures import Internal, TryLater
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.store import StoreUnavailable

# How long a server may take to start, to stop, or to answer.
PATIENCE_S = 10.0
PAUSE_S = 0.05


class Client:
    """`run` is the work itself, on the store in the directory; it is called only while the directory's lock is held."""

    def __init__(self, directory: Directory, run: Callable[[Command], object], close: Callable[[], None]) -> None:
        self._directory = directory
        self._run = run
        self.close = close
        self._locked = False

    def __call__(self, command: Command) -> object:
        """The answer, from whoever may give it. TryLater when neither comes about in time.

        A connection that ends without an answer (the server was killed) is asked anew: revoking and deciding twice
        is once, and a token that was made and not shown is one nobody has."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self._locked or self._directory.try_lock():
                self._locked = True
                try:
                    return self._run(command)
                except StoreUnavailable as error:
                    raise TryLater(Message.STORE_UNAVAILABLE, why=error) from None
            answer = self._ask(codec.encode_command(command), deadline)
            if answer:
                return self._read(command, answer)
            if time.monotonic() >= deadline:
                raise TryLater(Message.LOCKED, path=self._directory.path, holder=self._directory.holder())
            # The server is starting or stopping, or another command works here.
            time.sleep(PAUSE_S)

    def _read(self, command: Command, answer: bytes) -> object:
        """The server may be older than this command, or newer: it goes on until somebody restarts it."""
        other = TryLater(Message.OTHER_VERSION, path=self._directory.path)
        try:
            return codec.decode_answer(command, answer)
        except codec.Malformed:
            raise other from None
        except Internal as failure:
            if failure.fields.get("what") == codec.Malformed.__name__:
                # It could not read the command.
                raise other from None
            raise

    def _ask(self, line: bytes, deadline: float) -> bytes:
        """The answer's line; empty when there is no server to answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                connection.connect(self._directory.inside(SOCKET))
                connection.sendall(line)
                with connection.makefile("rb") as stream:
                    answer = stream.readline()
            except TimeoutError:
                raise TryLater(Message.NO_ANSWER, path=self._directory.path) from None
            except OSError:
                return b""
        return answer if answer.endswith(b"\n") else b""
