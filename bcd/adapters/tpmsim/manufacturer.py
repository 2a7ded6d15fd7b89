"""A manufacturer of TPMs for tests: its certificate authority in a directory, and certificates for endorsement keys.

The directory holds `root.pem`, `issuing.pem`, and their private keys `root.key` and `issuing.key`, mode 0600."""

import datetime
import os
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID, ObjectIdentifier

# TCG EK Credential Profile 2.5, 3.2.9 and 3.2.16; the id is no manufacturer's of the TCG's registry.
_TPM_MANUFACTURER = ObjectIdentifier("2.23.133.2.1")
_TPM_MODEL = ObjectIdentifier("2.23.133.2.2")
_TPM_VERSION = ObjectIdentifier("2.23.133.2.3")
_EK_CERTIFICATE = ObjectIdentifier("2.23.133.8.1")
MANUFACTURER = "id:42434453"
_MODEL = "tpmsim"
_FIRMWARE = "id:00010000"
# RFC 5280, 4.1.2.5: for what has no end.
_NEVER = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
ROOT, ISSUING = "root.pem", "issuing.pem"


@dataclass(frozen=True)
class Manufacturer:
    """An issuing authority, ready to sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def certify(self, public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, now: datetime.datetime) -> bytes:
        """The DER certificate of an endorsement key."""
        names = [
            x509.NameAttribute(_TPM_MANUFACTURER, MANUFACTURER),
            x509.NameAttribute(_TPM_MODEL, _MODEL),
            x509.NameAttribute(_TPM_VERSION, _FIRMWARE),
        ]
        # One directory name with three RDNs, as manufacturers have it.
        directory = x509.DirectoryName(x509.Name(names))
        wraps = isinstance(public, rsa.RSAPublicKey)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now)
            .not_valid_after(_NEVER)
            # Critical, as the subject is empty (RFC 5280, 4.2.1.6).
            .add_extension(x509.SubjectAlternativeName([directory]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(encipher=wraps, agree=not wraps), critical=True)
            .add_extension(x509.ExtendedKeyUsage([_EK_CERTIFICATE]), critical=False)
            .add_extension(_authority_key(self.certificate), critical=False)
            .sign(self.key, hashes.SHA256())
            .public_bytes(Encoding.DER)
        )


def founded(directory: str, now: datetime.datetime) -> Manufacturer:
    """The manufacturer of `directory`, made if it is not there. OSError as the system gave it; ValueError when what
    is there is no manufacturer's."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if not os.path.lexists(os.path.join(directory, ROOT)):
        _found(directory, now)
    certificate = x509.load_pem_x509_certificate(_read(directory, ISSUING))
    key = load_pem_private_key(_read(directory, "issuing.key"), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("issuing.key is not the key of issuing.pem")
    return Manufacturer(certificate, key)


def _found(directory: str, now: datetime.datetime) -> None:
    root_key, issuing_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name, issuing_name = _named("bcd test TPM root CA"), _named("bcd test TPM issuing CA")
    root = _authority(root_name, root_key.public_key(), (root_name, root_key), 1, now)
    issuing = _authority(issuing_name, issuing_key.public_key(), (root_name, root_key), 0, now)
    _write(directory, "issuing.key", _pem(issuing_key))
    _write(directory, ISSUING, issuing.public_bytes(Encoding.PEM))
    _write(directory, "root.key", _pem(root_key))
    # Last: it is what says that all are there.
    _write(directory, ROOT, root.public_bytes(Encoding.PEM))


def _authority(
    subject: x509.Name,
    public: ec.EllipticCurvePublicKey,
    issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey],
    path_length: int,
    now: datetime.datetime,
) -> x509.Certificate:
    issuer_name, key = issuer
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(_NEVER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _named(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _authority_key(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found)


def _key_usage(*, encipher: bool = False, agree: bool = False, sign_certificates: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=encipher,
        data_encipherment=False,
        key_agreement=agree,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(directory: str, name: str) -> bytes:
    with open(os.path.join(directory, name), "rb") as file:
        return file.read()


def _write(directory: str, name: str, content: bytes) -> None:
    mode = 0o600 if name.endswith(".key") else 0o644
    path = os.path.join(directory, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb") as file:
        file.write(content)
