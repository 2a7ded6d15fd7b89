"""Leaf, chain, request, pins and key file as `openssl` reads them."""

import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bcd.domain.model.names import Role
from bcd.domain.model.pins import Pin
from bcd.protocol.files.node_key import decode, encode_file_key
from bcd.protocol.pki import csr, ecdsa
from tests.fakes import pki

AK_URN = b"urn:bc:tpm-ak:" + pki.AK_NAME.hex().encode()
AT = str(int(pki.NOW.timestamp()))


def openssl(*args: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *args], input=given, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout + done.stderr


def text(der: bytes) -> str:
    # Without line ends and repeated spaces, whose number differs between versions.
    return re.sub(r"\s+", " ", openssl("x509", "-inform", "DER", "-noout", "-text", given=der).decode())


def pem(der: bytes) -> bytes:
    return x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM)


def root() -> bytes:
    name = pki.common_name("example.org root")
    return pki.certificate(
        subject=name,
        issuer=name,
        key=pki.ROOT_KEY.public_key(),
        signer=pki.ROOT_KEY,
        extensions=[(x509.BasicConstraints(True, None), True), (pki.key_usage("key_cert_sign", "crl_sign"), True)],
        not_before=pki.NOW - timedelta(days=60),
        not_after=pki.NOW + timedelta(days=60),
    )


def test_openssl_reads_a_leaf_as_the_profile_says() -> None:
    told = text(pki.leaf())
    for expected in (
        "Version: 3 (0x2)",
        "Signature Algorithm: ecdsa-with-SHA256",
        "Not Before: Sep 26 11:55:00 2026 GMT Not After : Sep 27 11:55:00 2026 GMT",
        "Subject: CN = n-7, OU = bc-role:node",
        "ASN1 OID: prime256v1",
        "X509v3 Basic Constraints: critical CA:FALSE",
        "X509v3 Key Usage: critical Digital Signature X509v3",
        "X509v3 Extended Key Usage: TLS Web Client Authentication, TLS Web Server Authentication",
        "X509v3 Subject Alternative Name: URI:spiffe://example.org/site/hall-2/node/n-7",
    ):
        assert expected.replace(" = ", "=") in told.replace(" = ", "="), told


def test_openssl_reads_the_name_of_an_attestation_key() -> None:
    der = pki.leaf(names=[pki.permanent_identifier(AK_URN)])
    san = openssl("asn1parse", "-inform", "DER", "-i", given=der).decode()
    assert "X509v3 Subject Alternative Name" in san
    at = der.index(bytes.fromhex("0603551d11"))
    assert AK_URN in der[at:]
    told = text(der)
    assert "URI:spiffe://example.org/site/hall-2/node/n-7" in told
    assert "othername: 1.3.6.1.5.5.7.8.3" in told.replace("Permanent Identifier", "1.3.6.1.5.5.7.8.3")


@pytest.mark.parametrize("purpose", ["sslclient", "sslserver"])
@pytest.mark.parametrize("role", Role)
def test_openssl_verifies_a_chain_to_the_root_for_both_uses(tmp_path: Path, purpose: str, role: Role) -> None:
    leaf, issuer = pki.chain(role=role, not_after=pki.NOW + timedelta(hours=1))
    for name, der in (("root", root()), ("issuer", issuer), ("leaf", leaf)):
        (tmp_path / name).write_bytes(pem(der))
    args = ["-attime", AT, "-purpose", purpose, "-CAfile", str(tmp_path / "root")]
    told = openssl("verify", *args, "-untrusted", str(tmp_path / "issuer"), str(tmp_path / "leaf"))
    assert told.strip().endswith(b"OK")


def test_openssl_verifies_a_request_and_finds_its_key() -> None:
    told = openssl("req", "-inform", "DER", "-verify", "-noout", "-text", given=csr.make_csr(pki.NODE_KEY)).decode()
    assert "verify OK" in told
    assert re.search(r"Subject: CN ?= ?bcd node\n", told)
    key = openssl("req", "-inform", "DER", "-noout", "-pubkey", given=csr.make_csr(pki.NODE_KEY))
    assert openssl("pkey", "-pubin", "-outform", "DER", given=key) == pki.spki(pki.NODE_KEY)


@pytest.mark.parametrize("key", [pki.NODE_KEY, pki.ENCRYPTION_KEY, pki.SIGNING_KEY])
def test_a_pin_is_what_openssl_prints(key: object) -> None:
    """`openssl pkey -pubin -outform DER | openssl dgst -sha256`."""
    public = key.public_key().public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    der = openssl("pkey", "-pubin", "-outform", "DER", given=public)
    printed = openssl("dgst", "-sha256", given=der).decode().split("= ")[1].strip()
    assert str(Pin.of(ecdsa.spki_of(key.public_key()))) == f"sha256:{printed}"  # type: ignore[attr-defined]


def test_openssl_checks_a_node_key_and_writes_one_that_is_read() -> None:
    assert b"Key is valid" in openssl("pkey", "-check", "-noout", given=encode_file_key(pki.NODE_KEY))
    made = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    key = decode(made[made.index(b"-----BEGIN") :])
    assert encode_file_key(key) == made[made.index(b"-----BEGIN") :]  # type: ignore[arg-type]


def test_openssl_verifies_a_signature_of_ours(tmp_path: Path) -> None:
    message = b"bc-statement-v1\x00renew-pop\x00payload"
    (tmp_path / "key").write_bytes(
        pki.NODE_KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    signature = ecdsa.sign(pki.NODE_KEY, message)
    halves = [int.from_bytes(signature[:32]), int.from_bytes(signature[32:])]
    body = b"".join(b"\x02" + bytes((n.bit_length() // 8 + 1,)) + n.to_bytes(n.bit_length() // 8 + 1) for n in halves)
    (tmp_path / "signature").write_bytes(b"\x30" + bytes((len(body),)) + body)
    args = ["-verify", str(tmp_path / "key"), "-signature", str(tmp_path / "signature")]
    assert b"Verified OK" in openssl("dgst", "-sha256", *args, given=message)
