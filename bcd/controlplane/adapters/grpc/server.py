"""A listening port of grpc.aio: TLS, with client certificates or without; `process.prepare` makes it TLS 1.3 alone."""

from collections.abc import Callable

import grpc

from bcd.controlplane.domain.failures import TryLater
from bcd.controlplane.domain.hosts import Endpoint
from bcd.controlplane.domain.messages import Message

MAX_MESSAGE_BYTES = 1 << 20

# The serving key and chain, PEM both.
Certified = tuple[bytes, bytes]

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # With it a second server would get every other connection of the first instead of an error.
    ("grpc.so_reuseport", 0),
    ("grpc.max_connection_idle_ms", 60_000),
    # A session is silent for hours: nodes ping every 20 s, which without these ends a connection (too_many_pings),
    # and a node that has gone without a word is found out by our own ping.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)


class GrpcPort:
    """`ports.serving.Door`. `certified` is asked at each handshake; `name` is the option that chooses the address.

    With `client_roots` (PEM) every client must present a certificate under one of them."""

    def __init__(
        self,
        name: str,
        handlers: tuple[grpc.GenericRpcHandler, ...],
        certified: Callable[[], Certified],
        client_roots: bytes | None = None,
    ) -> None:
        self._name = name
        self._certified = certified
        self._client_roots = client_roots
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers(handlers)

    def bind(self, wanted: Endpoint) -> Endpoint:
        try:
            port = self._server.add_secure_port(str(wanted), credentials(self._certified, self._client_roots))
        except RuntimeError:
            port = 0
        if port == 0:
            raise TryLater(Message.CANNOT_LISTEN, address=wanted, port=self._name)
        return Endpoint(wanted.host, port)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        await self._server.stop(grace_s)


def credentials(certified: Callable[[], Certified], client_roots: bytes | None = None) -> grpc.ServerCredentials:
    """Server credentials that follow `certified`: the renewed serving certificate needs no restart."""
    if client_roots == b"":
        raise ValueError("no client roots")
    held = certified()

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal held
        now = certified()
        if now == held:
            return None
        held = now
        return grpc.ssl_server_certificate_configuration([now], client_roots)

    return grpc.dynamic_ssl_server_credentials(
        grpc.ssl_server_certificate_configuration([held], client_roots),
        fetch,  # type: ignore[arg-type]  # None, "no change", is what gRPC documents; its type stubs forgot it
        require_client_authentication=client_roots is not None,
    )
