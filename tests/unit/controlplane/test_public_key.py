"""A public key is taken from any file that names one, and from none that might mean something else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bcd.controlplane.adapters.pki import authorities
from bcd.controlplane.cli import public_key
from bcd.controlplane.domain.failures import Failure
from bcd.protocol.pki import ecdsa
from tests.fakes.controlplane.machine import key_pem, new_key

KEY = new_key()
PUBLIC = KEY.public_key()
CERTIFICATE = authorities.self_issued("command root", KEY, datetime(2026, 9, 26, tzinfo=UTC), 0)
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
INFO = serialization.PublicFormat.SubjectPublicKeyInfo
RSA = rsa.generate_private_key(65537, 2048).public_key()
P384 = ec.generate_private_key(ec.SECP384R1()).public_key()
POINT = PUBLIC.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


@pytest.mark.parametrize(
    "data",
    [
        PUBLIC.public_bytes(PEM, INFO),
        PUBLIC.public_bytes(DER, INFO),
        CERTIFICATE.public_bytes(PEM),
        CERTIFICATE.public_bytes(DER),
        b"Subject: our command root\n" + CERTIFICATE.public_bytes(PEM),
    ],
    ids=["key PEM", "key DER", "certificate PEM", "certificate DER", "with words before"],
)
def test_a_key_is_read(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    assert public_key.read(str(tmp_path / "file")) == ecdsa.spki_of(PUBLIC)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a public key or certificate"),
        (b"ssh-ed25519 AAAA", "not a public key or certificate"),
        (POINT, "not a public key or certificate"),
        (CERTIFICATE.public_bytes(DER)[:-1], "not a public key or certificate"),
        (key_pem(KEY), "a private key, which stays where it is used"),
        (PUBLIC.public_bytes(PEM, INFO) * 2, "more than one thing in it"),
        (PUBLIC.public_bytes(PEM, INFO) + CERTIFICATE.public_bytes(PEM), "more than one thing in it"),
        (RSA.public_bytes(PEM, INFO), "not a P-256 key"),
        (P384.public_bytes(DER, INFO), "not a P-256 key"),
        (b"x" * (public_key.MAX_BYTES + 1), "too large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_is_told_what_it_is(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(Failure) as caught:
        public_key.read(str(tmp_path / "file"))
    assert str(caught.value).startswith(f"{tmp_path}/file: {why}: name a file")


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No such file"):
        public_key.read(str(tmp_path / "none"))
