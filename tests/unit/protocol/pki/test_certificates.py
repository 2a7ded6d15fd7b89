"""The leaf profile and the chain above a leaf. Every departure is a certificate of its own, properly signed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.names import NodeId, Role
from bcd.protocol.pki import certificates
from bcd.protocol.pki.certificates import MalformedCertificate, check_chain, parse_leaf
from tests.fakes import pki
from tests.fakes.properties import few

# A serial number that is not positive: told by this module in its own words.
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")
AK_URN = b"urn:bc:tpm-ak:" + pki.AK_NAME.hex().encode()
RSA_KEY = rsa.generate_private_key(65537, 2048)
ED_KEY = ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32)
DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)


def san(*names: x509.GeneralName, critical: bool = False) -> Mapping[type[x509.ExtensionType], pki.Extension | None]:
    return {x509.SubjectAlternativeName: (x509.SubjectAlternativeName(names), critical)}


def raw_san(der: str) -> Mapping[type[x509.ExtensionType], pki.Extension | None]:
    """A subjectAltName of exactly these bytes, which no builder makes."""
    return {x509.SubjectAlternativeName: (x509.UnrecognizedExtension(ObjectIdentifier("2.5.29.17"), hexed(der)), False)}


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


def usage(*usages: str) -> Mapping[type[x509.ExtensionType], pki.Extension | None]:
    return {x509.KeyUsage: (pki.key_usage(*usages), True)}


def raw_usage(der: str) -> Mapping[type[x509.ExtensionType], pki.Extension | None]:
    """A keyUsage of exactly these bytes, which no builder makes."""
    return {x509.KeyUsage: (x509.UnrecognizedExtension(ObjectIdentifier("2.5.29.15"), hexed(der)), True)}


def extended(*oids: ObjectIdentifier) -> Mapping[type[x509.ExtensionType], pki.Extension | None]:
    return {x509.ExtendedKeyUsage: (x509.ExtendedKeyUsage(oids), False)}


def subject(*attributes: tuple[ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])


def uri(text: str = str(pki.SPIFFE_ID)) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(text)


CN, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
ROLE = (OU, "bc-role:node")

DEPARTURES: list[tuple[str, str, dict[str, object]]] = [
    ("is a CA", "is a CA", {"change": {x509.BasicConstraints: (x509.BasicConstraints(True, None), True)}}),
    ("has no basicConstraints", "has no basicConstraints", {"change": {x509.BasicConstraints: None}}),
    ("has no keyUsage", "has no keyUsage", {"change": {x509.KeyUsage: None}}),
    ("has no extendedKeyUsage", "has no extendedKeyUsage", {"change": {x509.ExtendedKeyUsage: None}}),
    ("has no subjectAltName", "has no subjectAltName", {"change": {x509.SubjectAlternativeName: None}}),
    ("signs certificates too", "key usage", {"change": usage("digital_signature", "key_cert_sign")}),
    ("agrees on keys too", "key usage", {"change": usage("digital_signature", "key_agreement")}),
    ("does not repudiate", "key usage", {"change": usage("digital_signature", "content_commitment")}),
    ("signs CRLs too", "key usage", {"change": usage("digital_signature", "crl_sign")}),
    ("enciphers keys too", "key usage", {"change": usage("digital_signature", "key_encipherment")}),
    ("enciphers data too", "key usage", {"change": usage("digital_signature", "data_encipherment")}),
    ("agrees on keys only", "key usage", {"change": usage("key_agreement")}),
    (
        "has an uncritical keyUsage",
        "key usage is not critical",
        {"change": {x509.KeyUsage: (pki.key_usage("digital_signature"), False)}},
    ),
    ("has a keyUsage with a zero bit more", "key usage is not DER", {"change": raw_usage("03020080")}),
    ("has a keyUsage with a zero byte more", "key usage is not DER", {"change": raw_usage("0303078000")}),
    ("is a client only", "extended key usage", {"change": extended(CLIENT)}),
    ("is a server only", "extended key usage", {"change": extended(SERVER)}),
    ("signs code too", "extended key usage", {"change": extended(CLIENT, SERVER, ExtendedKeyUsageOID.CODE_SIGNING)}),
    (
        "may do anything",
        "extended key usage",
        {"change": extended(CLIENT, SERVER, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)},
    ),
    ("has a critical subjectAltName", "is critical", {"change": san(uri(), critical=True)}),
    ("has an empty subjectAltName", "has no name", {"change": raw_san("3000")}),
    ("has an X.400 name", "do not parse", {"change": raw_san("3002a300")}),
    ("has an EDI name", "do not parse", {"change": raw_san("3002a500")}),
    ("has a subjectAltName that is none", "do not parse", {"change": raw_san("0500")}),
    ("has a name of an unknown kind", "do not parse", {"change": raw_san("3002a900")}),
    ("has a DNS name first", "first subjectAltName is not a URI", {"change": san(x509.DNSName("n-7"), uri())}),
    ("has a DNS name alone", "first subjectAltName is not a URI", {"change": san(x509.DNSName("n-7"))}),
    ("has a DNS name too", "names besides its SPIFFE ID", {"names": [x509.DNSName("n-7.example.org")]}),
    ("has two URIs", "names besides its SPIFFE ID", {"names": [uri()]}),
    ("has an address too", "names besides its SPIFFE ID", {"names": [x509.RFC822Name("n@example.org")]}),
    (
        "has another otherName",
        "names besides its SPIFFE ID",
        {"names": [x509.OtherName(ObjectIdentifier("1.3.6.1.5.5.7.8.4"), hexed("0c0161"))]},
    ),
    ("names two AKs", "names besides", {"names": [pki.permanent_identifier(AK_URN)] * 2}),
    ("names its AK first", "not a URI", {"change": san(pki.permanent_identifier(AK_URN), uri())}),
    ("names a short AK", "permanent identifier", {"names": [pki.permanent_identifier(AK_URN[:-2])]}),
    ("names a long AK", "permanent identifier", {"names": [pki.permanent_identifier(AK_URN + b"00")]}),
    (
        "names an AK in capitals",
        "permanent identifier",
        {"names": [pki.permanent_identifier(AK_URN.replace(b"a", b"A"))]},
    ),
    (
        "names something else",
        "permanent identifier",
        {"names": [pki.permanent_identifier(b"urn:bc:tpm-ek:" + AK_URN[14:])]},
    ),
    (
        "names an AK with an assigner",
        "permanent identifier",
        {"names": [x509.OtherName(pki.PERMANENT_IDENTIFIER, hexed("3058") + b"\x0c\x52" + AK_URN + hexed("06022a03"))]},
    ),
    (
        "names an AK as an IA5String",
        "permanent identifier",
        {"names": [x509.OtherName(pki.PERMANENT_IDENTIFIER, hexed("3054") + b"\x16\x52" + AK_URN)]},
    ),
    (
        "has an empty permanent identifier",
        "permanent identifier",
        {"names": [x509.OtherName(pki.PERMANENT_IDENTIFIER, hexed("3000"))]},
    ),
    ("is of no site", "not a bcd SPIFFE ID", {"spiffe_id": "spiffe://example.org/node/n-7"}),
    ("is of another scheme", "not a bcd SPIFFE ID", {"spiffe_id": "https://example.org/site/hall-2/node/n-7"}),
    ("has a path below its id", "not a bcd SPIFFE ID", {"spiffe_id": f"{pki.SPIFFE_ID}/x"}),
    (
        "has a trust domain in capitals",
        "not a trust domain",
        {"spiffe_id": "spiffe://Example.org/site/hall-2/node/n-7"},
    ),
    ("has a CN of another node", "CN is not the node", {"leaf_subject": pki.subject("n-8")}),
    ("has a CN in capitals", "CN is not the node", {"leaf_subject": pki.subject("N-7")}),
    ("has a CN that is no name", "subject: not a node id", {"leaf_subject": pki.subject("n 7")}),
    ("has no CN", "subject is not CN and OU", {"leaf_subject": subject(ROLE)}),
    ("has no OU", "subject is not CN and OU", {"leaf_subject": subject((CN, "n-7"))}),
    ("has no subject", "subject is not CN and OU", {"leaf_subject": x509.Name([])}),
    ("has its OU first", "subject is not CN and OU", {"leaf_subject": subject(ROLE, (CN, "n-7"))}),
    ("has two OUs", "subject is not CN and OU", {"leaf_subject": subject((CN, "n-7"), ROLE, (OU, "bc-role:site"))}),
    ("has two CNs", "subject is not CN and OU", {"leaf_subject": subject((CN, "n-7"), (CN, "n-7"), ROLE)}),
    (
        "has an organization",
        "subject is not CN and OU",
        {"leaf_subject": subject((CN, "n-7"), ROLE, (NameOID.ORGANIZATION_NAME, "x"))},
    ),
    (
        "has an O for an OU",
        "subject is not CN and OU",
        {"leaf_subject": subject((CN, "n-7"), (NameOID.ORGANIZATION_NAME, "bc-role:node"))},
    ),
    (
        "has both in one RDN",
        "subject is not CN and OU",
        {
            "leaf_subject": x509.Name(
                [x509.RelativeDistinguishedName([x509.NameAttribute(CN, "n-7"), x509.NameAttribute(*ROLE)])]
            )
        },
    ),
    ("has an OU without prefix", "OU is not bc-role", {"leaf_subject": pki.subject(unit="node")}),
    ("has an OU with another prefix", "OU is not bc-role", {"leaf_subject": pki.subject(unit="BC-ROLE:node")}),
    ("has an unknown role", "subject: not a role", {"leaf_subject": pki.subject(unit="bc-role:root")}),
    ("has a role with a space", "subject: not a role", {"leaf_subject": pki.subject(unit="bc-role:node ")}),
    ("has no role", "subject: not a role", {"leaf_subject": pki.subject(unit="bc-role:")}),
    ("has a P-384 key", "not a P-256 key", {"key": ec.derive_private_key(7, ec.SECP384R1()).public_key()}),
    ("has a secp256k1 key", "not a P-256 key", {"key": ec.derive_private_key(7, ec.SECP256K1()).public_key()}),
    ("has an RSA key", "not a P-256 key", {"key": RSA_KEY.public_key()}),
    ("has an Ed25519 key", "not a P-256 key", {"key": ED_KEY.public_key()}),
    ("is signed by RSA", "not signed with ECDSA-SHA256", {"signer": RSA_KEY}),
    ("is signed by Ed25519", "not signed with ECDSA-SHA256", {"signer": ED_KEY, "algorithm": None}),
    ("is signed over SHA-384", "not signed with ECDSA-SHA256", {"algorithm": hashes.SHA384()}),
    ("lives a second too long", "lives longer than a node may", {"not_after": pki.NOT_BEFORE + DAY + SECOND}),
    ("lives for years", "lives longer than a node may", {"not_after": datetime(9999, 12, 31, tzinfo=UTC)}),
    (
        "is a ramdisk that lives too long",
        "lives longer than a ramdisk may",
        {"role": Role.RAMDISK, "not_after": pki.NOT_BEFORE + timedelta(hours=2) + SECOND},
    ),
    ("ends when it begins", "dates are the wrong way round", {"not_after": pki.NOT_BEFORE}),
    (
        "has an unknown critical extension",
        "unknown critical extension 1.2.3.4",
        {"more": [(x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True)]},
    ),
    (
        "has critical name constraints",
        "unknown critical extension",
        {"more": [(x509.NameConstraints([x509.DNSName("example.org")], None), True)]},
    ),
]


def refusal(der: bytes) -> str:
    with pytest.raises(MalformedCertificate) as refused:
        parse_leaf(der)
    return str(refused.value)


@pytest.mark.parametrize(("what", "why", "departure"), DEPARTURES, ids=[what for what, _, _ in DEPARTURES])
def test_a_certificate_that(what: str, why: str, departure: dict[str, object]) -> None:
    """… is no leaf, and the reason says so. The certificate without the departure is one (next test)."""
    assert why in refusal(pki.leaf(**departure))  # type: ignore[arg-type]


@pytest.mark.parametrize("serial", ["020100", "0201ff", "020180"])
def test_a_serial_number_that_is_not_positive_is_malformed(serial: str) -> None:
    """RFC 5280, 4.1.2.2. No builder signs one, so this is about reading alone."""
    version = "a003020102"
    der = pki.leaf(serial=1)
    assert parse_leaf(der)
    changed = der.replace(hexed(version + "020101"), hexed(version + serial), 1)
    assert changed != der
    assert "serial number is not positive" in refusal(changed)


def test_a_leaf_by_the_profile_says_whose_it_is() -> None:
    der = pki.leaf()
    leaf = parse_leaf(der)
    assert (leaf.der, leaf.spki, leaf.spiffe_id) == (der, pki.spki(pki.NODE_KEY), pki.SPIFFE_ID)
    assert (leaf.role, leaf.not_before, leaf.not_after) == (Role.NODE, pki.NOT_BEFORE, pki.NOT_AFTER)
    assert leaf.ak_name is None


@pytest.mark.parametrize(
    ("role", "lifetime"), [(Role.NODE, 24 * 3600), (Role.SITE, 24 * 3600), (Role.RAMDISK, 2 * 3600), (Role.NODE, 20)]
)
def test_each_role_may_live_as_long_as_it_may(role: Role, lifetime: int) -> None:
    leaf = parse_leaf(pki.leaf(role=role, not_after=pki.NOT_BEFORE + timedelta(seconds=lifetime)))
    assert (leaf.role, leaf.lifetime) == (role, timedelta(seconds=lifetime))


def test_a_site_lives_no_longer_than_a_node() -> None:
    assert "longer than a site may" in refusal(pki.leaf(role=Role.SITE, not_after=pki.NOT_AFTER + SECOND))


def test_a_certified_tpm_join_names_its_attestation_key() -> None:
    leaf = parse_leaf(pki.leaf(names=[pki.permanent_identifier(AK_URN)]))
    assert leaf.ak_name == pki.AK_NAME
    assert leaf.spiffe_id == pki.SPIFFE_ID


def test_what_any_ca_adds_does_no_harm() -> None:
    public = pki.CA.key.public_key()
    more: Sequence[pki.Extension] = [
        (x509.SubjectKeyIdentifier.from_public_key(pki.NODE_KEY.public_key()), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(public), False),
        (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), False),
    ]
    assert parse_leaf(pki.leaf(more=more))


def test_the_order_of_extended_key_usages_is_nothing() -> None:
    assert parse_leaf(pki.leaf(change=extended(SERVER, CLIENT)))


def test_a_node_with_the_longest_name_fits_its_cn() -> None:
    longest = replace(pki.SPIFFE_ID, node=NodeId("n" * 63))
    assert parse_leaf(pki.leaf(spiffe_id=longest)).spiffe_id == longest


@few
@given(st.binary(max_size=300))
def test_any_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedCertificate):
        parse_leaf(data)
    with pytest.raises(MalformedCertificate):
        check_chain([data], pki.NOW)


@pytest.mark.parametrize("change", [0x01, 0x02, 0x04, 0x20, 0x80, 0xFF])
def test_any_byte_changed_leaves_a_leaf_or_malformed_and_no_other_exception(change: int) -> None:
    """And in a chain the signature notices, wherever it was."""
    der = pki.leaf(names=[pki.permanent_identifier(AK_URN)])
    for at in range(len(der)):
        changed = bytearray(der)
        changed[at] ^= change
        try:
            parse_leaf(bytes(changed))
        except MalformedCertificate:
            pass
        with pytest.raises(MalformedCertificate):
            check_chain([bytes(changed), *pki.CA.above], pki.NOW)


@pytest.mark.parametrize("change", [0x01, 0x04, 0x80])
def test_any_byte_of_an_issuer_changed_gives_the_leaf_or_malformed(change: int) -> None:
    """Nothing in a chain vouches for its last certificate, so a change there may pass; it must not be a crash."""
    der = pki.CA.above[0]
    leaf = pki.leaf()
    for at in range(len(der)):
        changed = bytearray(der)
        changed[at] ^= change
        try:
            check_chain([leaf, bytes(changed)], pki.NOW)
        except MalformedCertificate:
            pass


def test_a_leaf_torn_anywhere_or_followed_by_anything_is_malformed() -> None:
    der = pki.leaf()
    for length in range(len(der)):
        refusal(der[:length])
    refusal(der + b"\x00")
    refusal(der + der)


def test_a_signature_has_one_encoding() -> None:
    """A BIT STRING that leaves its last, zero bit unused holds the same signature in other bytes."""
    der = next(der for der in (pki.leaf() for _ in range(200)) if not der[-1] & 1)
    at = len(der) - len(x509.load_der_x509_certificate(der).signature) - 1
    assert parse_leaf(der)
    assert "not a DER certificate" in refusal(der[:at] + b"\x01" + der[at + 1 :])


def test_pem_is_not_der() -> None:
    refusal(x509.load_der_x509_certificate(pki.leaf()).public_bytes(serialization.Encoding.PEM))


def test_a_chain_gives_its_leaf() -> None:
    chain = pki.chain()
    assert check_chain(chain, pki.NOW) == parse_leaf(chain[0])


def test_a_leaf_issued_by_the_root_stands_alone() -> None:
    assert check_chain([pki.leaf()], pki.NOW).spiffe_id == pki.SPIFFE_ID


def long_chain(issuers: int) -> list[bytes]:
    """A leaf and `issuers` CAs, each signed by the next."""
    authority = pki.ca(3000, name="CA 0")
    for n in range(1, issuers):
        authority = pki.ca(3000 + n, above=authority, name=f"CA {n}")
    return [pki.leaf(authority), *authority.above]


def test_a_chain_of_five_is_one_and_of_six_is_none() -> None:
    assert check_chain(long_chain(4), pki.NOW)
    with pytest.raises(MalformedCertificate, match="6 certificates, want 1 to 5"):
        check_chain(long_chain(5), pki.NOW)
    with pytest.raises(MalformedCertificate, match="0 certificates, want 1 to 5"):
        check_chain([], pki.NOW)


CA_NAME = pki.CA.name
CA_EXTENSIONS: list[pki.Extension] = [(x509.BasicConstraints(True, None), True), (pki.key_usage("key_cert_sign"), True)]
UNKNOWN = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.55555.1"), hexed("0500"))
ISSUERS: list[tuple[str, pki.Ca]] = [
    ("may not sign certificates", pki.ca(is_ca=False)),
    ("may not sign certificates", pki.ca(usages=["crl_sign"])),
    ("may not sign certificates", pki.ca(usages=["digital_signature"])),
    ("does not say that it is a CA", pki.ca(extensions=[])),
    ("does not say that it is a CA", pki.ca(extensions=[(x509.BasicConstraints(True, None), True)])),
    ("does not say that it is a CA", pki.ca(extensions=[(pki.key_usage("key_cert_sign"), True)])),
    (
        "does not say that it is a CA",
        pki.ca(
            extensions=[
                (x509.BasicConstraints(True, None), True),
                (pki.key_usage("key_cert_sign"), True),
                (x509.UnrecognizedExtension(ObjectIdentifier("2.5.29.17"), hexed("3002a300")), False),
            ]
        ),
    ),
    ("an unknown critical extension 1.3.6.1.4.1.55555.1", pki.ca(extensions=[*CA_EXTENSIONS, (UNKNOWN, True)])),
    (
        "an unknown critical extension 2.5.29.37",
        pki.ca(extensions=[*CA_EXTENSIONS, (x509.ExtendedKeyUsage([CLIENT, SERVER]), True)]),
    ),
    ("is valid from", pki.ca(not_after=pki.NOW)),
    ("is valid from", pki.ca(not_before=pki.NOW + SECOND)),
]


@pytest.mark.parametrize(("why", "issuer"), ISSUERS)
def test_an_issuer_that_may_not_issue_ends_the_chain(why: str, issuer: pki.Ca) -> None:
    assert check_chain(pki.chain(pki.ca()), pki.NOW)
    with pytest.raises(MalformedCertificate, match=why):
        check_chain(pki.chain(issuer), pki.NOW)


def test_an_issuers_uncritical_extensions_are_passed_over() -> None:
    assert check_chain(pki.chain(pki.ca(extensions=[*CA_EXTENSIONS, (UNKNOWN, False)])), pki.NOW)


@pytest.mark.parametrize(("length", "below", "fine"), [(0, 0, True), (0, 1, False), (1, 1, True), (1, 2, False)])
def test_an_issuer_reaches_as_far_as_its_path_length(length: int, below: int, fine: bool) -> None:
    """RFC 5280, 4.2.1.9: how many CAs may stand between it and the leaf."""
    constraints = x509.BasicConstraints(True, length)
    authority = pki.ca(3000, name="top", extensions=[(constraints, True), (pki.key_usage("key_cert_sign"), True)])
    for n in range(below):
        authority = pki.ca(3001 + n, above=authority, name=f"CA {n}")
    if fine:
        assert check_chain(pki.chain(authority), pki.NOW)
    else:
        with pytest.raises(MalformedCertificate, match="an issuer in the chain has a path length of"):
            check_chain(pki.chain(authority), pki.NOW)


def test_each_certificate_is_signed_by_the_next() -> None:
    leaf, low, high = long_chain(2)
    assert check_chain([leaf, low, high], pki.NOW)
    for chain in ([leaf, high, low], [leaf, high], [leaf, low, low], [leaf, low, pki.CA.above[0]], [leaf, leaf]):
        with pytest.raises(MalformedCertificate):
            check_chain(chain, pki.NOW)


def test_a_leaf_by_another_key_of_the_same_name_is_refused() -> None:
    with pytest.raises(MalformedCertificate, match="not signed by the next"):
        check_chain(pki.chain(signer=pki.OTHER_KEY), pki.NOW)


def test_a_leaf_by_the_same_key_of_another_name_is_refused() -> None:
    with pytest.raises(MalformedCertificate, match="not signed by the next"):
        check_chain(pki.chain(issuer_name=pki.common_name("example.net node CA")), pki.NOW)


def test_an_issuer_signed_over_another_digest_is_refused() -> None:
    top = pki.ca(3000, name="top")
    good, bad = (pki.ca(3001, above=top, name="low", algorithm=a) for a in (hashes.SHA256(), hashes.SHA512()))
    assert check_chain(pki.chain(good), pki.NOW)
    with pytest.raises(MalformedCertificate, match="not signed with SHA-256"):
        check_chain(pki.chain(bad), pki.NOW)


def test_an_rsa_authority_signs_with_pkcs1_and_not_with_pss() -> None:
    """One way to sign for each kind of key, which another reader has as well."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(pki.CA.name)
        .issuer_name(pki.common_name("top"))
        .public_key(pki.CA.key.public_key())
        .serial_number(5)
        .not_valid_before(pki.NOW)
        .not_valid_after(pki.NOW + DAY)
    )
    for extension, critical in CA_EXTENSIONS:
        builder = builder.add_extension(extension, critical)
    top = pki.certificate(
        subject=pki.common_name("top"),
        issuer=pki.common_name("example.org root"),
        key=RSA_KEY.public_key(),
        signer=pki.ROOT_KEY,
        extensions=CA_EXTENSIONS,
        not_before=pki.NOW,
        not_after=pki.NOW + DAY,
    )
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    plain, other = (
        builder.sign(RSA_KEY, hashes.SHA256(), rsa_padding=one).public_bytes(serialization.Encoding.DER)
        for one in (None, pss)
    )
    assert check_chain([pki.leaf(), plain, top], pki.NOW)
    with pytest.raises(MalformedCertificate, match="not signed with SHA-256"):
        check_chain([pki.leaf(), other, top], pki.NOW)


@pytest.mark.parametrize(
    ("at", "fine"),
    [
        (pki.NOT_BEFORE - SECOND, False),
        (pki.NOT_BEFORE, True),
        (pki.NOT_AFTER - SECOND, True),
        (pki.NOT_AFTER, False),
        (pki.NOT_AFTER.astimezone(timezone(timedelta(hours=14))) - SECOND, True),
        (pki.NOT_AFTER.astimezone(timezone(timedelta(hours=-12))), False),
    ],
)
def test_a_chain_is_in_date_from_its_first_instant_to_before_its_last(at: datetime, fine: bool) -> None:
    """B25: whatever zone the instant is told in."""
    if fine:
        assert check_chain(pki.chain(), at)
    else:
        with pytest.raises(MalformedCertificate, match="2026-09-26T11:55:00Z to 2026-09-27T11:55:00Z"):
            check_chain(pki.chain(), at)


def test_the_dates_of_a_leaf_are_utc() -> None:
    """B25: `not_valid_after` without `_utc` is naive."""
    leaf = parse_leaf(pki.leaf())
    assert leaf.not_after.tzinfo is not None
    assert leaf.not_after.utcoffset() == timedelta(0)
    assert certificates.load(pki.leaf()).not_valid_after_utc == leaf.not_after
