"""A public key from a file that names one: PEM or DER, the key itself or a certificate of it."""

from collections.abc import Callable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.adapters.files.directory import translated
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.messages import Message
from bcd.protocol.pki import ecdsa

# A certificate with many names is a few KiB.
MAX_BYTES = 1 << 16
_READERS: tuple[Callable[[bytes], object], ...] = (
    serialization.load_pem_public_key,
    serialization.load_der_public_key,
    lambda data: x509.load_pem_x509_certificate(data).public_key(),
    lambda data: x509.load_der_x509_certificate(data).public_key(),
)


def read(path: str) -> bytes:
    """SubjectPublicKeyInfo DER; a Failure when the file holds no P-256 key, or more than one thing."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise translated(error, path) from None
    if len(data) > MAX_BYTES:
        raise Usage(Message.NOT_A_PUBLIC_KEY, path=path, why="too large")
    if b"PRIVATE KEY" in data:
        raise Usage(Message.NOT_A_PUBLIC_KEY, path=path, why="a private key, which stays where it is used")
    if data.count(b"-----BEGIN ") > 1:
        # Which of them was meant is not ours to guess.
        raise Usage(Message.NOT_A_PUBLIC_KEY, path=path, why="more than one thing in it")
    for reader in _READERS:
        try:
            key = reader(data)
        except (ValueError, UnsupportedAlgorithm):
            continue
        if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
            return ecdsa.spki_of(key)
        raise Usage(Message.NOT_A_PUBLIC_KEY, path=path, why="not a P-256 key")
    raise Usage(Message.NOT_A_PUBLIC_KEY, path=path, why="not a public key or certificate")
