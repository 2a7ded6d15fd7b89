"""Certificates, trust bundles and join responses as docs/protocol.md has them, each with departures on demand.

Keys are fixed by a number, so a test that fails fails again; signatures are not (ECDSA draws a nonce). The fixed
instant is NOW: everything made here is in date then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId, TrustDomain
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements

NOW = datetime(2026, 9, 26, 12, 0, tzinfo=UTC)
DOMAIN = TrustDomain("example.org")
SITE = SiteId("hall-2")
NODE = NodeId("n-7")
SPIFFE_ID = SpiffeId(DOMAIN, SITE, NODE)
NOT_BEFORE = NOW - timedelta(minutes=5)
NOT_AFTER = NOT_BEFORE + timedelta(hours=24)
AK_NAME = bytes.fromhex("000b") + bytes(range(32))

PERMANENT_IDENTIFIER = ObjectIdentifier("1.3.6.1.5.5.7.8.3")
Extension = tuple[x509.ExtensionType, bool]


def private_key(number: int) -> ec.EllipticCurvePrivateKey:
    """The P-256 key whose secret is `number`."""
    return ec.derive_private_key(number, ec.SECP256R1())


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return ecdsa.spki_of(key.public_key())


NODE_KEY = private_key(1001)
SIGNING_KEY = private_key(1002)
ENCRYPTION_KEY = private_key(1003)
OTHER_KEY = private_key(1004)
ROOT_KEY = private_key(1005)
COMMAND_ROOT = spki(private_key(1006))
CSR = csr.make_csr(NODE_KEY)
PINS = Pins((Pin.of(spki(SIGNING_KEY)),))


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def subject(node: str = NODE, unit: str = "bc-role:node") -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, node), x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)]
    )


def key_usage(*usages: str) -> x509.KeyUsage:
    kinds = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign"
    )
    return x509.KeyUsage(**{kind: kind in usages for kind in kinds.split()}, encipher_only=False, decipher_only=False)


def permanent_identifier(text: bytes) -> x509.OtherName:
    """RFC 4043 with an identifier and no assigner."""
    return x509.OtherName(PERMANENT_IDENTIFIER, bytes((0x30, len(text) + 2, 0x0C, len(text))) + text)


def certificate(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: object,
    signer: object,
    extensions: Sequence[Extension],
    not_before: datetime,
    not_after: datetime,
    algorithm: hashes.HashAlgorithm | None = hashes.SHA256(),  # noqa: B008 - stateless
    serial: int = 4711,
) -> bytes:
    """Any certificate, DER, properly signed by `signer`."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)  # type: ignore[arg-type]
        .serial_number(serial)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, algorithm).public_bytes(serialization.Encoding.DER)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ca:
    """An issuing CA and what stands above it, without the root."""

    key: ec.EllipticCurvePrivateKey
    name: x509.Name
    above: tuple[bytes, ...]


def ca(
    number: int = 2001,
    *,
    above: "Ca | None" = None,
    name: str = "example.org node CA",
    not_before: datetime = NOW - timedelta(days=30),
    not_after: datetime = NOW + timedelta(days=30),
    is_ca: bool = True,
    usages: Sequence[str] = ("key_cert_sign", "crl_sign"),
    signer: ec.EllipticCurvePrivateKey | None = None,
    extensions: Sequence[Extension] | None = None,
    algorithm: hashes.HashAlgorithm = hashes.SHA256(),  # noqa: B008 - stateless
) -> Ca:
    """An issuing CA, signed by the root, or by `above`; `signer` signs in its stead."""
    key = private_key(number)
    if extensions is None:
        extensions = [(x509.BasicConstraints(is_ca, None), True), (key_usage(*usages), True)]
    der = certificate(
        subject=common_name(name),
        issuer=above.name if above else common_name("example.org root"),
        key=key.public_key(),
        signer=signer or (above.key if above else ROOT_KEY),
        extensions=extensions,
        not_before=not_before,
        not_after=not_after,
        algorithm=algorithm,
    )
    return Ca(key, common_name(name), (der, *(above.above if above else ())))


CA = ca()


def leaf(
    issuer: Ca = CA,
    *,
    key: object = NODE_KEY.public_key(),
    spiffe_id: SpiffeId | str = SPIFFE_ID,
    role: Role | str = Role.NODE,
    names: Sequence[x509.GeneralName] = (),
    leaf_subject: x509.Name | None = None,
    change: Mapping[type[x509.ExtensionType], Extension | None] | None = None,
    more: Sequence[Extension] = (),
    not_before: datetime = NOT_BEFORE,
    not_after: datetime = NOT_AFTER,
    signer: object = None,
    algorithm: hashes.HashAlgorithm | None = hashes.SHA256(),  # noqa: B008 - stateless
    issuer_name: x509.Name | None = None,
    serial: int = 4711,
) -> bytes:
    """A leaf by the profile, DER. `names` follow the SPIFFE ID; `change` replaces an extension, None leaves it out."""
    node = spiffe_id.node if isinstance(spiffe_id, SpiffeId) else NODE
    uri = x509.UniformResourceIdentifier(str(spiffe_id))
    extensions: dict[type[x509.ExtensionType], Extension | None] = {
        x509.BasicConstraints: (x509.BasicConstraints(False, None), True),
        x509.KeyUsage: (key_usage("digital_signature"), True),
        x509.ExtendedKeyUsage: (
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
            False,
        ),
        x509.SubjectAlternativeName: (x509.SubjectAlternativeName([uri, *names]), False),
    }
    extensions |= change or {}
    return certificate(
        subject=subject(node, f"bc-role:{role}") if leaf_subject is None else leaf_subject,
        issuer=issuer_name or issuer.name,
        key=key,
        signer=signer or issuer.key,
        extensions=[*(e for e in extensions.values() if e is not None), *more],
        not_before=not_before,
        not_after=not_after,
        algorithm=algorithm,
        serial=serial,
    )


def chain(issuer: Ca = CA, **departures: object) -> tuple[bytes, ...]:
    """A leaf (see `leaf`) and the CAs above it."""
    return (leaf(issuer, **departures), *issuer.above)  # type: ignore[arg-type]


def signed(
    purpose: statements.Purpose, payload: bytes, by: ec.EllipticCurvePrivateKey = SIGNING_KEY
) -> pb.SignedStatement:
    return statements.make(purpose, payload, by.public_key(), lambda message: ecdsa.sign(by, message))


def bundle_payload(**fields: object) -> bytes:
    """A TrustBundle of DOMAIN, version 3, one root; `fields` replace its own."""
    told: dict[str, object] = {"trust_domain": DOMAIN, "version": 3, "command_roots": [COMMAND_ROOT], "quorum": 2}
    bundle = pb.TrustBundle(**(told | fields))  # type: ignore[arg-type]
    bundle.issued_at.FromDatetime(NOW)
    return bundle.SerializeToString(deterministic=True)


def trust_bundle(by: ec.EllipticCurvePrivateKey = SIGNING_KEY, **fields: object) -> pb.SignedStatement:
    return signed(statements.Purpose.TRUST_BUNDLE, bundle_payload(**fields), by)


def response_payload(
    *,
    request: bytes = CSR,
    certificates: Sequence[bytes] | None = None,
    bundle: pb.SignedStatement | None = None,
    server_time: datetime = NOW,
) -> bytes:
    """A JoinResponse payload, to be signed."""
    response = pb.JoinResponse(
        csr_sha256=ecdsa.sha256(request).digest(),
        chain=chain() if certificates is None else certificates,
        trust_bundle=trust_bundle() if bundle is None else bundle,
    )
    response.server_time.FromDatetime(server_time)
    return response.SerializeToString(deterministic=True)


def join_response(by: ec.EllipticCurvePrivateKey = SIGNING_KEY, **departures: object) -> bytes:
    """A signed join response as it crosses the wire; `departures` are those of `response_payload`."""
    payload = response_payload(**departures)  # type: ignore[arg-type]
    return signed(statements.Purpose.JOIN_RESPONSE, payload, by).SerializeToString(deterministic=True)
