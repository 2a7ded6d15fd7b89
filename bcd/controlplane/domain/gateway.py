"""What nodes ask of the gateway, and what it answers."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from bcd.controlplane.domain.settings import SignedBundle
from bcd.domain.model.attestation import KeyAttestation
from bcd.domain.model.claims import MAX_CLAIM
from bcd.domain.model.identity import Leaf
from bcd.domain.model.names import NodeId

_JOURNAL_ID = re.compile(r"[0-9a-f]{32}")
NODE_KEYS = ("file", "tpm")


@dataclass(frozen=True)
class Presented:
    """The leaf whose key the peer proved to hold in its TLS handshake. `serial` as in Certificate; `source` is the
    peer's address without its port."""

    leaf: Leaf
    serial: str
    source: str

    @property
    def node_id(self) -> NodeId:
        return self.leaf.spiffe_id.node


@dataclass(frozen=True)
class Greeting:
    """Hello, as received."""

    journal_id: str = ""
    boot_id: str = ""
    daemon_version: str = ""
    node_key: str = ""

    @property
    def in_bounds(self) -> bool:
        words = (self.boot_id, self.daemon_version)
        return (
            _JOURNAL_ID.fullmatch(self.journal_id) is not None
            and self.node_key in NODE_KEYS
            and all(len(word) <= MAX_CLAIM and word.isprintable() for word in words)
        )


@dataclass(frozen=True)
class RenewRequest:
    """As received. `csr` is PKCS#10 DER, `chain` DER, `renew_pop` a serialized statement."""

    csr: bytes
    chain: tuple[bytes, ...]
    renew_pop: bytes
    key_attestation: KeyAttestation | None = None


@dataclass(frozen=True)
class Welcomed:
    """`renew_now`: why the node is to renew at once; empty when it need not. The session ends at `not_after`, or with
    `generation`."""

    server_time: datetime
    bundle: SignedBundle
    renew_now: str
    generation: int
    not_after: datetime


@dataclass(frozen=True)
class Renewed:
    """`signed` is the serialized SignedStatement of purpose renew-response."""

    server_time: datetime
    signed: bytes


@dataclass(frozen=True)
class Dead:
    """The certificate was revoked, alone or with its generation: final. `reason` is for people."""

    reason: str
    at: datetime


@dataclass(frozen=True)
class Superseded:
    """The certificate was replaced a moment ago: the node has another one. No verdict."""


@dataclass(frozen=True)
class OutOfDate:
    """The certificate's time is over."""


@dataclass(frozen=True)
class NotNow:
    """Something is wrong here, and nothing is decided about the node. `why` is for the log."""

    why: str


@dataclass(frozen=True)
class Malformed:
    """Not what the protocol says; `why` may be shown to the peer."""

    why: str


@dataclass(frozen=True)
class Declined:
    """Well-formed, and not to be had; `why` may be shown to the peer."""

    why: str


@dataclass(frozen=True)
class Full:
    """Too many renewals; the next is due after `wait`."""

    wait: timedelta


No = Dead | Superseded | OutOfDate | NotNow | Malformed | Declined | Full
HelloAnswer = Welcomed | No
RenewAnswer = Renewed | No
