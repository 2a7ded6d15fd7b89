"""Where a node key lives, and what `node.key` turned out to be."""

from dataclasses import dataclass
from enum import StrEnum


class KeyKind(StrEnum):
    """As `bcd status` and Hello tell it."""

    FILE = "file"
    TPM = "tpm"


class Hash(StrEnum):
    """What of a message is signed."""

    SHA256 = "sha256"
    SHA384 = "sha384"
    SHA512 = "sha512"


@dataclass(frozen=True)
class KeyAbsent:
    """There is no such file."""


@dataclass(frozen=True)
class KeyDenied:
    """The file is there and may not be read by this user."""


@dataclass(frozen=True)
class KeyMalformed:
    """The file is there and holds no key: `why` says what it is instead (empty, torn, another curve)."""

    why: str
    size: int


@dataclass(frozen=True)
class KeyUnavailable:
    """The file is a TPM record and the TPM cannot be asked now; whether it matches is not known. `absent`: there is
    no TPM, which early in a boot may mean: not yet."""

    why: str
    absent: bool = False


@dataclass(frozen=True)
class KeyUnasked:
    """The file is a TPM record, and whoever looks asks no TPM: `status`."""


@dataclass(frozen=True)
class KeyHeld:
    """The key is there and usable; `spki` is its public half, SubjectPublicKeyInfo DER."""

    kind: KeyKind
    spki: bytes


KeyState = KeyAbsent | KeyDenied | KeyMalformed | KeyUnavailable | KeyUnasked | KeyHeld
