"""P-256 keys and signatures as they stand on the wire: SubjectPublicKeyInfo DER, P1363, RFC 7638 thumbprints."""

import base64
import json
from hashlib import sha256

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from bcd.domain.model.keys import Hash

# FIPS 186-5 and SEC 2: the order of P-256's group, and a coordinate's or a signature half's length.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
HALF_BYTES = 32
SIGNATURE_BYTES = 2 * HALF_BYTES
_HASHES: dict[Hash, hashes.HashAlgorithm] = {
    Hash.SHA256: hashes.SHA256(),
    Hash.SHA384: hashes.SHA384(),
    Hash.SHA512: hashes.SHA512(),
}


class MalformedKey(ValueError):
    """Not a P-256 public key in the form the protocol has for it."""


def public_key(spki: bytes) -> ec.EllipticCurvePublicKey:
    """The P-256 key in SubjectPublicKeyInfo DER; anything else, another encoding of it included, is MalformedKey."""
    try:
        key = serialization.load_der_public_key(spki)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise MalformedKey("not a SubjectPublicKeyInfo") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise MalformedKey("not a P-256 key")
    if spki_of(key) != spki:
        # A second encoding of one key would give it a second pin.
        raise MalformedKey("a P-256 key in another encoding than named curve, uncompressed point")
    return key


def spki_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """SubjectPublicKeyInfo, DER: named curve, uncompressed point (RFC 5480)."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def to_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """RFC 7517 members of a P-256 public key, those of the thumbprint alone."""
    numbers = key.public_numbers()
    return {
        "crv": "P-256",
        "kty": "EC",
        "x": base64url(numbers.x.to_bytes(HALF_BYTES)),
        "y": base64url(numbers.y.to_bytes(HALF_BYTES)),
    }


def thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """RFC 7638 with SHA-256, base64url without padding: the protocol's `kid`."""
    canonical = json.dumps(to_jwk(key), separators=(",", ":"), sort_keys=True)
    return base64url(sha256(canonical.encode()).digest())


def base64url(data: bytes) -> str:
    """Base64url without padding (RFC 7515, section 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(key: ec.EllipticCurvePrivateKey, message: bytes, digest: Hash = Hash.SHA256) -> bytes:
    """ECDSA over the message's digest, P1363, 64 bytes."""
    return p1363(key.sign(message, ec.ECDSA(_HASHES[digest])))


def p1363(der: bytes) -> bytes:
    """A DER ECDSA signature as r then s, 32 bytes each, big-endian."""
    r, s = decode_dss_signature(der)
    return r.to_bytes(HALF_BYTES) + s.to_bytes(HALF_BYTES)


def verifies(key: ec.EllipticCurvePublicKey, message: bytes, signature: bytes, digest: Hash = Hash.SHA256) -> bool:
    """Whether `signature` (P1363, 64 bytes, r and s in [1, n-1], high s accepted) is over the message's digest."""
    if len(signature) != SIGNATURE_BYTES:
        return False
    r = int.from_bytes(signature[:HALF_BYTES])
    s = int.from_bytes(signature[HALF_BYTES:])
    if not (0 < r < _ORDER and 0 < s < _ORDER):
        return False
    try:
        key.verify(encode_dss_signature(r, s), message, ec.ECDSA(_HASHES[digest]))
    except InvalidSignature:
        return False
    return True
