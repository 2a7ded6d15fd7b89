"""Looking at what bcd wrote without asking bcd: openssl, modes, hashes."""

import base64
import hashlib
import json
import re
import stat
import subprocess
from pathlib import Path


def openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def public_of_key(pem: bytes) -> bytes:
    return openssl("pkey", "-pubout", "-outform", "DER", stdin=pem)


def public_of_certificate(pem: bytes) -> bytes:
    return openssl("pkey", "-pubin", "-outform", "DER", stdin=openssl("x509", "-noout", "-pubkey", stdin=pem))


def chain_of(identity: Path) -> list[bytes]:
    """The certificates in identity.json, PEM."""
    chain = json.loads(identity.read_text())["chain"]
    return [openssl("x509", "-inform", "DER", stdin=base64.b64decode(der)) for der in chain]


def serial_of(pem: bytes) -> str:
    """128 bits in hexadecimal digits, which openssl shows without leading zeros."""
    return openssl("x509", "-noout", "-serial", stdin=pem).decode().strip().removeprefix("serial=").lower().zfill(32)


def names_attestation_key(pem: bytes) -> bool:
    """Whether a name in the certificate is an attestation key's; openssl 3.0 shows no text for that kind of name."""
    return re.search(rb"urn:bc:tpm-ak:[0-9a-f]{68}", openssl("x509", "-outform", "DER", stdin=pem)) is not None


def endorsement_key(identified: str) -> str:
    """The first hash that `bcd tpm identify` shows; empty when there is none."""
    found = re.search(r"^EK \S+ +(sha256:[0-9a-f]{64}) ", identified, re.MULTILINE)
    return found[1] if found else ""


def tpm_record(content: bytes) -> bytes | None:
    """The bytes that a key in the TPM is derived from; None for anything else."""
    found = re.fullmatch(rb"-----BEGIN BCD TPM NODE KEY-----\n(.+)\n-----END BCD TPM NODE KEY-----\n", content)
    return base64.b64decode(found[1]) if found else None


def public_if_private(number: bytes) -> bytes:
    """The public key there would be if these 32 bytes were a P-256 private key."""
    key = bytes.fromhex("30310201010420") + number + bytes.fromhex("a00a06082a8648ce3d030107")
    return openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", stdin=key)


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def edit(path: Path, pattern: str, new: str) -> None:
    """The first match of `pattern` in the file becomes `new`."""
    path.write_text(re.sub(pattern, new, path.read_text(), count=1))
