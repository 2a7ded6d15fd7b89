"""Port: everything the control plane must remember.

Work is a function on `Records`; a store runs it in one transaction that sees no other's unfinished changes and
changes nothing when it raises. Work must be fast, do no I/O of its own and be fit to run on any thread.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol, TypeVar

from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.audit import Event, Recorded
from bcd.controlplane.domain.certificates import Certificate, GivenAnswer
from bcd.controlplane.domain.challenges import Challenge
from bcd.controlplane.domain.eks import EkRoot, ListedEk, TpmKey
from bcd.controlplane.domain.ids import ApprovalId, RefusalId, TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Refusal
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.domain.tokens import Token
from bcd.domain.model.names import NodeId

T = TypeVar("T")


class StoreUnavailable(Exception):
    """The store cannot be used now: full, locked, closing, damaged. Nothing of the work was kept."""


class Tokens(Protocol):
    def put(self, token: Token) -> None:
        """Adds it, or replaces the one with its id."""
        ...

    def get(self, token_id: TokenId) -> Token | None: ...

    def all(self) -> Sequence[Token]:
        """Oldest first."""
        ...


class Nodes(Protocol):
    def put(self, node: Node) -> None:
        """Adds it, or replaces the one with its id."""
        ...

    def get(self, node_id: NodeId) -> Node | None: ...

    def of_machine(self, machine: str) -> Sequence[Node]:
        """Nodes whose `machine` is this text; none for an empty one."""
        ...

    def of_ek(self, ek: str) -> Sequence[Node]:
        """Nodes whose `ek` is this text, by id; none for an empty one."""
        ...

    def all(self) -> Sequence[Node]:
        """By id."""
        ...

    def remove(self, node_id: NodeId) -> None:
        """Its certificates stay."""
        ...


class Certificates(Protocol):
    def put(self, certificate: Certificate) -> None:
        """Adds it, or replaces the one with its serial."""
        ...

    def get(self, serial: str) -> Certificate | None: ...

    def of_node(self, node_id: NodeId) -> Sequence[Certificate]:
        """Oldest first."""
        ...

    def newest(self, node_id: NodeId) -> Certificate | None:
        """The one issued last."""
        ...

    def open(self, node_id: NodeId) -> Sequence[Certificate]:
        """Those issued and current, oldest first."""
        ...

    def renewals_since(self, node_id: NodeId, at: datetime) -> Sequence[datetime]:
        """When each certificate that renewed another was issued, if at `at` or later; oldest first."""
        ...

    def of_key(self, spki_sha256: bytes) -> Sequence[Certificate]:
        """Every certificate this key ever got, oldest first."""
        ...


class Answers(Protocol):
    def put(self, answer: GivenAnswer) -> None:
        """Adds it, or replaces the one for its credential and key."""
        ...

    def get(self, credential: str, spki_sha256: bytes) -> GivenAnswer | None: ...

    def remove_expired(self, now: datetime) -> int:
        """Removes those whose leaf ended at or before `now`; how many."""
        ...


class Approvals(Protocol):
    def put(self, approval: Approval) -> None:
        """Adds it, or replaces the one with its id."""
        ...

    def get(self, approval_id: ApprovalId) -> Approval | None: ...

    def asked(self, credential: str, spki_sha256: bytes) -> Approval | None: ...

    def of_credential(self, credential: str) -> Sequence[Approval]:
        """Oldest first."""
        ...

    def all(self) -> Sequence[Approval]:
        """Oldest first."""
        ...


class Refusals(Protocol):
    def add(self, refusal: Refusal) -> None: ...

    def get(self, refusal_id: RefusalId) -> Refusal | None: ...

    def latest(self, limit: int) -> Sequence[Refusal]:
        """Newest first; of one instant, the one added last."""
        ...

    def count_since(self, at: datetime, source: str | None = None) -> int:
        """How many at `at` or later, of all sources or of one."""
        ...

    def trim(self, before: datetime, keep: int) -> int:
        """Removes those older than `before`, and the oldest beyond the newest `keep`; how many."""
        ...


class Audit(Protocol):
    def add(self, event: Event) -> int:
        """Its place in the log; places only rise."""
        ...

    def latest(self, limit: int) -> Sequence[Recorded]:
        """The last `limit`, oldest of them first."""
        ...

    def after(self, seq: int, limit: int) -> Sequence[Recorded]:
        """Those behind place `seq`, oldest first, at most `limit`."""
        ...


class Bundles(Protocol):
    def add(self, bundle: SignedBundle) -> None:
        """Only a version above the newest; anything else is ValueError."""
        ...

    def newest(self) -> SignedBundle | None: ...


class Restorations(Protocol):
    def add(self, restoration: Restoration) -> None: ...

    def newest(self) -> Restoration | None:
        """The one added last."""
        ...


class EkRoots(Protocol):
    def put(self, root: EkRoot) -> None:
        """Adds it, or replaces the one with its fingerprint."""
        ...

    def get(self, fingerprint: str) -> EkRoot | None: ...

    def all(self) -> Sequence[EkRoot]:
        """Oldest first; of one instant, by fingerprint."""
        ...

    def remove(self, fingerprint: str) -> None: ...


class Eks(Protocol):
    """The allow-list."""

    def put(self, listed: ListedEk) -> None:
        """Adds it, or replaces the row of its key."""
        ...

    def get(self, ek: str) -> ListedEk | None: ...

    def all(self) -> Sequence[ListedEk]:
        """Oldest first; of one instant, by key."""
        ...

    def remove(self, ek: str) -> None: ...


class TpmKeys(Protocol):
    """What TPMs showed."""

    def put(self, key: TpmKey) -> None:
        """Adds it, or replaces the row of its two keys."""
        ...

    def of_ak(self, ak: str) -> Sequence[TpmKey]:
        """By endorsement key."""
        ...

    def of_ek(self, ek: str) -> Sequence[TpmKey]:
        """By attestation key."""
        ...


class Challenges(Protocol):
    def put(self, challenge: Challenge) -> None:
        """Adds it, or replaces the one with its id."""
        ...

    def get(self, challenge_id: str) -> Challenge | None: ...

    def of_request(self, csr_sha256: bytes) -> Sequence[Challenge]:
        """Oldest first; of one instant, by id."""
        ...

    def count(self, source: str | None = None) -> int:
        """How many there are, of all sources or for one."""
        ...

    def remove(self, challenge_id: str) -> None: ...

    def remove_ended(self, at: datetime) -> int:
        """Removes those whose time ended at or before `at`; how many."""
        ...


class Records(Protocol):
    """What a transaction sees."""

    @property
    def tokens(self) -> Tokens: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def certificates(self) -> Certificates: ...
    @property
    def answers(self) -> Answers: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def refusals(self) -> Refusals: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def bundles(self) -> Bundles: ...
    @property
    def restorations(self) -> Restorations: ...
    @property
    def ek_roots(self) -> EkRoots: ...
    @property
    def eks(self) -> Eks: ...
    @property
    def tpm_keys(self) -> TpmKeys: ...
    @property
    def challenges(self) -> Challenges: ...


class Store(Protocol):
    def change(self, work: Callable[[Records], T]) -> Future[T]:
        """Runs `work` once; the future is done when its changes are durable, so they survive a power cut.

        It fails with what `work` raised, or with StoreUnavailable; either way nothing of the work was kept.
        Works are done one after another, in the order they came."""
        ...

    def read(self, work: Callable[[Records], T]) -> T:
        """Runs `work` on what is durable; it must change nothing. StoreUnavailable when that cannot be done."""
        ...

    def close(self) -> None:
        """Ends after all that was begun; later work is StoreUnavailable."""
        ...
