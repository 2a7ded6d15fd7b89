"""The gateway port itself: who gets in, what is said on the wire, and how it ends."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.adapters.grpc.answers import reason
from bcd.adapters.grpc.channel import OPTIONS
from bcd.controlplane.adapters.grpc.server import _OPTIONS as SERVER_OPTIONS
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2_grpc as services
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from bcd.protocol.pki import csr, ecdsa, join_response
from bcd.protocol.pki.renew_pop import make_renew_pop
from tests.e2e.gateway.test_copies import gateway
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine, Site, key_pem, new_key
from tests.fakes.controlplane.member import Member
from tests.fakes.ending import seconds_to_end
from tests.fakes.plane import Plane

PATIENCE_S = 20.0


@dataclass
class Client:
    """A node made of gRPC alone: one pair, one channel."""

    plane: Plane
    chain: tuple[bytes, ...]
    key: ec.EllipticCurvePrivateKey

    @staticmethod
    def joined(plane: Plane) -> Client:
        site, machine = Site(plane.config.parent), Machine()
        reply = site.join(machine, plane.token())
        opened: join_response.JoinResponse = machine.check(reply.issued.SerializeToString(), site.signing_pin)
        return Client(plane, opened.chain, machine.key)

    def stub(self) -> Any:
        host, port = gateway(self.plane)
        ca = (self.plane.config.parent / "serving-ca.pem").read_bytes()
        pems = (x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM) for der in self.chain)
        credentials = grpc.ssl_channel_credentials(ca, key_pem(self.key), b"".join(pems))
        return services.GatewayStub(grpc.secure_channel(f"{host}:{port}", credentials, OPTIONS))  # type: ignore[no-untyped-call]

    def renew(self, key: ec.EllipticCurvePrivateKey | None = None) -> Client:
        key = key or new_key()
        request = csr.make_csr(key)
        leaf = x509.load_der_x509_certificate(self.chain[0])
        proof = make_renew_pop(
            request,
            self.chain[0],
            leaf.not_valid_before_utc,
            ecdsa.spki_of(self.key.public_key()),
            lambda message: ecdsa.sign(self.key, message),
        )
        asked = pb.RenewRequest(csr=request, chain=self.chain, renew_pop=proof)
        reply = self.stub().Renew(asked, timeout=PATIENCE_S)
        response = statements_pb2.RenewResponse.FromString(reply.issued.payload)
        return Client(self.plane, tuple(response.chain), key)

    def session(self) -> tuple[Any, queue.SimpleQueue[Any]]:
        """The call, and what comes: messages, then the RpcError or None that ends it."""
        over = threading.Event()

        def said() -> Any:
            yield pb.NodeMessage(hello=pb.Hello(journal_id="0a" * 16, node_key="file"))
            over.wait(PATIENCE_S)

        call, heard = self.stub().Session(said()), queue.SimpleQueue[Any]()

        def listen() -> None:
            try:
                for message in call:
                    heard.put(message)
                heard.put(None)
            except grpc.RpcError as error:
                heard.put(error)
            over.set()

        threading.Thread(target=listen, daemon=True).start()
        return call, heard

    def hello(self) -> Any:
        """The first thing heard."""
        call, heard = self.session()
        try:
            return heard.get(timeout=PATIENCE_S)
        finally:
            call.cancel()


def refused(error: Any) -> tuple[grpc.StatusCode, str]:
    """A status and the reason of its ErrorInfo."""
    assert isinstance(error, grpc.RpcError), error
    call: Any = error
    return call.code(), reason(dict(call.trailing_metadata() or ()))


def s_client(plane: Plane, *words: str) -> str:
    host, port = gateway(plane)
    return subprocess.run(
        ["openssl", "s_client", "-connect", f"{host}:{port}", "-alpn", "h2", *words],
        input="",
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=20,
    ).stdout


def test_it_shows_its_ca_and_speaks_tls_13_alone(plane: Plane) -> None:
    shown = s_client(plane, "-showcerts")
    assert shown.count("BEGIN CERTIFICATE") == 2
    assert (plane.config.parent / "serving-ca.pem").read_text().strip() in shown
    assert "TLSv1.3" in shown
    assert "Cipher is (NONE)" in s_client(plane, "-tls1_2")


def test_who_has_no_certificate_of_a_node_gets_no_word(plane: Plane) -> None:
    member = Client.joined(plane)
    own = MemoryControlPlane()
    foreign = Member.joined(own)
    for other in (
        Client(plane, (foreign.leaf, own.issuing.der), foreign.key),
        Client(plane, member.chain[:1], member.key),
    ):
        assert refused(other.hello()) == (grpc.StatusCode.UNAVAILABLE, "")
    host, port = gateway(plane)
    ca = (plane.config.parent / "serving-ca.pem").read_bytes()
    bare = services.GatewayStub(grpc.secure_channel(f"{host}:{port}", grpc.ssl_channel_credentials(ca), OPTIONS))  # type: ignore[no-untyped-call]
    with pytest.raises(grpc.RpcError) as caught:
        bare.Renew(pb.RenewRequest(), timeout=PATIENCE_S)
    assert refused(caught.value) == (grpc.StatusCode.UNAVAILABLE, "")


def test_what_is_refused_says_on_the_wire_whether_it_is_final(own_plane: Plane) -> None:
    plane = own_plane
    first = Client.joined(plane)
    assert first.hello().WhichOneof("message") == "welcome"
    with pytest.raises(grpc.RpcError) as caught:
        first.renew(first.key)
    assert refused(caught.value) == (grpc.StatusCode.FAILED_PRECONDITION, "")
    with pytest.raises(grpc.RpcError) as caught:
        first.stub().Renew(pb.RenewRequest(), timeout=PATIENCE_S)
    assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "")
    sibling, second = first.renew(), first.renew()
    assert second.hello().WhichOneof("message") == "welcome"
    assert refused(first.hello()) == (grpc.StatusCode.ABORTED, "CERTIFICATE_RETIRED")
    assert refused(sibling.hello()) == (grpc.StatusCode.UNAUTHENTICATED, "CERTIFICATE_REVOKED")
    for one in (first, sibling, second):
        with pytest.raises(grpc.RpcError) as caught:
            one.renew()
        assert refused(caught.value) == (grpc.StatusCode.UNAUTHENTICATED, "CERTIFICATE_REVOKED")
        assert caught.value.details() == "clone-suspected"  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_it_ends_within_a_second_and_its_sessions_hear_of_it(own_plane: Plane, how: signal.Signals) -> None:
    members = [Client.joined(own_plane) for _ in range(3)]
    heard = [member.session()[1] for member in members]
    for one in heard:
        assert one.get(timeout=PATIENCE_S).WhichOneof("message") == "welcome"
    assert own_plane.server is not None
    assert seconds_to_end(own_plane.server, how) < 1.0
    own_plane.stop()
    for one in heard:
        assert refused(one.get(timeout=PATIENCE_S)) == (grpc.StatusCode.UNAVAILABLE, "")


def test_the_pings_of_nodes_are_permitted() -> None:
    """As often as they come; a server that permits fewer ends the connection, and gRPC's default is one in 300 s."""
    permitted = dict(SERVER_OPTIONS)["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert permitted < int(dict(OPTIONS)["grpc.keepalive_time_ms"])
