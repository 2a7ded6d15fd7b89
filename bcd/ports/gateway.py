"""Ports: the gateway, as the node it serves sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bcd.domain.model.attestation import KeyAttestation
from bcd.domain.model.identity import Leaf
from bcd.ports.keys import NodeKey


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in use. `chain` is DER, leaf first."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    key: NodeKey


@dataclass(frozen=True)
class RenewQuestion:
    """One Renew: the request for the next key (PKCS#10 DER), the chain in use (DER, leaf first), the current key's
    proof (a serialized statement), and for a leaf that names an attestation key that key's word for the next one."""

    csr: bytes
    chain: tuple[bytes, ...]
    client_time: datetime
    renew_pop: bytes
    key_attestation: KeyAttestation | None = None


@dataclass(frozen=True)
class Hello:
    """How a node introduces itself; `node_key` is "file" or "tpm"."""

    journal_id: str
    boot_id: str
    daemon_version: str
    node_key: str


@dataclass(frozen=True)
class Welcome:
    """The gateway's answer to Hello. `signed_bundle` is a serialized statement, not yet looked at."""

    server_time: datetime
    signed_bundle: bytes


@dataclass(frozen=True)
class Bundle:
    """A new trust bundle, a serialized statement, not yet looked at."""

    signed: bytes


@dataclass(frozen=True)
class Revoked:
    """A notice, or the gateway's answer that this certificate was revoked. `reason` is for people."""

    reason: str


@dataclass(frozen=True)
class Retired:
    """The gateway's answer that this certificate was replaced by another."""


@dataclass(frozen=True)
class RenewNow:
    """The gateway asks for a renewal before it is due. `reason` is for people."""

    reason: str


@dataclass(frozen=True)
class Ended:
    """No session any more, or no answer: `why` for an operator; nothing is decided by it. `pushback_s`: wait exactly
    that long; `never`: the server asks not to be called again; `refused`: it looked like a no, and is none; `declined`:
    this very request is not to be had, another may be."""

    why: str
    pushback_s: float | None = None
    never: bool = False
    refused: bool = False
    declined: bool = False


@dataclass(frozen=True)
class Renewed:
    """`signed` is a serialized statement, not yet looked at."""

    signed: bytes
    server_time: datetime


Heard = Welcome | Bundle | Revoked | Retired | RenewNow | Ended
RenewAnswer = Renewed | Revoked | Retired | Ended


class Connection(Protocol):
    """One connection with one pair. Nothing is sent before the first call."""

    def start(self, hello: Hello, deliver: Callable[[Heard], None]) -> None:
        """Says Hello and returns. `deliver` is called on another thread for everything heard, in order; Ended, Revoked
        or Retired is the last, and comes exactly once unless the connection is closed first."""
        ...

    def renew(self, question: RenewQuestion) -> RenewAnswer:
        """The answer, within 30 s."""
        ...

    def close(self) -> None:
        """Ends session and connection; nothing is delivered afterwards. Safe to call twice."""
        ...


class Gateway(Protocol):
    def connect(self, pair: Pair) -> Connection | Ended:
        """A connection that presents `pair`; Ended when the gateway cannot be reached or is not the pinned one."""
        ...
