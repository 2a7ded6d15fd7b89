"""`GET /.well-known/bc-identity`: what a machine without a configuration needs, once it knows the serving CA's pin.

Everything in it is public, and none of it is to be believed for itself: a node checks each key against its own pin."""

import asyncio
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bcd.controlplane.adapters.grpc.server import Certified
from bcd.controlplane.domain.failures import TryLater
from bcd.controlplane.domain.hosts import Endpoint
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.log import Log

PATH = "/.well-known/bc-identity"
# A client that opens a connection and says nothing holds one thread this long.
READ_WITHIN_S = 10.0


class WellKnownPort:
    """`ports.serving.Door` for the one document, over TLS 1.3. `certified` is asked once for each connection."""

    def __init__(self, name: str, document: Callable[[], bytes], certified: Callable[[], Certified], log: Log) -> None:
        self._name = name
        self._document = document
        self._certified = certified
        self._log = log
        self._server: _Server | None = None

    def bind(self, wanted: Endpoint) -> Endpoint:
        try:
            self._server = _Server(wanted, self._document, self._certified, self._log)
        except OSError:
            raise TryLater(Message.CANNOT_LISTEN, address=wanted, port=self._name) from None
        return Endpoint(wanted.host, self._server.server_address[1])

    async def start(self) -> None:
        if self._server is not None:
            threading.Thread(target=self._server.serve_forever, args=(0.1,), name="well-known", daemon=True).start()

    async def stop(self, _: float) -> None:
        if self._server is not None:
            await asyncio.to_thread(self._server.shutdown)
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, wanted: Endpoint, document: Callable[[], bytes], certified: Callable[[], Certified], log: Log
    ) -> None:
        self.document = document
        self.certified = certified
        self.log = log
        # "::" takes IPv4 as well, as gRPC's does.
        self.address_family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
        super().__init__((wanted.host, wanted.port), _Handler)

    def finish_request(self, request: object, client_address: object) -> None:
        """On the connection's own thread: a handshake that never ends holds up nobody else."""
        context = _context(self.certified())
        try:
            request.settimeout(READ_WITHIN_S)  # type: ignore[attr-defined]
            with context.wrap_socket(request, server_side=True) as secure:  # type: ignore[arg-type]
                _Handler(secure, client_address, self)
        except (OSError, ssl.SSLError):
            # A scanner, or a client without TLS 1.3: its own fault, and it knows.
            return

    def handle_error(self, _: object, client_address: object) -> None:
        self.log.warning("a request for the well-known document failed", source=str(client_address))


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "bcd-controlplane"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a line for each."""

    def _answer(self, *, body: bool) -> None:
        if self.path != PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        document = self.server.document()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        if body:
            self.wfile.write(document)
        self.close_connection = True


def _context(certified: Certified) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Python's ssl loads keys from files alone; this one is gone again, unlinked, before anybody else could open it.
    key, chain = certified
    with tempfile.TemporaryFile() as file:
        file.write(key + chain)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context
