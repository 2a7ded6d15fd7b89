"""The certificate authorities: node root, issuing CA, serving CA. P-256, ECDSA-SHA256."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ecdsa

ROOT_LIFETIME = timedelta(days=20 * 365)
CA_LIFETIME = timedelta(days=10 * 365)
# A node checks these dates by its own clock, which may be slow on its first day.
CA_BACKDATE = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def self_issued(what: str, key: ec.EllipticCurvePrivateKey, now: datetime, path_length: int) -> x509.Certificate:
    """A root (path length 1, above an issuing CA) or a CA that stands alone (0)."""
    lifetime = ROOT_LIFETIME if path_length else CA_LIFETIME
    builder = _builder(key, key, now, lifetime, path_length).issuer_name(_name(what, key))
    return builder.subject_name(_name(what, key)).sign(key, hashes.SHA256())


def issued_by(root: Authority, what: str, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    builder = _builder(key, root.key, now, CA_LIFETIME, 0).issuer_name(root.certificate.subject)
    return builder.subject_name(_name(what, key)).sign(root.key, hashes.SHA256())


def serial() -> int:
    """128 random bits, positive."""
    return x509.random_serial_number() >> 31


def _name(what: str, key: ec.EllipticCurvePrivateKey) -> x509.Name:
    # Part of the pin tells two CAs of one kind apart while one takes over from the other.
    short = Pin.of(ecdsa.spki_of(key.public_key())).text.removeprefix("sha256:")[:8]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bc {what} {short}")])


def _builder(
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
    path_length: int,
) -> x509.CertificateBuilder:
    not_before = (now - CA_BACKDATE).replace(microsecond=0)
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .serial_number(serial())
        .not_valid_before(not_before)
        .not_valid_after(not_before + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
