"""`Link` over the data channel of a software TPM: `swtpm socket --server type=unixio,path=…`."""

import socket
import time

from bcd.adapters.tpm.link import BOUND_S, Late
from bcd.protocol.tpm2.commands import HEADER_BYTES, MAX_ANSWER_BYTES


class SocketLink:
    """The Unix socket at `path`, connected at the first command."""

    def __init__(self, path: str, bound_s: float = BOUND_S) -> None:
        self._path = path
        self._bound_s = bound_s
        self._socket: socket.socket | None = None

    def transmit(self, command: bytes) -> bytes:
        until = time.monotonic() + self._bound_s
        try:
            connected = self._connected(until)
            connected.sendall(command)
            reply = self._take(connected, b"", HEADER_BYTES, until)
            # The stream has no records: the header says where the reply ends.
            size_bytes = min(int.from_bytes(reply[2:6]), MAX_ANSWER_BYTES)
            return self._take(connected, reply, size_bytes, until)
        except TimeoutError:
            # A late reply goes to nobody.
            self.close()
            raise Late from None
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _connected(self, until: float) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            self._socket.settimeout(_left(until))
            self._socket.connect(self._path)
        return self._socket

    def _take(self, connected: socket.socket, have: bytes, size_bytes: int, until: float) -> bytes:
        """`have` and what follows, up to `size_bytes`; fewer when the other side ends."""
        while len(have) < size_bytes:
            connected.settimeout(_left(until))
            more = connected.recv(size_bytes - len(have))
            if not more:
                self.close()
                break
            have += more
        return have


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
