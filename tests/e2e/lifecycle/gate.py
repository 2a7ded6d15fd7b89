"""A TCP proxy before the gateway that can be shut, be silent, and stop one request or one answer on its way.

It knows as much of TLS as to see its records. Once the handshake is over, the answer to a renewal is the only large one
from the gateway."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_APPLICATION_DATA = 0x17
# A Welcome with its bundle is smaller, a chain larger.
_LARGE_BYTES = 900
Hook = Callable[[], bool]


class Gate:
    """`on_answer` is called once, in the connection's own thread, when the answer to a renewal is about to pass: True
    lets it, False ends the connection. To be set when a session is up: TLS tickets are as large. `came` is set by every
    connection."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.on_answer: Hook | None = None
        self.is_shut = False
        self.is_silent = False
        self.came = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """From now on every connection ends at once, those that are open too."""
        self.is_shut = True
        self.drop()

    def open(self) -> None:
        self.is_shut = self.is_silent = False

    def drop(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            _end(connection)

    def close(self) -> None:
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.came.set()
            if self.is_shut:
                _end(client)
                continue
            with self._lock:
                self._connections.append(client)
            if self.is_silent:
                continue
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                _end(client)
                continue
            server.settimeout(None)
            with self._lock:
                self._connections.append(server)
            shaken = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, shaken), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client, shaken), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, shaken: threading.Event) -> None:
        while record := _record(client):
            # In TLS 1.3 the client's first record of this kind ends the handshake.
            if record[0] == _APPLICATION_DATA:
                shaken.set()
            if not _sent(server, record):
                break
        _end(server)
        _end(client)

    def _answers(self, server: socket.socket, client: socket.socket, shaken: threading.Event) -> None:
        while record := _record(server):
            hook = self.on_answer
            if hook is not None and shaken.is_set() and len(record) > _LARGE_BYTES:
                self.on_answer = None
                if not hook():
                    break
            if not _sent(client, record):
                break
        _end(client)
        _end(server)


def _sent(target: socket.socket, record: bytes) -> bool:
    try:
        target.sendall(record)
    except OSError:
        return False
    return True


def _record(source: socket.socket) -> bytes:
    head = _exactly(source, 5)
    return head + _exactly(source, int.from_bytes(head[3:5], "big")) if len(head) == 5 else b""


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


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
