"""What a trust bundle holds besides its version: the same for every node."""

from dataclasses import dataclass

# As many as a node takes (docs/protocol.md, "Trust bundle").
MAX_ROOTS = 32
MAX_APPROVERS = 32


@dataclass(frozen=True)
class Approver:
    """`spki` is DER."""

    name: str
    spki: bytes


@dataclass(frozen=True)
class TrustContent:
    """`roots` are command-signing roots, SubjectPublicKeyInfo DER each; `quorum` as in the bundle."""

    roots: tuple[bytes, ...] = ()
    approvers: tuple[Approver, ...] = ()
    quorum: int = 0


NO_TRUST = TrustContent()
