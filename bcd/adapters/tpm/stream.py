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
            return self._reply(connected, until)
        except TimeoutError:
            # A late reply goes to nobody.
            self.close()
            raise Late from None
        except BaseException:
            # Ctrl-C, too: the reply that is still to come would be taken for that to the flush that follows.
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

    def _reply(self, connected: socket.socket, until: float) -> bytes:
        """What comes, up to the end that the header says, and what came with it; less when the other side ends."""
        reply = b""
        # The stream has no records.
        size_bytes = HEADER_BYTES
        while len(reply) < size_bytes:
            connected.settimeout(_left(until))
            more = connected.recv(MAX_ANSWER_BYTES - len(reply))
            if not more:
                self.close()
                break
            reply += more
            if len(reply) >= HEADER_BYTES:
                size_bytes = min(int.from_bytes(reply[2:6]), MAX_ANSWER_BYTES)
        return reply


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
