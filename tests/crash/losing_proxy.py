"""A TCP proxy before a TLS server that loses the answer: the request reaches the server, the answer not the client."""

import socket
import threading
from collections.abc import Callable

from tests.fakes import tls_records

# TLS session tickets and HTTP/2 settings are far smaller, a join reply with its chain and bundle far larger.
_ANSWER_BYTES = 700


class LosingProxy:
    """Listens on `port`; closes the connection, and calls `on_lost`, in place of the first large record that the server
    sends once the handshake is over, and once `armed` (tickets of a client with a certificate are large too)."""

    def __init__(self, server: tuple[str, int], on_lost: Callable[[], None], armed: bool = True) -> None:
        self._server = server
        self._on_lost = on_lost
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lost = threading.Event()
        self.armed = threading.Event()
        if armed:
            self.armed.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # Closing alone would leave the port to the thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.lost.is_set():
                client.close()
                continue
            server = socket.create_connection(self._server)
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

    def _answers(self, server: socket.socket, client: socket.socket, shaken: threading.Event) -> None:
        while record := tls_records.record(server):
            if (
                self.armed.is_set()
                and shaken.is_set()
                and record[0] == tls_records.APPLICATION_DATA
                and len(record) > _ANSWER_BYTES
            ):
                self.lost.set()
                self._on_lost()
                break
            if not tls_records.sent(client, record):
                break
        tls_records.end(client)
        tls_records.end(server)
