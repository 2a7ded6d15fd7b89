"""A join at servers that are none: another TLS, silence, nonsense."""

import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from bcd.domain.model.failures import FixConfiguration
from bcd.domain.model.joining import Answer, Issued
from tests.contract.ports.join_rig import CA, QUESTION, SOON_S, failed, served, transport
from tests.fakes import tls


def test_a_server_with_tls_1_2_alone_is_none(tmp_path: Path) -> None:
    chain = tls.to_pem(CA.leaf(), CA.der)
    with tls.raw_server(tls.tls_server(tmp_path, chain, ssl.TLSVersion.TLSv1_2)) as port:
        assert "no TLS 1.3 there" in failed(transport(port).join(QUESTION))


def test_a_server_with_tls_1_2_alone_is_none_for_one_that_has_the_ca_at_hand_either(tmp_path: Path) -> None:
    """No probe is made then, and gRPC itself has to refuse."""
    chain = tls.to_pem(CA.leaf(), CA.der)
    with tls.raw_server(tls.tls_server(tmp_path, chain, ssl.TLSVersion.TLSv1_2)) as port:
        assert "no TLS 1.3 there" in failed(transport(port, ca_file=tls.to_pem(CA.der)).join(QUESTION))


def test_a_server_with_tls_and_nothing_behind_it_is_given_up_in_time(tmp_path: Path) -> None:
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf(), CA.der))) as port:
        assert failed(transport(port, timeout_s=SOON_S).join(QUESTION))


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    done = threading.Event()
    with tls.raw_server(lambda connection: done.wait(20) and None) as port:
        why = failed(transport(port, timeout_s=SOON_S).join(QUESTION))
        done.set()
    assert "no answer within" in why


def test_a_server_that_says_one_byte_at_a_time_is_given_up_in_time_too() -> None:
    """Each byte comes well within the time for one read; all of them together never would."""
    done = threading.Event()

    def drip(connection: socket.socket) -> None:
        # A handshake record of 16 KiB, of which a byte comes every so often.
        connection.sendall(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb")
        while not done.wait(SOON_S / 5):
            connection.sendall(b"\0")

    with tls.raw_server(drip) as port:
        asked = threading.Thread(target=lambda: said.append(transport(port, timeout_s=SOON_S).join(QUESTION)))
        said: list[Answer] = []
        asked.start()
        # Far from the quarter of an hour that the whole record would take, and from what a busy machine does.
        asked.join(60)
        in_time = not asked.is_alive()
        done.set()
        asked.join()
    assert in_time
    assert failed(said[0])


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 No\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46", bytes(500)])
def test_a_server_that_speaks_something_else_is_a_failure(said: bytes) -> None:
    with tls.raw_server(lambda connection: connection.sendall(said)) as port:
        assert f"127.0.0.1:{port}" in failed(transport(port).join(QUESTION))


def test_a_certificate_of_an_unknown_version_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    """The chain of a bare handshake is anybody's: nothing in it may end a join other than as a failure."""
    version = bytes.fromhex("a003020102")
    assert version in CA.der
    odd = ssl.DER_cert_to_PEM_cert(CA.der.replace(version, bytes.fromhex("a003020107"))).encode()
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf()) + odd)) as port:
        assert "does not parse" in failed(transport(port).join(QUESTION))
    assert isinstance(served(CA.leaf(), CA.der, ca_file=odd), Issued)


def test_a_ca_with_a_key_of_an_unknown_kind_is_a_mismatch_and_no_crash(tmp_path: Path) -> None:
    """OpenSSL serves a curve that the cryptography package does not know."""
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:brainpoolP256t1 -nodes -subj /CN=odd"
    path = tmp_path / "odd.pem"
    command = ["openssl", *words.split(), "-keyout", str(tmp_path / "odd.key"), "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    with tls.raw_server(tls.tls_server(tmp_path, tls.to_pem(CA.leaf()) + path.read_bytes())) as port:
        with pytest.raises(FixConfiguration) as caught:
            transport(port).join(QUESTION)
        assert "a key of an unknown kind" in caught.value.text
    assert isinstance(served(CA.leaf(), CA.der, ca_file=path.read_bytes() + CA.pem), Issued)
