"""Sealing a join token to the JoinService encryption key (docs/protocol.md, "Sealing a join token"; RFC 9180)."""

import base64
import json
import re
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from bcd.protocol.files import encoding
from bcd.protocol.pki import ecdsa

INFO = b"bc-join-seal-v1\x00"
MAX_JWK_BYTES = 4096
ENC_BYTES = 65
TAG_BYTES = 16
# JOSE's name of this suite (draft-ietf-jose-hpke-encrypt): P-256, HKDF-SHA256 and AES-256-GCM. HPKE-0 is AES-128-GCM.
ALGORITHM = "HPKE-7"
# 32 bytes in base64url without padding (RFC 7518, section 6.2.1.2): the last character holds 4 bits.
_COORDINATE = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
_SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class MalformedJwk(ValueError):
    """Not a P-256 public JWK for encryption; the message says why."""


class DoesNotOpen(Exception):
    """The sealed token is not for this key or not for this request."""


@dataclass(frozen=True)
class Sealed:
    """`sealed` is enc (65 bytes, an uncompressed point) and then the ciphertext with its tag."""

    kid: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class Recipient:
    """The JoinService encryption key as `join-encryption.jwk` gives it."""

    key: ec.EllipticCurvePublicKey

    @property
    def kid(self) -> str:
        """The key's RFC 7638 thumbprint, base64url."""
        return ecdsa.thumbprint(self.key)

    @property
    def spki(self) -> bytes:
        """SubjectPublicKeyInfo, DER: what its pin is of."""
        return ecdsa.spki_of(self.key)


def decode_recipient(data: bytes) -> Recipient:
    """The key of a JWK (RFC 7517, UTF-8). A private one is refused: it has no business on a node."""
    try:
        jwk = encoding.json_value(data) if len(data) <= MAX_JWK_BYTES else None
    except encoding.MalformedFile:
        raise MalformedJwk("is not JSON") from None
    if not isinstance(jwk, dict) or jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
        raise MalformedJwk("is not a P-256 JWK")
    if "d" in jwk:
        raise MalformedJwk("holds a private key")
    if jwk.get("use", "enc") != "enc":
        raise MalformedJwk("is not for encryption")
    if jwk.get("alg", ALGORITHM) != ALGORITHM:
        raise MalformedJwk(f"is for another suite than {ALGORITHM}")
    x, y = (_coordinate(jwk.get(name)) for name in ("x", "y"))
    try:
        key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    except ValueError:
        raise MalformedJwk("is not a point of P-256") from None
    recipient = Recipient(key)
    if jwk.get("kid", recipient.kid) != recipient.kid:
        raise MalformedJwk("has a kid that is not its thumbprint")
    return recipient


def encode_recipient(recipient: Recipient) -> bytes:
    """The JWK, JSON with a final line end."""
    jwk = ecdsa.to_jwk(recipient.key) | {"use": "enc", "alg": ALGORITHM, "kid": recipient.kid}
    return json.dumps(jwk, indent=2, sort_keys=True).encode() + b"\n"


def seal(recipient: Recipient, token: bytes, csr: bytes) -> Sealed:
    """`token` readable by the JoinService alone, and only beside this request (PKCS#10 DER)."""
    return Sealed(recipient.kid, _SUITE.encrypt(token, recipient.key, info=_info(csr)))


def open_sealed(key: ec.EllipticCurvePrivateKey, sealed: bytes, csr: bytes) -> bytes:
    """The token, or DoesNotOpen."""
    if len(sealed) < ENC_BYTES + TAG_BYTES:
        raise DoesNotOpen
    try:
        return _SUITE.decrypt(sealed, key, info=_info(csr))
    except (InvalidTag, ValueError):
        raise DoesNotOpen from None


def _info(csr: bytes) -> bytes:
    return INFO + sha256(csr).digest()


def _coordinate(value: object) -> int:
    if not isinstance(value, str):
        raise MalformedJwk("has no x or no y")
    if not _COORDINATE.fullmatch(value):
        raise MalformedJwk("has an x or y that is not 43 characters of base64url")
    return int.from_bytes(base64.urlsafe_b64decode(value + "="))
