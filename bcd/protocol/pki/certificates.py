"""Node certificates: the leaf profile of docs/protocol.md, read strictly, and the chain above a leaf."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import (
    ExtendedKeyUsageOID,
    ExtensionOID,
    NameOID,
    ObjectIdentifier,
    SignatureAlgorithmOID,
)

from bcd.domain.model import names
from bcd.domain.model.identity import MAX_LIFETIME, Leaf
from bcd.protocol.pki import der as parts_of
from bcd.protocol.pki import ecdsa

ROLE_PREFIX = "bc-role:"
MAX_CHAIN = 5
# RFC 4043, PermanentIdentifier: the otherName that names a certified join's attestation key.
PERMANENT_IDENTIFIER = ObjectIdentifier("1.3.6.1.5.5.7.8.3")
_AK_NAME = re.compile(rb"urn:bc:tpm-ak:([0-9a-f]{68})")
# Extensions of the profile. The two identifiers any CA adds are never critical (RFC 5280, 4.2.1.1 and 4.2.1.2).
_KNOWN = frozenset(
    {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    }
)
_IDENTIFIERS = frozenset({ExtensionOID.SUBJECT_KEY_IDENTIFIER, ExtensionOID.AUTHORITY_KEY_IDENTIFIER})
# The critical keyUsage of a leaf, as it stands in the certificate.
_DIGITAL_SIGNATURE = bytes.fromhex("300e0603551d0f0101ff040403020780")
# Of an issuer these alone are looked at, so that no other may be critical.
_OF_AN_ISSUER = frozenset({ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE})
_SIGNATURES = frozenset({SignatureAlgorithmOID.ECDSA_WITH_SHA256, SignatureAlgorithmOID.RSA_WITH_SHA256})
_PURPOSES = sorted(oid.dotted_string for oid in (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH))
# Names and extensions are parsed when they are first read, and each kind of nonsense has an exception of its own.
_DOES_NOT_PARSE = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


class MalformedCertificate(ValueError):
    """Not a certificate of its profile; the message says where it departs."""


def parse_leaf(der: bytes) -> Leaf:
    """The leaf in `der`, each point of the profile checked; its signature and its dates are not looked at here."""
    certificate = load(der)
    try:
        extensions = certificate.extensions
        subject = certificate.subject
        san = extensions.get_extension_for_class(x509.SubjectAlternativeName)
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = extensions.get_extension_for_class(x509.KeyUsage)
        extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound as missing:
        raise MalformedCertificate(f"the leaf has no {missing.oid._name}") from None
    except _DOES_NOT_PARSE:
        raise MalformedCertificate("the leaf's names or extensions do not parse") from None
    _check_critical(extensions)
    if certificate.signature_algorithm_oid != SignatureAlgorithmOID.ECDSA_WITH_SHA256:
        raise MalformedCertificate("the leaf is not signed with ECDSA-SHA256")
    if constraints.ca:
        raise MalformedCertificate("the leaf is a CA")
    _check_usage(certificate, usage)
    if sorted(oid.dotted_string for oid in extended) != _PURPOSES:
        raise MalformedCertificate("the leaf's extended key usage is not clientAuth and serverAuth")
    spiffe_id, ak_name = _names(san)
    node, role = _subject(subject)
    if node != spiffe_id.node:
        raise MalformedCertificate("the leaf's CN is not the node of its SPIFFE ID")
    leaf = Leaf(
        der=der,
        spki=_spki(certificate),
        spiffe_id=spiffe_id,
        role=role,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        ak_name=ak_name,
    )
    if not leaf.not_before < leaf.not_after:
        raise MalformedCertificate("the leaf's dates are the wrong way round")
    if leaf.lifetime > MAX_LIFETIME[role]:
        raise MalformedCertificate(f"the leaf lives longer than a {role.value} may: {leaf.lifetime}")
    return leaf


def _check_critical(extensions: x509.Extensions) -> None:
    for extension in extensions:
        if extension.critical and extension.oid in _IDENTIFIERS:
            raise MalformedCertificate(f"the leaf has a critical {extension.oid._name}")
        if extension.critical and extension.oid not in _KNOWN:
            raise MalformedCertificate(f"the leaf has an unknown critical extension {extension.oid.dotted_string}")


def _check_usage(certificate: x509.Certificate, usage: x509.Extension[x509.KeyUsage]) -> None:
    if _usages(usage.value) != {"digital_signature"}:
        raise MalformedCertificate("the leaf's key usage is not digitalSignature alone")
    if not usage.critical:
        # X509-SVID, 4.3.
        raise MalformedCertificate("the leaf's key usage is not critical")
    if _DIGITAL_SIGNATURE not in _extensions(certificate):
        # A list of named bits has no zero bits at its end (X.690, 11.2.2); the parser takes them.
        raise MalformedCertificate("the leaf's key usage is not DER")


def check_chain(chain: Sequence[bytes], at: datetime) -> Leaf:
    """The leaf of `chain` (DER, leaf first): each certificate signed by the next, issuers CAs, all in date at `at`.

    Nothing here anchors the last one: on a node the signed statement around the chain does.
    """
    if not 1 <= len(chain) <= MAX_CHAIN:
        raise MalformedCertificate(f"the chain has {len(chain)} certificates, want 1 to {MAX_CHAIN}")
    leaf = parse_leaf(chain[0])
    certificates = [load(der) for der in chain]
    for number, (below, above) in enumerate(pairwise(certificates)):
        _check_issuer(above, number)
        _check_signed(below, above)
    for certificate in certificates:
        if not certificate.not_valid_before_utc <= at < certificate.not_valid_after_utc:
            raise MalformedCertificate(
                f"a certificate of the chain is valid from {_shown(certificate.not_valid_before_utc)} "
                f"to {_shown(certificate.not_valid_after_utc)}, and the server's time is {_shown(at)}"
            )
    return leaf


def load(der: bytes) -> x509.Certificate:
    """The certificate in `der`, all of which it must be."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        # Reading the version is what makes the lazy parser look at the outer structure.
        if certificate.version is not x509.Version.v3:
            raise MalformedCertificate("not an X.509 version 3 certificate")
        if not der.endswith(b"\x00" + certificate.signature):
            # Unused bits in the BIT STRING of the signature, which nothing signs: one certificate in other bytes.
            raise MalformedCertificate("not a DER certificate")
        if certificate.serial_number <= 0:
            raise MalformedCertificate("the serial number is not positive")
        if _parts(certificate)[2] != parts_of.children(der)[1]:
            # RFC 5280, 4.1.1.2: both name one algorithm. Only what the signature covers says how it is made.
            raise MalformedCertificate("the certificate names two signature algorithms")
    except (ValueError, TypeError, x509.InvalidVersion) as error:
        if isinstance(error, MalformedCertificate):
            raise
        raise MalformedCertificate("not a DER certificate") from None
    return certificate


def _shown(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _check_issuer(certificate: x509.Certificate, below: int) -> None:
    """`below`: how many CAs stand between it and the leaf."""
    try:
        extensions = certificate.extensions
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except (x509.ExtensionNotFound, *_DOES_NOT_PARSE):
        raise MalformedCertificate("an issuer in the chain does not say that it is a CA") from None
    if not constraints.ca or not usage.key_cert_sign:
        raise MalformedCertificate("an issuer in the chain may not sign certificates")
    if constraints.path_length is not None and constraints.path_length < below:
        raise MalformedCertificate(f"an issuer in the chain has a path length of {constraints.path_length}")
    for extension in extensions:
        if extension.critical and extension.oid not in _OF_AN_ISSUER:
            oid = extension.oid.dotted_string
            raise MalformedCertificate(f"an issuer in the chain has an unknown critical extension {oid}")


def _check_signed(below: x509.Certificate, above: x509.Certificate) -> None:
    try:
        if below.signature_algorithm_oid not in _SIGNATURES:
            raise MalformedCertificate("a certificate of the chain is not signed with SHA-256")
        below.verify_directly_issued_by(above)
    except MalformedCertificate:
        raise
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        raise MalformedCertificate("a certificate of the chain is not signed by the next") from None


def _parts(certificate: x509.Certificate) -> tuple[bytes, ...]:
    """What stands in the TBSCertificate of version 3 (RFC 5280, 4.1): the algorithm at 2, the key at 6."""
    return parts_of.children(certificate.tbs_certificate_bytes)


def _extensions(certificate: x509.Certificate) -> tuple[bytes, ...]:
    """What stands in its [3], the last part."""
    return parts_of.children(parts_of.children(_parts(certificate)[-1])[0])


def _spki(certificate: x509.Certificate) -> bytes:
    # As it stands there: the parser would give the same key for each of its encodings.
    spki = _parts(certificate)[6]
    try:
        ecdsa.public_key(spki)
    except ecdsa.MalformedKey as error:
        raise MalformedCertificate(f"the leaf's key is {error}") from None
    return spki


def _usages(usage: x509.KeyUsage) -> set[str]:
    kinds = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
    )
    return {kind for kind in kinds if getattr(usage, kind)}


def _names(san: x509.Extension[x509.SubjectAlternativeName]) -> tuple[names.SpiffeId, bytes | None]:
    if san.critical:
        raise MalformedCertificate("the leaf's subjectAltName is critical")
    if not list(san.value):
        raise MalformedCertificate("the leaf's subjectAltName has no name")
    uri, *others = san.value
    if not isinstance(uri, x509.UniformResourceIdentifier):
        raise MalformedCertificate("the leaf's first subjectAltName is not a URI")
    try:
        spiffe_id = names.SpiffeId.parse(uri.value)
    except names.MalformedName as error:
        raise MalformedCertificate(f"the leaf's URI is {error}") from None
    match others:
        case []:
            return spiffe_id, None
        case [x509.OtherName(type_id=type_id, value=value)] if type_id == PERMANENT_IDENTIFIER:
            return spiffe_id, _ak_name(value)
    raise MalformedCertificate("the leaf has names besides its SPIFFE ID")


def permanent_identifier(ak_name: bytes) -> x509.OtherName:
    """The name beside a certified join's SPIFFE ID. `ak_name` is the attestation key's TPM name, 34 bytes."""
    text = f"urn:bc:tpm-ak:{ak_name.hex()}".encode()
    return x509.OtherName(PERMANENT_IDENTIFIER, bytes((0x30, len(text) + 2, 0x0C, len(text))) + text)


def _ak_name(value: bytes) -> bytes:
    """PermanentIdentifier ::= SEQUENCE { UTF8String }: 30 len 0c len text, 82 bytes of text, short lengths."""
    text = value[4:]
    found = _AK_NAME.fullmatch(text)
    if not found or value[:4] != bytes((0x30, len(text) + 2, 0x0C, len(text))):
        raise MalformedCertificate("the leaf's permanent identifier is not urn:bc:tpm-ak:<name>")
    return bytes.fromhex(found[1].decode())


def _subject(subject: x509.Name) -> tuple[names.NodeId, names.Role]:
    rdns = [list(rdn) for rdn in subject.rdns]
    if [[attribute.oid for attribute in rdn] for rdn in rdns] != [
        [NameOID.COMMON_NAME],
        [NameOID.ORGANIZATIONAL_UNIT_NAME],
    ]:
        raise MalformedCertificate("the leaf's subject is not CN and OU")
    node, unit = (str(rdn[0].value) for rdn in rdns)
    if not unit.startswith(ROLE_PREFIX):
        raise MalformedCertificate(f"the leaf's OU is not {ROLE_PREFIX}<role>")
    try:
        return names.node_id(node), names.role(unit.removeprefix(ROLE_PREFIX))
    except names.MalformedName as error:
        raise MalformedCertificate(f"the leaf's subject: {error}") from None
