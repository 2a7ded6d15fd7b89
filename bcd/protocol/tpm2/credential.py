"""Credentials (TPM 2.0 Library, Part 1, 24): a secret that one endorsement key opens for one attestation key alone.

Made by who wants to know whether both are in one TPM, opened by TPM2_ActivateCredential.
"""

import hmac
import secrets
from hashlib import sha256

from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.serialization import load_der_public_key

from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.structures import Algorithm, Point, Public
from bcd.protocol.tpm2.wire import Malformed, Reader, decode, encode

# The seed has the length of the endorsement key's name algorithm (Part 1, B.10.3), SHA-256 in both templates.
SEED_BYTES = 32
# Labels end with a zero byte (Part 1, 11.4.10.2).
_IDENTITY, _STORAGE, _INTEGRITY = b"IDENTITY\0", b"STORAGE\0", b"INTEGRITY\0"
_AES_128_BITS, _SHA256_BITS = 128, 256
_OAEP = OAEP(MGF1(hashes.SHA256()), hashes.SHA256(), _IDENTITY)


def make_credential(ek: Public, name: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """TPMS_ID_OBJECT and what TPM2B_ENCRYPTED_SECRET holds: `secret` (at most 32 bytes) for the key called `name`.

    Malformed when `ek` protects with other algorithms than those of the two endorsement templates."""
    if ek.name_algorithm != Algorithm.SHA256 or ek.parameters.symmetric != templates.EK_RSA_2048.parameters.symmetric:
        raise Malformed("no key that protects with SHA-256 and AES-128")
    key = load_der_public_key(names.spki(ek))
    if isinstance(key, rsa.RSAPublicKey):
        seed = secrets.token_bytes(SEED_BYTES)
        return wrap(seed, name, secret), key.encrypt(seed, _OAEP)
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise Malformed("neither RSA nor P-256")
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    shared = ephemeral.exchange(ec.ECDH(), key)
    numbers = ephemeral.public_key().public_numbers()
    point = Point(numbers.x.to_bytes(templates.P256_BYTES), numbers.y.to_bytes(templates.P256_BYTES))
    return wrap(_kdf_e(shared, numbers.x, key.public_numbers().x), name, secret), encode(point)


def seed_of(ek: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, encrypted_secret: bytes) -> bytes:
    """The seed, by the private endorsement key. Malformed when there is none in it."""
    try:
        if isinstance(ek, rsa.RSAPrivateKey):
            return ek.decrypt(encrypted_secret, _OAEP)
        point = decode(Point, encrypted_secret)
        x = int.from_bytes(point.x)
        ephemeral = ec.EllipticCurvePublicNumbers(x, int.from_bytes(point.y), ec.SECP256R1()).public_key()
        return _kdf_e(ek.exchange(ec.ECDH(), ephemeral), x, ek.public_key().public_numbers().x)
    except ValueError:
        raise Malformed("no seed for this key") from None


def wrap(seed: bytes, name: bytes, secret: bytes) -> bytes:
    """TPMS_ID_OBJECT: the secret, encrypted and bound to `name` by an HMAC, both keyed by `seed`."""
    encryptor = _cipher(seed, name).encryptor()
    # TPM2B_DIGEST, its length encrypted with it.
    encrypted = encryptor.update(len(secret).to_bytes(2) + secret) + encryptor.finalize()
    integrity = _integrity(seed, encrypted, name)
    return len(integrity).to_bytes(2) + integrity + encrypted


def unwrap(seed: bytes, name: bytes, credential: bytes) -> bytes:
    """The secret of a TPMS_ID_OBJECT. Malformed when it was not made with this seed for this name."""
    reader = Reader(credential)
    integrity = reader.take(int.from_bytes(reader.take(2)))
    encrypted = reader.rest()
    if not hmac.compare_digest(integrity, _integrity(seed, encrypted, name)):
        raise Malformed("another key's credential")
    decryptor = _cipher(seed, name).decryptor()
    inner = Reader(decryptor.update(encrypted) + decryptor.finalize())
    secret = inner.take(int.from_bytes(inner.take(2)))
    inner.end()
    return secret


def _cipher(seed: bytes, name: bytes) -> "Cipher[CFB]":
    return Cipher(AES(_kdf_a(seed, _STORAGE, name, _AES_128_BITS)), CFB(bytes(16)))


def _integrity(seed: bytes, encrypted: bytes, name: bytes) -> bytes:
    return hmac.digest(_kdf_a(seed, _INTEGRITY, b"", _SHA256_BITS), encrypted + name, "sha256")


def _kdf_a(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """KDFa with SHA-256 (Part 1, 11.4.10.2), for at most one block."""
    return hmac.digest(key, (1).to_bytes(4) + label + context + bits.to_bytes(4), "sha256")[: bits // 8]


def _kdf_e(shared: bytes, ephemeral_x: int, ek_x: int) -> bytes:
    """KDFe with SHA-256 (Part 1, 11.4.10.3), for one block: coordinates at their full length."""
    parties = ephemeral_x.to_bytes(templates.P256_BYTES) + ek_x.to_bytes(templates.P256_BYTES)
    return sha256((1).to_bytes(4) + shared + _IDENTITY + parties).digest()
