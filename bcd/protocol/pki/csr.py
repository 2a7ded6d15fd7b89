"""PKCS#10 requests (RFC 2986): a fixed subject, no attributes; only the key counts."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bcd.protocol.pki import der, ecdsa

SUBJECT = "bcd node"
# A P-256 request with this subject is about 200 bytes.
MAX_CSR_BYTES = 4096


class MalformedCsr(ValueError):
    """Not a request the control plane takes; the message says why."""


def make_csr(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The request for `key`, DER, signed by it (ECDSA with SHA-256)."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SUBJECT)])
    return x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256()).public_bytes(_DER)


def key_of(csr: bytes) -> bytes:
    """The requested key, SubjectPublicKeyInfo DER, once the request's own signature has proved possession of it."""
    if len(csr) > MAX_CSR_BYTES:
        raise MalformedCsr("longer than a request can be")
    try:
        request = x509.load_der_x509_csr(csr)
        key = request.public_key()
        algorithm = request.signature_hash_algorithm
        attributes = len(request.attributes)
        subject = request.subject
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise MalformedCsr("not a PKCS#10 request") from None
    # Unused bits in the BIT STRING of the signature are signed by nothing and give one request other bytes.
    if request.public_bytes(_DER) != csr or not csr.endswith(b"\x00" + request.signature):
        raise MalformedCsr("not DER")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise MalformedCsr("not a P-256 key")
    if not isinstance(algorithm, hashes.SHA256) or not request.is_signature_valid:
        raise MalformedCsr("not signed by its own key with ECDSA-SHA256")
    if attributes:
        raise MalformedCsr("has attributes")
    expected = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SUBJECT)])
    if subject != expected:
        raise MalformedCsr(f"has another subject than CN={SUBJECT}")
    # As it stands in CertificationRequestInfo: the parser would give the same key for each of its encodings.
    spki = der.children(request.tbs_certrequest_bytes)[2]
    try:
        ecdsa.public_key(spki)
    except ecdsa.MalformedKey as error:
        raise MalformedCsr(str(error)) from None
    return spki


_DER = serialization.Encoding.DER
