"""Whether one manufacturer's certificate is signed with the key of another."""

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from bcd.protocol.pki.ek_certificate import ManufacturerCertificate

# RFC 8017 and RFC 5758. SHA-1 because CAs of chips that are in use sign with it: to gain by that, somebody would have
# to find another text for a certificate that the manufacturer signed before.
_RSA: Mapping[str, hashes.HashAlgorithm] = {
    "1.2.840.113549.1.1.5": hashes.SHA1(),  # noqa: S303
    "1.2.840.113549.1.1.11": hashes.SHA256(),
    "1.2.840.113549.1.1.12": hashes.SHA384(),
    "1.2.840.113549.1.1.13": hashes.SHA512(),
}
_ECDSA: Mapping[str, hashes.HashAlgorithm] = {
    "1.2.840.10045.4.3.2": hashes.SHA256(),
    "1.2.840.10045.4.3.3": hashes.SHA384(),
    "1.2.840.10045.4.3.4": hashes.SHA512(),
}
KNOWN = frozenset({*_RSA, *_ECDSA})


def is_signed_by(below: ManufacturerCertificate, above: ManufacturerCertificate) -> bool:
    """False for an algorithm not in KNOWN, too, and for a key of the other kind."""
    key = load_der_public_key(above.spki)
    algorithm = below.signature_algorithm
    try:
        if isinstance(key, rsa.RSAPublicKey) and algorithm in _RSA:
            key.verify(below.signature, below.signed, padding.PKCS1v15(), _RSA[algorithm])
        elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm in _ECDSA:
            key.verify(below.signature, below.signed, ec.ECDSA(_ECDSA[algorithm]))
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True
