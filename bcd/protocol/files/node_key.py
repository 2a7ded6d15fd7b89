"""`node.key` and `node.key.next`: a PKCS#8 PEM, or the record of a key in the TPM (specification, the file table)."""

import base64
import re
from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.protocol.files.encoding import MalformedFile

TPM_LABEL = "BCD TPM NODE KEY"
_BEGIN = f"-----BEGIN {TPM_LABEL}-----"
UNIQUE_BYTES = 32
# PEM readers pass over what stands before and after; here nothing may, since a torn write leaves exactly that.
_PKCS8 = re.compile(rb"-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+\n-----END PRIVATE KEY-----\n?")


@dataclass(frozen=True)
class TpmRecord:
    """The 32-byte unique a TPM derives the key from."""

    unique: bytes = field(repr=False)


def decode(data: bytes) -> ec.EllipticCurvePrivateKey | TpmRecord:
    """The key or the record in `data`, or MalformedFile."""
    if not data:
        raise MalformedFile("is empty")
    if not data.strip(b"\x00"):
        raise MalformedFile("holds only zero bytes")
    if data.startswith(_BEGIN.encode()):
        return _record(data)
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise MalformedFile("is not a PKCS#8 PEM (torn?)") from None
    if not _PKCS8.fullmatch(data):
        raise MalformedFile("is not a PKCS#8 PEM (want PRIVATE KEY, and nothing around it)")
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise MalformedFile("is not a P-256 key")
    return key


def encode_file_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The whole file: PKCS#8 in PEM, not encrypted (RFC 5958, RFC 7468)."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def unique_of(data: bytes) -> bytes | None:
    """The unique in a TPM record; None for a key in a file. `data` is a key's own record."""
    found = decode(data)
    return found.unique if isinstance(found, TpmRecord) else None


def encode_tpm_record(record: TpmRecord) -> bytes:
    """The whole file: the unique in PEM (RFC 7468) of a label of our own."""
    return f"{_BEGIN}\n{base64.b64encode(record.unique).decode()}\n-----END {TPM_LABEL}-----\n".encode()


def _record(data: bytes) -> TpmRecord:
    lines = data.decode("ascii", "replace").split("\n")
    # PEM of 32 bytes is three lines, each with its end.
    if len(lines) != 4 or (lines[0], lines[2], lines[3]) != (_BEGIN, f"-----END {TPM_LABEL}-----", ""):
        raise MalformedFile("is a TPM record that is torn")
    try:
        unique = base64.b64decode(lines[1], validate=True)
    except ValueError:
        unique = None
    if unique is None or base64.b64encode(unique).decode() != lines[1]:
        raise MalformedFile("is a TPM record that is not base64")
    if len(unique) != UNIQUE_BYTES:
        raise MalformedFile(f"is a TPM record of {len(unique)} bytes, want {UNIQUE_BYTES}")
    return TpmRecord(unique)
