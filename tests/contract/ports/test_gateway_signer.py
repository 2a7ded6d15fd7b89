"""What a node's key signs for gRPC: the handshake of a TLS 1.3 client, and nothing else."""

import os
import queue

import pytest
from grpc import experimental
from hypothesis import given
from hypothesis import strategies as st

from bcd.adapters.grpc.signer import Signer, is_client_verify
from bcd.adapters.keys.file import FileKey
from tests.contract.ports.gateway_rig import SOON_S, Key, settle
from tests.fakes import pki
from tests.fakes.gateway_server import node_pair
from tests.fakes.properties import few

VERIFY = b"\x20" * 64 + b"TLS 1.3, client CertificateVerify\x00"


@pytest.mark.parametrize("length", [32, 48])
def test_what_a_tls_client_signs_is_known(length: int) -> None:
    assert is_client_verify(VERIFY + os.urandom(length))


@pytest.mark.parametrize("length", [0, 1, 20, 31, 33, 47, 49, 64])
def test_no_other_length_is(length: int) -> None:
    assert not is_client_verify(VERIFY + bytes(length))


def test_no_other_context_is() -> None:
    for at in range(len(VERIFY)):
        for bit in (1, 0x20, 0x80):
            other = bytearray(VERIFY)
            other[at] ^= bit
            assert not is_client_verify(bytes(other) + bytes(32)), at
    assert not is_client_verify(VERIFY.replace(b"client", b"server") + bytes(32))
    assert not is_client_verify(VERIFY[1:] + bytes(32))
    assert not is_client_verify(b" " + VERIFY + bytes(32))
    assert not is_client_verify(b"bc-statement-v1\0renew-pop\0" + bytes(100))


@few
@given(st.binary(max_size=200))
def test_property_nothing_else_is(message: bytes) -> None:
    assert not is_client_verify(message)


def test_what_is_no_handshake_or_another_algorithm_is_not_signed() -> None:
    signed: list[bytes] = []

    def noting(message: bytes) -> bytes:
        signed.append(message)
        return FileKey(pki.NODE_KEY).sign(message)

    algorithms = experimental.PrivateKeySignatureAlgorithm
    for message, algorithm in (
        (b"bc-statement-v1\0renew-pop\0payload", algorithms.ECDSA_SECP256R1_SHA256),
        (VERIFY + bytes(32), algorithms.ECDSA_SECP384R1_SHA384),
        (VERIFY + bytes(31), algorithms.ECDSA_SECP256R1_SHA256),
    ):
        answers: queue.Queue[object] = queue.Queue()
        signer = Signer(node_pair(Key(noting)), lambda: signed.append(b"counted"))
        signer.sign(message, algorithm, answers.put)
        assert isinstance(answers.get(timeout=SOON_S), Exception)
        assert signer.trouble == "gateway does not speak TLS 1.3"
    assert signed == []
    settle()
