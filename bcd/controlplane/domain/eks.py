"""Endorsement keys the operator knows, and the manufacturers he trusts."""

import re
from dataclasses import dataclass
from datetime import datetime

from bcd.domain.model.names import NodeId, Role, SiteId

# It is shown in a table.
MAX_NOTE = 200
_HEX = re.compile(r"[0-9a-f]{64}")


class MalformedDigest(ValueError):
    """A text that is no SHA-256."""


def digest(text: str) -> str:
    """`sha256:` and 64 lower-case hex digits, from that, from the digits alone, or from them as openssl prints them:
    upper case, with colons."""
    digits = text.strip().lower().removeprefix("sha256:").replace(":", "")
    if not _HEX.fullmatch(digits):
        raise MalformedDigest("want sha256: and 64 hexadecimal digits")
    return f"sha256:{digits}"


@dataclass(frozen=True)
class EkRoot:
    """A manufacturer's CA. `fingerprint` is `sha256:` and the hex digits of SHA-256 over `der`, its certificate.

    `site` and `role` are there together, or neither: where machines whose TPM it vouches for are admitted, with nobody
    asked; that is every such TPM in the world."""

    fingerprint: str
    der: bytes
    added: datetime
    site: SiteId | None = None
    role: Role | None = None


@dataclass(frozen=True)
class ListedEk:
    """A row of the allow-list. `ek` is `sha256:` and the hex digits of SHA-256 over the key's SubjectPublicKeyInfo, DER
    (rsaEncryption with NULL, or P-256), as `bcd tpm identify` shows it. One that is only denied has no site."""

    ek: str
    site: SiteId | None
    role: Role
    node_id: NodeId | None
    denied: bool
    note: str
    listed: datetime


@dataclass(frozen=True)
class TpmKey:
    """An endorsement key `ek` that a TPM showed, in which the attestation key `ak` (its TPM name, hexadecimal) was
    proved to be. `proved`: that `ek` is in that TPM too; otherwise it is the machine's word."""

    ak: str
    ek: str
    proved: bool
