"""What the operator may ask about endorsement keys and manufacturers' CAs, and what he is shown."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ImportEkRoots:
    """Certificates, each DER in hexadecimal."""

    certificates: tuple[str, ...]


@dataclass(frozen=True)
class ListEkRoots:
    pass


@dataclass(frozen=True)
class AdmitEkRoot:
    """`fingerprint` as the list has it, or as openssl prints it."""

    fingerprint: str
    site: str
    role: str


@dataclass(frozen=True)
class WithdrawEkRoot:
    fingerprint: str


@dataclass(frozen=True)
class RemoveEkRoot:
    fingerprint: str


@dataclass(frozen=True)
class AllowEk:
    """`ek`: SHA-256 of the public key, with `sha256:` before it or not."""

    ek: str
    site: str
    role: str
    node_id: str | None
    note: str


@dataclass(frozen=True)
class DenyEk:
    """`note` None leaves the one that is there."""

    ek: str
    note: str | None


@dataclass(frozen=True)
class RemoveEk:
    ek: str


@dataclass(frozen=True)
class ListEks:
    pass


@dataclass(frozen=True)
class EkRow:
    """A row of a file, with the number of its line."""

    line: int
    ek: str
    site: str
    role: str
    node_id: str | None
    note: str


@dataclass(frozen=True)
class ImportEks:
    """`file` is for the message that names a line."""

    file: str
    rows: tuple[EkRow, ...]


EkCommand = (
    ImportEkRoots
    | ListEkRoots
    | AdmitEkRoot
    | WithdrawEkRoot
    | RemoveEkRoot
    | AllowEk
    | DenyEk
    | RemoveEk
    | ListEks
    | ImportEks
)


@dataclass(frozen=True)
class EkRootView:
    """`admits_site` and `admits_role`: where every machine it vouches for may join, None when none may for that."""

    fingerprint: str
    subject: str
    issuer: str
    not_before: datetime | None
    not_after: datetime | None
    admits_site: str | None
    admits_role: str | None
    added: datetime


@dataclass(frozen=True)
class EkRootsImported:
    """How many are new, and how many were there, or stood there twice."""

    added: int
    known: int


@dataclass(frozen=True)
class SkippedView:
    file: str
    why: str


@dataclass(frozen=True)
class EkRootsImportView:
    """What `ek-roots import` did. `skipped`: files that are no manufacturer CA's certificate."""

    added: int
    known: int
    skipped: tuple[SkippedView, ...]


@dataclass(frozen=True)
class EkRootRemovedView:
    fingerprint: str
    subject: str


@dataclass(frozen=True)
class OtherEkView:
    """A key that has to do with another. `tie`: `same`, both are in one TPM; `showed`, its TPM showed that one too;
    `shown`, that one's TPM showed it too. `state`: allowed, denied, or empty when it is not listed."""

    public_key_sha256: str
    tie: str
    state: str
    joined_as: str | None


@dataclass(frozen=True)
class EkView:
    """`public_key_sha256` as `bcd tpm identify` has it. `state`: allowed or denied. `node_id`: the node it is to be;
    `joined_as`: the node that it is. `others`: keys that are its TPM's too, or said to be."""

    public_key_sha256: str
    state: str
    site: str | None
    role: str
    node_id: str | None
    joined_as: str | None
    note: str
    listed: datetime
    others: tuple[OtherEkView, ...] = ()


@dataclass(frozen=True)
class EkRemovedView:
    public_key_sha256: str


@dataclass(frozen=True)
class EksImported:
    added: int
    changed: int
    unchanged: int
