"""What a key in a TPM is called: its name, and its public key as the rest of the world writes it."""

import hashlib
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bcd.protocol.tpm2.structures import Algorithm, Curve, EccParameters, Point, Public
from bcd.protocol.tpm2.wire import Malformed, bytes_of

_HASHES: dict[int, Callable[[bytes], "hashlib._Hash"]] = {
    Algorithm.SHA1: hashlib.sha1,
    Algorithm.SHA256: hashlib.sha256,
    Algorithm.SHA384: hashlib.sha384,
    Algorithm.SHA512: hashlib.sha512,
}
# Part 2, 12.2.3.5: exponent 0 stands for it.
_DEFAULT_EXPONENT = 65537


def name(public: Public) -> bytes:
    """nameAlg and the digest of the public area (Part 1, 16); Malformed for another name algorithm."""
    hashed = _HASHES.get(public.name_algorithm)
    if hashed is None:
        raise Malformed(f"name algorithm 0x{public.name_algorithm:04x}")
    return public.name_algorithm.to_bytes(2) + hashed(bytes_of(public)).digest()


def spki(public: Public) -> bytes:
    """The key as DER SubjectPublicKeyInfo: rsaEncryption with NULL, or P-256. Malformed for no such key."""
    try:
        if isinstance(public.unique, Point):
            if not isinstance(public.parameters, EccParameters) or public.parameters.curve != Curve.P256:
                raise Malformed("not P-256")
            x, y = int.from_bytes(public.unique.x), int.from_bytes(public.unique.y)
            return _der(ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key())
        exponent = getattr(public.parameters, "exponent", 0) or _DEFAULT_EXPONENT
        return _der(rsa.RSAPublicNumbers(exponent, int.from_bytes(public.unique)).public_key())
    except Malformed:
        raise
    except ValueError:
        raise Malformed("no public key") from None


def _der(key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def in_certificate(public: Public, certificate: bytes) -> bool:
    """Whether the key's own bytes stand in `certificate`.

    No parser: the certificates manufacturers put into TPMs are padded, prefixed and out of form, and their keys are
    in them all the same."""
    if isinstance(public.unique, Point):
        x, y = public.unique.x.rjust(32, b"\0"), public.unique.y.rjust(32, b"\0")
        return x + y in certificate
    return len(public.unique) > 0 and public.unique in certificate
