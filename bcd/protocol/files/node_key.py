"""`node.key` and `node.key.next`: a PKCS#8 PEM, or the record of a key in the TPM (specification, the file table)."""

import base64
import binascii
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.protocol.files.encoding import MalformedFile

TPM_LABEL = "BCD TPM NODE KEY"
UNIQUE_BYTES = 32


@dataclass(frozen=True)
class TpmRecord:
    """The 32-byte unique a TPM derives the key from."""

    unique: bytes


def decode(data: bytes) -> ec.EllipticCurvePrivateKey | TpmRecord:
    """The key or the record in `data`, or MalformedFile."""
    if not data:
        raise MalformedFile("is empty")
    if not data.strip(b"\x00"):
        raise MalformedFile("holds only zero bytes")
    if data.startswith(f"-----BEGIN {TPM_LABEL}-----".encode()):
        return _record(data)
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        raise MalformedFile("is not a PKCS#8 PEM (torn?)") from None
    if not data.startswith(b"-----BEGIN PRIVATE KEY-----"):
        raise MalformedFile("is not a PKCS#8 PEM (want PRIVATE KEY)")
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise MalformedFile("is not a P-256 key")
    return key


def encode_file_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _record(data: bytes) -> TpmRecord:
    lines = data.decode("ascii", "replace").split("\n")
    if len(lines) != 4 or lines[2] != f"-----END {TPM_LABEL}-----" or lines[3] != "":  # noqa: PLR2004 - PEM of 32 bytes
        raise MalformedFile("is a TPM record that is torn")
    try:
        unique = base64.b64decode(lines[1], validate=True)
    except (binascii.Error, ValueError):
        raise MalformedFile("is a TPM record that is not base64") from None
    if len(unique) != UNIQUE_BYTES:
        raise MalformedFile(f"is a TPM record of {len(unique)} bytes, want {UNIQUE_BYTES}")
    return TpmRecord(unique)
