"""One spelling for each thing: what another reader of docs/protocol.md refuses and a lenient parser lets through."""

from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from google.protobuf.timestamp_pb2 import Timestamp

from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import certificates, csr, der, ecdsa, renew_pop, seal, statements, trust_bundle
from tests.fakes import pki

KEY = pki.spki(pki.NODE_KEY)
# SubjectPublicKeyInfo of the same key with a compressed point (SEC 1, section 2.3.3).
POINT = pki.NODE_KEY.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
COMPRESSED = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + POINT
ECDSA_SHA384 = bytes.fromhex("300a06082a8648ce3d040303")
APPROVER = pki.private_key(77)


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    head = b"" if size < 128 else b"\x81" if size < 256 else b"\x82"
    length = head + size.to_bytes(2 if size > 255 else 1)
    return bytes((tag,)) + length + content


def signed_again(parts: Sequence[bytes], algorithm: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
    inner = tlv(0x30, *parts)
    return tlv(0x30, inner, algorithm, tlv(0x03, b"\x00", key.sign(inner, ec.ECDSA(hashes.SHA256()))))


def leaf_with(at: int, part: bytes) -> bytes:
    """The leaf with another part of its TBSCertificate, signed by its CA."""
    to_be_signed, algorithm, _ = der.children(pki.leaf())
    parts = list(der.children(to_be_signed))
    return signed_again([*parts[:at], part, *parts[at + 1 :]], algorithm, pki.CA.key)


def request_with(at: int, part: bytes) -> bytes:
    info, algorithm, _ = der.children(pki.CSR)
    parts = list(der.children(info))
    return signed_again([*parts[:at], part, *parts[at + 1 :]], algorithm, pki.NODE_KEY)


def test_the_parts_are_those_of_the_certificate_and_the_request() -> None:
    assert certificates.parse_leaf(leaf_with(6, KEY)).spki == KEY
    assert csr.key_of(request_with(2, KEY)) == KEY


def test_a_leaf_of_a_key_in_another_encoding() -> None:
    with pytest.raises(certificates.MalformedCertificate, match="the leaf's key is a P-256 key in another encoding"):
        certificates.parse_leaf(leaf_with(6, COMPRESSED))


def test_a_request_for_a_key_in_another_encoding() -> None:
    with pytest.raises(csr.MalformedCsr, match="a P-256 key in another encoding"):
        csr.key_of(request_with(2, COMPRESSED))


def test_a_certificate_of_two_signature_algorithms() -> None:
    """RFC 5280, section 4.1.1.2: the two fields must be the same. Only the inner one is signed."""
    with pytest.raises(certificates.MalformedCertificate, match="two signature algorithms"):
        certificates.parse_leaf(leaf_with(2, ECDSA_SHA384))


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        (x509.SubjectKeyIdentifier.from_public_key(pki.NODE_KEY.public_key()), "subjectKeyIdentifier"),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(pki.CA.key.public_key()), "authorityKeyIdentifier"),
    ],
)
def test_a_key_identifier_is_passed_over_unless_it_is_critical(identifier: x509.ExtensionType, name: str) -> None:
    assert certificates.parse_leaf(pki.leaf(more=[(identifier, False)]))
    with pytest.raises(certificates.MalformedCertificate, match=f"the leaf has a critical {name}"):
        certificates.parse_leaf(pki.leaf(more=[(identifier, True)]))


def test_a_purpose_twice() -> None:
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(certificates.MalformedCertificate, match="extended key usage"):
        certificates.parse_leaf(pki.leaf(change={x509.ExtendedKeyUsage: (x509.ExtendedKeyUsage(purposes), False)}))


@pytest.mark.parametrize("more", [b'"crv": "P-256", ', b'"more": {"a": 1, "a": 1}, ', b'"more": NaN, '])
def test_a_jwk_with_a_name_twice_or_a_number_that_is_none(more: bytes) -> None:
    """RFC 7517, section 4: member names must be unique."""
    jwk = seal.encode_recipient(seal.Recipient(pki.ENCRYPTION_KEY.public_key()))
    with pytest.raises(seal.MalformedJwk, match="is not JSON"):
        seal.decode_recipient(jwk.replace(b"{", b"{" + more, 1))


def approver(**changes: object) -> pb.Approver:
    told: dict[str, object] = {
        "kid": ecdsa.thumbprint(APPROVER.public_key()),
        "spki": pki.spki(APPROVER),
        "name": "Ada",
    }
    return pb.Approver(**(told | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"approvers": [approver(spki=b"")]}, "an approver of the trust bundle is not a SubjectPublicKeyInfo"),
        ({"approvers": [approver(spki=COMPRESSED)]}, "an approver of the trust bundle is a P-256 key in another"),
        ({"approvers": [approver(), approver(kid="")]}, "an approver of the trust bundle has a kid that is not"),
        ({"approvers": [approver(kid=ecdsa.thumbprint(pki.OTHER_KEY.public_key()))]}, "has a kid that is not"),
    ],
)
def test_an_approver_whose_key_is_none(fields: dict[str, object], why: str) -> None:
    assert trust_bundle.open_bundle(pki.trust_bundle(approvers=[approver()]), pki.PINS, pki.DOMAIN)
    with pytest.raises(trust_bundle.BadBundle, match=why):
        trust_bundle.open_bundle(pki.trust_bundle(**fields), pki.PINS, pki.DOMAIN)


@pytest.mark.parametrize("at", [None, Timestamp(nanos=-1), Timestamp(nanos=10**9), Timestamp(seconds=2**60)])
def test_a_bundle_without_a_time_of_issue(at: Timestamp | None) -> None:
    bundle = pb.TrustBundle.FromString(pki.bundle_payload())
    bundle.ClearField("issued_at")
    if at is not None:
        bundle.issued_at.CopyFrom(at)
    signed = pki.signed(statements.Purpose.TRUST_BUNDLE, bundle.SerializeToString(deterministic=True))
    with pytest.raises(trust_bundle.BadBundle, match="the trust bundle has no time of issue"):
        trust_bundle.open_bundle(signed, pki.PINS, pki.DOMAIN)


def test_a_statement_is_at_most_1_mib_wherever_it_is_opened() -> None:
    """With a field of a later version, which nothing signs: it is the size alone that is refused."""

    def of_size(signed: bytes, size: int) -> bytes:
        filler = size - len(signed) - 5
        return (
            signed
            + bytes((0xFA, 0x01, *(filler & 0x7F | 0x80, filler >> 7 & 0x7F | 0x80, filler >> 14)))
            + bytes(filler)
        )

    bundle = pki.trust_bundle().SerializeToString(deterministic=True)
    assert trust_bundle.open_serialized(of_size(bundle, 1 << 20), pki.PINS, pki.DOMAIN)
    with pytest.raises(trust_bundle.BadBundle, match="larger than a statement may be"):
        trust_bundle.open_serialized(of_size(bundle, (1 << 20) + 1), pki.PINS, pki.DOMAIN)

    leaf = certificates.parse_leaf(pki.leaf())
    proof = renew_pop.make_renew_pop(
        pki.CSR, leaf.der, pki.NOW, KEY, lambda message: ecdsa.sign(pki.NODE_KEY, message)
    ).SerializeToString(deterministic=True)
    assert renew_pop.open_renew_pop(of_size(proof, 1 << 20), pki.CSR, leaf) == pki.NOW
    with pytest.raises(renew_pop.BadProof, match="larger than a statement may be"):
        renew_pop.open_renew_pop(of_size(proof, (1 << 20) + 1), pki.CSR, leaf)


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x05\x02\x01", b"\x30\x80\x00\x00", b"\x1f\x81\x01\x00"])
def test_what_has_no_parts(data: bytes) -> None:
    with pytest.raises(der.NotDer):
        der.children(data)


def test_parts_with_long_lengths() -> None:
    inner = tlv(0x04, bytes(300))
    assert der.children(tlv(0x30, inner, b"\x05\x00")) == (inner, b"\x05\x00")
    certificate = pki.leaf()
    assert der.children(certificate)[0] == x509.load_der_x509_certificate(certificate).tbs_certificate_bytes
