"""`ports.store.Store` in memory: a real one, that forgets when the process ends."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TypeVar

from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.audit import Event, Recorded
from bcd.controlplane.domain.certificates import Certificate, CertificateState, GivenAnswer
from bcd.controlplane.domain.challenges import Challenge
from bcd.controlplane.domain.eks import EkRoot, ListedEk, TpmKey
from bcd.controlplane.domain.ids import ApprovalId, RefusalId, TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Refusal
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.domain.tokens import Token
from bcd.controlplane.ports.store import Records, StoreUnavailable
from bcd.domain.model.names import NodeId

T = TypeVar("T")


class MemoryTokens:
    def __init__(self) -> None:
        self.rows: dict[TokenId, Token] = {}

    def put(self, token: Token) -> None:
        self.rows[token.id] = token

    def get(self, token_id: TokenId) -> Token | None:
        return self.rows.get(token_id)

    def all(self) -> Sequence[Token]:
        return sorted(self.rows.values(), key=lambda row: (row.created, row.id))


class MemoryNodes:
    def __init__(self) -> None:
        self.rows: dict[NodeId, Node] = {}

    def put(self, node: Node) -> None:
        self.rows[node.id] = node

    def get(self, node_id: NodeId) -> Node | None:
        return self.rows.get(node_id)

    def of_machine(self, machine: str) -> Sequence[Node]:
        return [row for row in self.all() if machine and row.machine == machine]

    def of_ek(self, ek: str) -> Sequence[Node]:
        return [row for row in self.all() if ek and row.ek == ek]

    def all(self) -> Sequence[Node]:
        return sorted(self.rows.values(), key=lambda row: row.id)

    def remove(self, node_id: NodeId) -> None:
        self.rows.pop(node_id, None)


class MemoryCertificates:
    def __init__(self) -> None:
        self.rows: dict[str, Certificate] = {}

    def put(self, certificate: Certificate) -> None:
        self.rows[certificate.serial] = certificate

    def get(self, serial: str) -> Certificate | None:
        return self.rows.get(serial)

    def of_node(self, node_id: NodeId) -> Sequence[Certificate]:
        return self._those(lambda row: row.node_id == node_id)

    def newest(self, node_id: NodeId) -> Certificate | None:
        every = self.of_node(node_id)
        return every[-1] if every else None

    def open(self, node_id: NodeId) -> Sequence[Certificate]:
        living = (CertificateState.ISSUED, CertificateState.CURRENT)
        return self._those(lambda row: row.node_id == node_id and row.state in living)

    def renewals_since(self, node_id: NodeId, at: datetime) -> Sequence[datetime]:
        return [row.issued for row in self.of_node(node_id) if row.issued >= at and row.parent]

    def of_key(self, spki_sha256: bytes) -> Sequence[Certificate]:
        return self._those(lambda row: row.spki_sha256 == spki_sha256)

    def _those(self, wanted: Callable[[Certificate], bool]) -> Sequence[Certificate]:
        return sorted(filter(wanted, self.rows.values()), key=lambda row: (row.issued, row.serial))


class MemoryAnswers:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, bytes], GivenAnswer] = {}

    def put(self, answer: GivenAnswer) -> None:
        self.rows[answer.credential, answer.spki_sha256] = answer

    def get(self, credential: str, spki_sha256: bytes) -> GivenAnswer | None:
        return self.rows.get((credential, spki_sha256))

    def remove_expired(self, now: datetime) -> int:
        over = [key for key, row in self.rows.items() if row.not_after <= now]
        for key in over:
            del self.rows[key]
        return len(over)


class MemoryApprovals:
    def __init__(self) -> None:
        self.rows: dict[ApprovalId, Approval] = {}

    def put(self, approval: Approval) -> None:
        self.rows[approval.id] = approval

    def get(self, approval_id: ApprovalId) -> Approval | None:
        return self.rows.get(approval_id)

    def asked(self, credential: str, spki_sha256: bytes) -> Approval | None:
        return next((row for row in self.of_credential(credential) if row.spki_sha256 == spki_sha256), None)

    def of_credential(self, credential: str) -> Sequence[Approval]:
        return [row for row in self.all() if row.credential == credential]

    def all(self) -> Sequence[Approval]:
        return sorted(self.rows.values(), key=lambda row: (row.asked, row.id))


class MemoryRefusals:
    def __init__(self) -> None:
        self.rows: dict[RefusalId, Refusal] = {}

    def add(self, refusal: Refusal) -> None:
        self.rows[refusal.id] = refusal

    def get(self, refusal_id: RefusalId) -> Refusal | None:
        return self.rows.get(refusal_id)

    def latest(self, limit: int) -> Sequence[Refusal]:
        return sorted(self.rows.values(), key=lambda row: row.at)[::-1][:limit]

    def count_since(self, at: datetime, source: str | None = None) -> int:
        return sum(row.at >= at and source in {None, row.source} for row in self.rows.values())

    def trim(self, before: datetime, keep: int) -> int:
        kept = {row.id: row for row in reversed(self.latest(keep)) if row.at >= before}
        gone = len(self.rows) - len(kept)
        self.rows = kept
        return gone


class MemoryAudit:
    def __init__(self) -> None:
        self.rows: list[Recorded] = []

    def add(self, event: Event) -> int:
        self.rows.append(Recorded(len(self.rows) + 1, event))
        return len(self.rows)

    def latest(self, limit: int) -> Sequence[Recorded]:
        return self.rows[-limit:]

    def after(self, seq: int, limit: int) -> Sequence[Recorded]:
        return [row for row in self.rows if row.seq > seq][:limit]


class MemoryBundles:
    def __init__(self) -> None:
        self.rows: list[SignedBundle] = []

    def add(self, bundle: SignedBundle) -> None:
        if self.rows and bundle.version <= self.rows[-1].version:
            raise ValueError("a bundle's version only rises")
        self.rows.append(bundle)

    def newest(self) -> SignedBundle | None:
        return self.rows[-1] if self.rows else None


class MemoryRestorations:
    def __init__(self) -> None:
        self.rows: list[Restoration] = []

    def add(self, restoration: Restoration) -> None:
        self.rows.append(restoration)

    def newest(self) -> Restoration | None:
        return self.rows[-1] if self.rows else None


class MemoryEkRoots:
    def __init__(self) -> None:
        self.rows: dict[str, EkRoot] = {}

    def put(self, root: EkRoot) -> None:
        self.rows[root.fingerprint] = root

    def get(self, fingerprint: str) -> EkRoot | None:
        return self.rows.get(fingerprint)

    def all(self) -> Sequence[EkRoot]:
        return sorted(self.rows.values(), key=lambda row: (row.added, row.fingerprint))

    def remove(self, fingerprint: str) -> None:
        self.rows.pop(fingerprint, None)


class MemoryEks:
    def __init__(self) -> None:
        self.rows: dict[str, ListedEk] = {}

    def put(self, listed: ListedEk) -> None:
        self.rows[listed.ek] = listed

    def get(self, ek: str) -> ListedEk | None:
        return self.rows.get(ek)

    def all(self) -> Sequence[ListedEk]:
        return sorted(self.rows.values(), key=lambda row: (row.listed, row.ek))

    def remove(self, ek: str) -> None:
        self.rows.pop(ek, None)


class MemoryTpmKeys:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], TpmKey] = {}

    def put(self, key: TpmKey) -> None:
        self.rows[key.ak, key.ek] = key

    def of_ak(self, ak: str) -> Sequence[TpmKey]:
        return sorted((row for row in self.rows.values() if row.ak == ak), key=lambda row: row.ek)

    def of_ek(self, ek: str) -> Sequence[TpmKey]:
        return sorted((row for row in self.rows.values() if row.ek == ek), key=lambda row: row.ak)


class MemoryChallenges:
    def __init__(self) -> None:
        self.rows: dict[str, Challenge] = {}

    def put(self, challenge: Challenge) -> None:
        self.rows[challenge.id] = challenge

    def get(self, challenge_id: str) -> Challenge | None:
        return self.rows.get(challenge_id)

    def of_request(self, csr_sha256: bytes) -> Sequence[Challenge]:
        mine = [row for row in self.rows.values() if row.csr_sha256 == csr_sha256]
        return sorted(mine, key=lambda row: (row.issued, row.id))

    def count(self, source: str | None = None) -> int:
        return sum(source in {None, row.source} for row in self.rows.values())

    def remove(self, challenge_id: str) -> None:
        self.rows.pop(challenge_id, None)

    def remove_ended(self, at: datetime) -> int:
        over = [key for key, row in self.rows.items() if row.not_after <= at]
        for key in over:
            del self.rows[key]
        return len(over)


class MemoryRecords:
    def __init__(self) -> None:
        self.tokens = MemoryTokens()
        self.nodes = MemoryNodes()
        self.certificates = MemoryCertificates()
        self.answers = MemoryAnswers()
        self.approvals = MemoryApprovals()
        self.refusals = MemoryRefusals()
        self.audit = MemoryAudit()
        self.bundles = MemoryBundles()
        self.restorations = MemoryRestorations()
        self.ek_roots = MemoryEkRoots()
        self.eks = MemoryEks()
        self.tpm_keys = MemoryTpmKeys()
        self.challenges = MemoryChallenges()

    def copied(self) -> MemoryRecords:
        """Another set of tables with the same rows, which are values and never change."""
        other = copy.copy(self)
        for name, part in vars(self).items():
            copied = copy.copy(part)
            copied.rows = copy.copy(part.rows)
            setattr(other, name, copied)
        return other


class MemoryStore:
    """`fail_next` makes the next change fail after its work, as a full disk does at the commit."""

    def __init__(self) -> None:
        self._records = MemoryRecords()
        self._lock = threading.RLock()
        self._closed = False
        self.fail_next = False

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(StoreUnavailable("the store is closed"))
                return future
            draft = self._records.copied()
            try:
                result = work(draft)
                if self.fail_next:
                    self.fail_next = False
                    raise StoreUnavailable("no space")
            except Exception as error:
                future.set_exception(error)
                return future
            self._records = draft
        future.set_result(result)
        return future

    def read(self, work: Callable[[Records], T]) -> T:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            return work(self._records.copied())

    def close(self) -> None:
        self._closed = True

    def snapshot(self) -> MemoryRecords:
        """All it holds, as a backup has it."""
        with self._lock:
            return self._records.copied()

    def restore(self, backup: MemoryRecords) -> None:
        with self._lock:
            self._records = backup.copied()
