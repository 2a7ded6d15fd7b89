"""TLS as a proxy sees it that opens nothing: records, each with its header of 5 bytes (RFC 8446, 5.1)."""

import socket
from contextlib import suppress

# In TLS 1.3 a client's first record of this kind is its Finished: the end of the handshake.
APPLICATION_DATA = 0x17
_HEADER_BYTES = 5


def record(source: socket.socket) -> bytes:
    """The next record, whole; empty at the end of the connection."""
    head = _exactly(source, _HEADER_BYTES)
    return head + _exactly(source, int.from_bytes(head[3:5])) if len(head) == _HEADER_BYTES else b""


def sent(target: socket.socket, data: bytes) -> bool:
    """False when the connection is gone."""
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def end(connection: socket.socket) -> None:
    """Both ways, at once."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            part = source.recv(count - len(data))
        except OSError:
            return b""
        if not part:
            return b""
        data += part
    return data
