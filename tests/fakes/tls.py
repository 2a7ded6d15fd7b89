"""Servers for the join port, in this process: gRPC over TLS 1.3, and servers that are no such thing."""

import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.domain.model.pins import Pin, Pins
from tests.fakes import pki

METHOD = "/bc.identity.v1.JoinService/Join"
# These servers are verified by gRPC, which has the real clock only.
REAL_NOW = datetime.now(UTC).replace(microsecond=0)
Handler = Callable[[bytes, grpc.ServicerContext], bytes]


def to_pem(*certificates: bytes) -> bytes:
    loaded = (x509.load_der_x509_certificate(der) for der in certificates)
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in loaded)


@dataclass(frozen=True)
class ServingCa:
    """A self-issued CA for servers."""

    key: ec.EllipticCurvePrivateKey
    name: str
    der: bytes

    @staticmethod
    def make(
        number: int,
        name: str = "serving CA",
        *,
        is_ca: bool = True,
        signer: ec.EllipticCurvePrivateKey | None = None,
        not_before: datetime = REAL_NOW - timedelta(days=10),
        not_after: datetime = REAL_NOW + timedelta(days=10),
    ) -> "ServingCa":
        key = pki.private_key(number)
        der = pki.certificate(
            subject=pki.common_name(name),
            issuer=pki.common_name(name),
            key=key.public_key(),
            signer=signer or key,
            extensions=[
                (x509.BasicConstraints(is_ca, None), True),
                (pki.key_usage("key_cert_sign", "crl_sign"), True),
                (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
            ],
            not_before=not_before,
            not_after=not_after,
            serial=number,
        )
        return ServingCa(key, name, der)

    @property
    def pins(self) -> Pins:
        return Pins((self.pin,))

    @property
    def pin(self) -> Pin:
        return Pin.of(pki.spki(self.key))

    @property
    def pem(self) -> bytes:
        return to_pem(self.der)

    def leaf(
        self,
        *,
        names: Sequence[str] = ("127.0.0.1", "::1", "localhost"),
        not_before: datetime = REAL_NOW - timedelta(days=1),
        not_after: datetime = REAL_NOW + timedelta(days=1),
    ) -> bytes:
        """A server certificate for LEAF_KEY, DER."""
        return pki.certificate(
            subject=pki.common_name("server"),
            issuer=pki.common_name(self.name),
            key=LEAF_KEY.public_key(),
            signer=self.key,
            extensions=[
                (x509.BasicConstraints(False, None), True),
                (x509.SubjectAlternativeName([_general_name(name) for name in names]), False),
            ],
            not_before=not_before,
            not_after=not_after,
        )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


LEAF_KEY = pki.private_key(3001)
LEAF_KEY_PEM = LEAF_KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


@contextlib.contextmanager
def grpc_server(handler: Handler, chain: Sequence[bytes], host: str = "127.0.0.1") -> Iterator[int]:
    """The port of a gRPC server that presents `chain` (DER, leaf first) and answers Join with `handler`'s bytes."""

    class Service(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            return grpc.unary_unary_rpc_method_handler(handler) if details.method == METHOD else None

    server = grpc.server(ThreadPoolExecutor(4), handlers=[Service()])
    port = server.add_secure_port(f"{host}:0", grpc.ssl_server_credentials([(LEAF_KEY_PEM, to_pem(*chain))]))
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that gives each connection to `serve`, and hangs it up afterwards."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                serve(connection)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        # Wakes the accept, which closing alone does not.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def tls_server(
    folder: Path, chain: bytes, maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> Callable[[socket.socket], None]:
    """For `raw_server`: a TLS server that presents `chain` (PEM) and says nothing."""
    (folder / "chain.pem").write_bytes(chain)
    (folder / "key.pem").write_bytes(LEAF_KEY_PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
    context.maximum_version = maximum
    context.set_alpn_protocols(["h2"])

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(1)

    return serve
