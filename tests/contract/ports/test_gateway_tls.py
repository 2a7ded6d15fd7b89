"""Which gateway a node talks to, and with which key: TLS as `Gateway` over gRPC does it."""

import contextlib
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from grpc import experimental

from bcd.adapters.grpc import pinned
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.grpc.signer import Signer
from bcd.adapters.host.clock import SystemClock
from bcd.adapters.keys.file import FileKey
from bcd.ports.gateway import Ended, Heard
from bcd.protocol.files.config import Address
from tests.contract.ports.gateway_rig import (
    HELLO,
    QUESTION,
    RENEWED,
    SOON_S,
    WELCOME,
    Ears,
    GrpcRig,
    Key,
    connected,
    over_grpc,
    renewal,
    settle,
)
from tests.fakes import pki, tls
from tests.fakes.gateway_server import NODE_ROOT, SERVING, Behaviour, gateway_server, node_pair
from tests.fakes.tls import ServingCa


@pytest.fixture(scope="module")
def shared() -> Iterator[GrpcRig]:
    with over_grpc() as rig:
        yield rig


def raises(message: bytes) -> bytes:
    raise OSError("the TPM is gone")


WRONG_KEYS = {
    "raises": (raises, "the node key does not sign: the TPM is gone"),
    "another key's": (FileKey(pki.OTHER_KEY).sign, "the node key's signature is not one of the certificate's key"),
    "of another message": (
        lambda message: FileKey(pki.NODE_KEY).sign(message + b"\0"),
        "the node key's signature is not one of the certificate's key",
    ),
    "not 64 bytes": (lambda message: b"\x01" * 63, "the node key's signature is not one of the certificate's key"),
    "nothing": (lambda message: b"", "the node key's signature is not one of the certificate's key"),
}


@pytest.mark.parametrize(("sign", "why"), WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_a_key_that_does_not_sign_right_is_told_as_that(
    shared: GrpcRig, sign: Callable[[bytes], bytes], why: str
) -> None:
    shared.says(WELCOME)
    shared.answers(RENEWED)
    ears = Ears()
    connection = shared.gateway.connect(node_pair(Key(sign)))
    assert not isinstance(connection, Ended)
    before = time.monotonic()
    connection.start(HELLO, ears)
    ended = ears.next()
    connection.close()
    assert isinstance(ended, Ended)
    assert ended.why.endswith(why)
    assert time.monotonic() - before < 5
    settle()


def test_why_a_signature_failed_is_known_before_grpc_hears_of_it() -> None:
    seen: queue.Queue[str] = queue.Queue()
    signer = Signer(node_pair(Key(raises)), lambda: None)
    algorithm = experimental.PrivateKeySignatureAlgorithm.ECDSA_SECP256R1_SHA256
    signer.sign(
        b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + bytes(32), algorithm, lambda _: seen.put(signer.trouble)
    )
    assert seen.get(timeout=SOON_S) == "the node key does not sign: the TPM is gone"
    settle()


def test_a_handshake_that_worked_takes_an_earlier_trouble_back() -> None:
    answers: queue.Queue[object] = queue.Queue()
    signs = [raises, FileKey(pki.NODE_KEY).sign]

    def first_fails(message: bytes) -> bytes:
        return signs.pop(0)(message)

    signer = Signer(node_pair(Key(first_fails)), lambda: None)
    algorithm = experimental.PrivateKeySignatureAlgorithm.ECDSA_SECP256R1_SHA256
    for _ in range(2):
        signer.sign(b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + bytes(32), algorithm, answers.put)
        answers.get(timeout=SOON_S)
    assert signer.trouble == ""
    settle()


def test_each_handshake_is_counted_once_with_the_keys_public_half() -> None:
    with over_grpc() as rig:
        rig.answers(RENEWED)
        for _ in range(3):
            with connected(rig) as connection:
                assert connection.renew(QUESTION) == RENEWED
                assert connection.renew(QUESTION) == RENEWED
        assert rig.signed == [pki.spki(pki.NODE_KEY)] * 3


def test_the_suite_a_grpc_server_takes_hashes_with_sha256_and_openssls_with_sha384(tmp_path: Path) -> None:
    """Both lengths of what is signed reach a peer that checks it: BoringSSL here, OpenSSL there."""
    lengths: list[int] = []

    def noting(message: bytes) -> bytes:
        lengths.append(len(message) - 98)
        return FileKey(pki.NODE_KEY).sign(message)

    with over_grpc() as rig:
        rig.pair = node_pair(Key(noting))
        assert renewal(rig, RENEWED) == RENEWED
    assert lengths == [32]
    (tmp_path / "chain.pem").write_bytes(tls.to_pem(SERVING.leaf(), SERVING.der))
    (tmp_path / "key.pem").write_bytes(tls.LEAF_KEY_PEM)
    (tmp_path / "root.pem").write_bytes(tls.to_pem(NODE_ROOT))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    context.load_verify_locations(tmp_path / "root.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["h2"])
    seen: queue.Queue[tuple[bytes | None, str]] = queue.Queue()

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            suite = secure.cipher()
            assert suite is not None
            if secure.getpeercert(True):
                seen.put((secure.getpeercert(True), suite[0]))

    pair = node_pair(Key(noting))
    ears = Ears()
    with tls.raw_server(serve) as port:
        connection = GrpcRig(port, Behaviour()).gateway.connect(pair)
        assert not isinstance(connection, Ended)
        with contextlib.closing(connection):
            connection.start(HELLO, ears)
            assert isinstance(ears.next(), Ended)
        assert seen.get(timeout=SOON_S) == (pair.leaf.der, "TLS_AES_256_GCM_SHA384")
    assert set(lengths) == {32, 48}
    settle()


def test_a_gateway_of_tls_1_2_is_told_as_one(tmp_path: Path) -> None:
    with tls.raw_server(
        tls.tls_server(tmp_path, tls.to_pem(SERVING.leaf(), SERVING.der), ssl.TLSVersion.TLSv1_2)
    ) as port:
        ended = GrpcRig(port, Behaviour()).gateway.connect(node_pair())
    assert isinstance(ended, Ended)
    assert "no TLS 1.3 there" in ended.why


def test_a_gateway_that_is_away_or_another_has_no_connection(shared: GrpcRig) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = GrpcRig(taken.getsockname()[1], Behaviour()).gateway.connect(shared.pair)
    assert isinstance(away, Ended)
    assert "connection refused" in away.why
    with gateway_server(Behaviour(), ServingCa.make(3102)) as port:
        another = GrpcRig(port, Behaviour()).gateway.connect(shared.pair)
    assert isinstance(another, Ended)
    assert another.why.startswith("serving CA pin mismatch: have sha256:")


def test_a_certificate_for_another_host_is_told_and_waited_out() -> None:
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour, names=("gateway.elsewhere.org",)) as port:
        rig = GrpcRig(port, behaviour)
        ended = first(rig)
    assert isinstance(ended, Ended)
    assert ended.why.endswith("the server's certificate is for another host name")


def first(rig: GrpcRig) -> Heard:
    """The first thing heard of a session."""
    ears = Ears()
    with connected(rig) as connection:
        connection.start(HELLO, ears)
        return ears.next()


def test_a_ca_that_was_reissued_with_the_same_key_is_found_at_the_second_dial() -> None:
    """The pin names a key. The certificate at hand does not verify the new server; the next look does."""
    renewed_ca = ServingCa.make(3101, name="serving CA, second edition")
    assert renewed_ca.pin == SERVING.pin
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour) as port:
        rig = GrpcRig(port, behaviour, ca_file=lambda: SERVING.pem)
        assert first(rig) == WELCOME
    with gateway_server(behaviour, renewed_ca, port=port):
        ended = first(rig)
        assert isinstance(ended, Ended)
        assert ended.why.endswith("the server's certificate is not by the pinned CA")
        assert first(rig) == WELCOME


def test_the_file_beside_the_configuration_serves_where_the_server_presents_no_ca() -> None:
    behaviour = Behaviour()
    behaviour.says(WELCOME)
    with gateway_server(behaviour, present_ca=False) as port:
        assert first(GrpcRig(port, behaviour, ca_file=lambda: SERVING.pem)) == WELCOME


def test_empty_roots_are_never_handed_to_grpc() -> None:
    """They would be the system's."""
    with pytest.raises(ValueError, match="no root certificate"):
        Signer(node_pair(), lambda: None).credentials(b"")


def test_a_connection_that_never_starts_and_200_that_do_leave_nothing_behind() -> None:
    with over_grpc() as rig:
        rig.says(WELCOME)

        def cycle() -> None:
            ears = Ears()
            with connected(rig) as connection:
                connection.start(HELLO, ears)
                assert ears.next() == WELCOME

        for _ in range(20):
            cycle()
        settle()
        threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            cycle()
            with connected(rig):
                pass
        settle()
        # gRPC lets go of a socket a moment after its channel, and its server's pool is as large as it was.
        deadline = time.monotonic() + SOON_S
        while len(os.listdir("/proc/self/fd")) > descriptors + 5 and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 5
        assert threading.active_count() <= threads + 2


def test_a_server_that_accepts_and_says_nothing_is_not_waited_for_long() -> None:
    hold = threading.Event()
    with tls.raw_server(lambda connection: hold.wait(SOON_S) and None) as port:
        roots = Roots(
            Address("127.0.0.1", port),
            pins=SERVING.pins,
            config_path="c",
            clock=SystemClock(),
            ca_file=lambda: None,
            timeout_s=0.2,
        )
        with pytest.raises(pinned.CannotProbe, match=r"no answer within 0\.2 s"):
            roots.find()
        hold.set()
