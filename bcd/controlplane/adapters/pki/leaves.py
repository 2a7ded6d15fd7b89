"""Certificates that are no CA's: node leaves by the issuing CA, the serving leaf by the serving CA."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bcd.controlplane.adapters.pki.authorities import Authority, serial
from bcd.controlplane.domain.certificates import LeafToIssue
from bcd.controlplane.ports.signing import CannotIssue
from bcd.protocol.pki import ecdsa
from bcd.protocol.pki.certificates import ROLE_PREFIX, permanent_identifier

SERVING_LIFETIME = timedelta(days=90)
SERVING_RENEW_BEFORE = timedelta(days=30)
SERVING_BACKDATE = timedelta(hours=1)

_DIGITAL_SIGNATURE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class IssuingCa:
    """`ports.signing.Issuer` over a CA whose key is at hand."""

    authority: Authority

    def issue(self, leaf: LeafToIssue) -> tuple[bytes, ...]:
        if leaf.not_after > self.authority.certificate.not_valid_after_utc:
            raise CannotIssue(f"the issuing CA ends at {self.authority.certificate.not_valid_after_utc}")
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, leaf.spiffe_id.node),
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"{ROLE_PREFIX}{leaf.role.value}"),
            ]
        )
        certificate = (
            _builder(self.authority, ecdsa.public_key(leaf.spki))
            .subject_name(subject)
            .serial_number(leaf.serial)
            .not_valid_before(leaf.not_before)
            .not_valid_after(leaf.not_after)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName(_names(leaf)), critical=False)
            .sign(self.authority.key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.DER), self.authority.der


def _names(leaf: LeafToIssue) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(str(leaf.spiffe_id))]
    if leaf.ak_name is not None:
        names.append(permanent_identifier(leaf.ak_name))
    return names


def serving_leaf(
    authority: Authority, key: ec.EllipticCurvePrivateKey, hosts: tuple[str, ...], now: datetime
) -> x509.Certificate:
    not_before = (now - SERVING_BACKDATE).replace(microsecond=0)
    return (
        _builder(authority, key.public_key())
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bc control plane")]))
        .serial_number(serial())
        .not_valid_before(not_before)
        .not_valid_after(not_before + SERVING_LIFETIME)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([general_name(host) for host in hosts]), critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def still_serves(
    certificate: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    authority: Authority,
    hosts: tuple[str, ...],
    now: datetime,
) -> bool:
    """Whether a stored serving leaf is this key's, by this CA, for these hosts, and not near its end."""
    try:
        certificate.verify_directly_issued_by(authority.certificate)
        names = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, a new one is made
        return False
    return (
        certificate.public_key() == key.public_key()
        and names == [general_name(host) for host in hosts]
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - SERVING_RENEW_BEFORE
    )


def general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(authority: Authority, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(authority.certificate.subject)
        .public_key(key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_DIGITAL_SIGNATURE, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
