"""A key of which only the public half and signatures are to be had, where cryptography wants a private key."""

from collections.abc import Callable
from typing import NoReturn

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bcd.domain.model.keys import Hash
from bcd.protocol.pki import ecdsa

_DIGESTS: dict[type[hashes.HashAlgorithm], Hash] = {
    hashes.SHA256: Hash.SHA256,
    hashes.SHA384: Hash.SHA384,
    hashes.SHA512: Hash.SHA512,
}


class OutsideKey(ec.EllipticCurvePrivateKey):
    """A P-256 key: `spki` is DER, and `sign` gives ECDSA over a message's digest, P1363, 64 bytes. What cannot be had
    raises TypeError."""

    def __init__(self, spki: bytes, sign: Callable[[bytes, Hash], bytes]) -> None:
        self._public = ecdsa.public_key(spki)
        self._sign = sign

    def sign(self, data: object, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """A DER ECDSA signature, as cryptography wants it; whatever `sign` raises."""
        algorithm = signature_algorithm.algorithm
        digest = _DIGESTS.get(type(algorithm)) if isinstance(algorithm, hashes.HashAlgorithm) else None
        if digest is None or not isinstance(data, bytes):
            raise TypeError("signs a message with SHA-256, SHA-384 or SHA-512")
        signature = self._sign(data, digest)
        half = ecdsa.HALF_BYTES
        return encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))

    def public_key(self) -> ec.EllipticCurvePublicKey:
        return self._public

    @property
    def curve(self) -> ec.EllipticCurve:
        return self._public.curve

    @property
    def key_size(self) -> int:
        return self._public.key_size

    def exchange(self, algorithm: ec.ECDH, peer_public_key: ec.EllipticCurvePublicKey) -> NoReturn:
        del algorithm, peer_public_key
        raise TypeError("only signs")

    def private_numbers(self) -> NoReturn:
        raise TypeError("only signs")

    def private_bytes(
        self,
        encoding: serialization.Encoding,
        format: serialization.PrivateFormat,
        encryption_algorithm: serialization.KeySerializationEncryption,
    ) -> NoReturn:
        del encoding, format, encryption_algorithm
        raise TypeError("only signs")

    def __copy__(self) -> "OutsideKey":
        return self

    def __deepcopy__(self, memo: object) -> "OutsideKey":
        return self
