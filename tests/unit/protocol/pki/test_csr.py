"""PKCS#10 requests: only the key counts, and only once it has signed."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import AttributeOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.pki import csr
from tests.fakes import pki
from tests.fakes.properties import few

DER = serialization.Encoding.DER


def builder(name: x509.Name | None = None) -> x509.CertificateSigningRequestBuilder:
    return x509.CertificateSigningRequestBuilder().subject_name(pki.common_name("bcd node") if name is None else name)


def signed(made: x509.CertificateSigningRequestBuilder, key: object = pki.NODE_KEY, algorithm: object = None) -> bytes:
    return made.sign(key, algorithm or hashes.SHA256()).public_bytes(DER)  # type: ignore[arg-type]


@few
@given(st.integers(1, 2**255))
def test_the_key_of_a_request_is_the_one_it_was_made_for(secret: int) -> None:
    key = pki.private_key(secret)
    assert csr.key_of(csr.make_csr(key)) == pki.spki(key)


def test_a_request_made_elsewhere_in_the_same_form_is_taken() -> None:
    assert csr.key_of(signed(builder())) == pki.spki(pki.NODE_KEY)


@pytest.mark.parametrize(
    ("request_der", "why"),
    [
        (b"", "not a PKCS#10 request"),
        (pki.CSR[:-1], "not a PKCS#10 request"),
        (pki.CSR + b"\x00", "not a PKCS#10 request"),
        (pki.CSR.replace(bytes.fromhex("020100"), bytes.fromhex("020101"), 1), "not a PKCS#10 request"),
        (b"\x30" + b"\x00" * 5000, "longer than a request can be"),
        (signed(builder(), ec.derive_private_key(7, ec.SECP384R1())), "not a P-256 key"),
        (
            builder().sign(ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32), None).public_bytes(DER),
            "not a P-256 key",
        ),
        (signed(builder(), algorithm=hashes.SHA384()), "not signed by its own key with ECDSA-SHA256"),
        (pki.CSR.replace(pki.spki(pki.NODE_KEY), pki.spki(pki.OTHER_KEY)), "not signed by its own key"),
        (signed(builder().add_attribute(AttributeOID.CHALLENGE_PASSWORD, b"x")), "has attributes"),
        (
            signed(builder().add_extension(x509.SubjectAlternativeName([x509.DNSName("a")]), False)),
            "has attributes",
        ),
        (signed(builder(pki.common_name("bcd nodes"))), "has another subject than CN=bcd node"),
        (signed(builder(x509.Name([]))), "has another subject"),
        (signed(builder(pki.subject("bcd node"))), "has another subject"),
        (
            signed(builder(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "bcd node")]))),
            "has another subject",
        ),
    ],
)
def test_any_other_request_is_refused(request_der: bytes, why: str) -> None:
    with pytest.raises(csr.MalformedCsr, match=why):
        csr.key_of(request_der)


@few
@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_malformed(data: bytes) -> None:
    with pytest.raises(csr.MalformedCsr):
        csr.key_of(data)


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_no_byte_of_a_request_can_change(change: int) -> None:
    """Every single-byte change is refused by this module's own exception, and none by another."""
    for at in range(len(pki.CSR)):
        changed = bytearray(pki.CSR)
        changed[at] ^= change
        with pytest.raises(csr.MalformedCsr):
            csr.key_of(bytes(changed))


def test_a_request_torn_anywhere_is_refused() -> None:
    for length in range(len(pki.CSR)):
        with pytest.raises(csr.MalformedCsr):
            csr.key_of(pki.CSR[:length])


def test_a_signature_has_one_encoding() -> None:
    """A BIT STRING that leaves its last, zero bit unused holds the same signature in other bytes."""
    der = next(der for der in (csr.make_csr(pki.NODE_KEY) for _ in range(200)) if not der[-1] & 1)
    at = len(der) - len(x509.load_der_x509_csr(der).signature) - 1
    assert csr.key_of(der)
    with pytest.raises(csr.MalformedCsr, match="not DER"):
        csr.key_of(der[:at] + b"\x01" + der[at + 1 :])
