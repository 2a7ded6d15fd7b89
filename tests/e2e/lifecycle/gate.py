"""A TCP proxy before the gateway that can be shut, be silent, and stop one request or one answer on its way.

It knows as much of TLS as to see its records. Once the handshake is over, the answer to a renewal is the only large one
from the gateway."""

import socket
import threading
from collections.abc import Callable

from tests.fakes import tls_records

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
            tls_records.end(connection)

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
                tls_records.end(client)
                continue
            with self._lock:
                self._connections.append(client)
            if self.is_silent:
                continue
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                tls_records.end(client)
                continue
            server.settimeout(None)
            with self._lock:
                self._connections.append(server)
            shaken = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, shaken), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client, shaken), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, shaken: threading.Event) -> None:
        while record := tls_records.record(client):
            if record[0] == tls_records.APPLICATION_DATA:
                shaken.set()
            if not tls_records.sent(server, record):
                break
        tls_records.end(server)
        tls_records.end(client)

    def _answers(self, server: socket.socket, client: socket.socket, shaken: threading.Event) -> None:
        while record := tls_records.record(server):
            hook = self.on_answer
            if hook is not None and shaken.is_set() and len(record) > _LARGE_BYTES:
                self.on_answer = None
                if not hook():
                    break
            if not tls_records.sent(client, record):
                break
        tls_records.end(client)
        tls_records.end(server)
