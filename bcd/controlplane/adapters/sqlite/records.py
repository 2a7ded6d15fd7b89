"""`ports.store.Records` on one SQLite connection, inside a transaction the caller began."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from bcd.controlplane.adapters.sqlite.table import Table, from_micros, to_cell
from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.audit import Event, Kind, Recorded
from bcd.controlplane.domain.certificates import Certificate, GivenAnswer
from bcd.controlplane.domain.challenges import Challenge
from bcd.controlplane.domain.eks import EkRoot, ListedEk, TpmKey
from bcd.controlplane.domain.ids import ApprovalId, RefusalId, TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Refusal
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.domain.tokens import Token
from bcd.domain.model.names import NodeId

_TOKENS = Table("tokens", Token, ("id",))
_NODES = Table("nodes", Node, ("id",))
_CERTIFICATES = Table("certificates", Certificate, ("serial",))
_ANSWERS = Table("answers", GivenAnswer, ("credential", "spki_sha256"))
_APPROVALS = Table("approvals", Approval, ("id",))
_REFUSALS = Table("refusals", Refusal, ("id",))
_BUNDLES = Table("bundles", SignedBundle, ("version",))
_RESTORATIONS = Table("restorations", Restoration, ())
_EK_ROOTS = Table("ek_roots", EkRoot, ("fingerprint",))
_EKS = Table("eks", ListedEk, ("ek",))
_TPM_KEYS = Table("tpm_keys", TpmKey, ("ak", "ek"))
_CHALLENGES = Table("challenges", Challenge, ("id",))


class _Part:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._c = connection


class SqliteTokens(_Part):
    def put(self, token: Token) -> None:
        _TOKENS.put(self._c, token)

    def get(self, token_id: TokenId) -> Token | None:
        return _TOKENS.one(self._c, "WHERE id = ?", token_id)

    def all(self) -> Sequence[Token]:
        return _TOKENS.many(self._c, "ORDER BY created, id")


class SqliteNodes(_Part):
    def put(self, node: Node) -> None:
        _NODES.put(self._c, node)

    def get(self, node_id: NodeId) -> Node | None:
        return _NODES.one(self._c, "WHERE id = ?", node_id)

    def of_machine(self, machine: str) -> Sequence[Node]:
        return _NODES.many(self._c, "WHERE machine = ? AND machine <> '' ORDER BY id", machine)

    def of_ek(self, ek: str) -> Sequence[Node]:
        return _NODES.many(self._c, "WHERE ek = ? AND ek <> '' ORDER BY id", ek)

    def all(self) -> Sequence[Node]:
        return _NODES.many(self._c, "ORDER BY id")

    def remove(self, node_id: NodeId) -> None:
        self._c.execute("DELETE FROM nodes WHERE id = ?", (node_id,))


class SqliteCertificates(_Part):
    def put(self, certificate: Certificate) -> None:
        _CERTIFICATES.put(self._c, certificate)

    def get(self, serial: str) -> Certificate | None:
        return _CERTIFICATES.one(self._c, "WHERE serial = ?", serial)

    def of_node(self, node_id: NodeId) -> Sequence[Certificate]:
        return _CERTIFICATES.many(self._c, "WHERE node_id = ? ORDER BY issued, serial", node_id)

    def newest(self, node_id: NodeId) -> Certificate | None:
        return _CERTIFICATES.one(self._c, "WHERE node_id = ? ORDER BY issued DESC, serial DESC LIMIT 1", node_id)

    def open(self, node_id: NodeId) -> Sequence[Certificate]:
        return _CERTIFICATES.many(
            self._c, "WHERE node_id = ? AND state IN ('issued', 'current') ORDER BY issued, serial", node_id
        )

    def renewals_since(self, node_id: NodeId, at: datetime) -> Sequence[datetime]:
        query = "SELECT issued FROM certificates WHERE node_id = ? AND issued >= ? AND parent <> '' ORDER BY issued"
        return [from_micros(issued) for (issued,) in self._c.execute(query, (node_id, to_cell(at)))]

    def of_key(self, spki_sha256: bytes) -> Sequence[Certificate]:
        return _CERTIFICATES.many(self._c, "WHERE spki_sha256 = ? ORDER BY issued, serial", spki_sha256)


class SqliteAnswers(_Part):
    def put(self, answer: GivenAnswer) -> None:
        _ANSWERS.put(self._c, answer)

    def get(self, credential: str, spki_sha256: bytes) -> GivenAnswer | None:
        return _ANSWERS.one(self._c, "WHERE credential = ? AND spki_sha256 = ?", credential, spki_sha256)

    def remove_expired(self, now: datetime) -> int:
        return self._c.execute("DELETE FROM answers WHERE not_after <= ?", (to_cell(now),)).rowcount


class SqliteApprovals(_Part):
    def put(self, approval: Approval) -> None:
        _APPROVALS.put(self._c, approval)

    def get(self, approval_id: ApprovalId) -> Approval | None:
        return _APPROVALS.one(self._c, "WHERE id = ?", approval_id)

    def asked(self, credential: str, spki_sha256: bytes) -> Approval | None:
        return _APPROVALS.one(self._c, "WHERE credential = ? AND spki_sha256 = ?", credential, spki_sha256)

    def of_credential(self, credential: str) -> Sequence[Approval]:
        return _APPROVALS.many(self._c, "WHERE credential = ? ORDER BY asked, id", credential)

    def all(self) -> Sequence[Approval]:
        return _APPROVALS.many(self._c, "ORDER BY asked, id")


class SqliteRefusals(_Part):
    def add(self, refusal: Refusal) -> None:
        _REFUSALS.add(self._c, refusal)

    def get(self, refusal_id: RefusalId) -> Refusal | None:
        return _REFUSALS.one(self._c, "WHERE id = ?", refusal_id)

    def latest(self, limit: int) -> Sequence[Refusal]:
        return _REFUSALS.many(self._c, "ORDER BY at DESC, rowid DESC LIMIT ?", limit)

    def count_since(self, at: datetime, source: str | None = None) -> int:
        query, values = "SELECT count(*) FROM refusals WHERE at >= ?", [to_cell(at)]
        if source is not None:
            query, values = f"{query} AND source = ?", [*values, source]
        return int(self._c.execute(query, values).fetchone()[0])

    def trim(self, before: datetime, keep: int) -> int:
        old = self._c.execute("DELETE FROM refusals WHERE at < ?", (to_cell(before),)).rowcount
        many = (
            "DELETE FROM refusals WHERE id IN (SELECT id FROM refusals ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)"
        )
        return old + self._c.execute(many, (keep,)).rowcount


class SqliteAudit(_Part):
    def add(self, event: Event) -> int:
        row = (to_cell(event.at), event.actor, event.kind.value, json.dumps(dict(event.detail)))
        place = self._c.execute("INSERT INTO audit (at, actor, kind, detail) VALUES (?, ?, ?, ?)", row).lastrowid
        return int(place or 0)

    def latest(self, limit: int) -> Sequence[Recorded]:
        return self._many("ORDER BY seq DESC LIMIT ?", limit)[::-1]

    def after(self, seq: int, limit: int) -> Sequence[Recorded]:
        return self._many("WHERE seq > ? ORDER BY seq LIMIT ?", seq, limit)

    def _many(self, rest: str, *values: int) -> list[Recorded]:
        rows = self._c.execute(f"SELECT seq, at, actor, kind, detail FROM audit {rest}", values)  # noqa: S608
        return [
            Recorded(seq, Event(from_micros(at), actor, Kind(kind), json.loads(detail)))
            for seq, at, actor, kind, detail in rows
        ]


class SqliteBundles(_Part):
    def add(self, bundle: SignedBundle) -> None:
        newest = self.newest()
        if newest is not None and bundle.version <= newest.version:
            raise ValueError(f"bundle version {bundle.version} does not rise above {newest.version}")
        _BUNDLES.add(self._c, bundle)

    def newest(self) -> SignedBundle | None:
        return _BUNDLES.one(self._c, "ORDER BY version DESC LIMIT 1")


class SqliteRestorations(_Part):
    def add(self, restoration: Restoration) -> None:
        _RESTORATIONS.add(self._c, restoration)

    def newest(self) -> Restoration | None:
        return _RESTORATIONS.one(self._c, "ORDER BY rowid DESC LIMIT 1")


class SqliteEkRoots(_Part):
    def put(self, root: EkRoot) -> None:
        _EK_ROOTS.put(self._c, root)

    def get(self, fingerprint: str) -> EkRoot | None:
        return _EK_ROOTS.one(self._c, "WHERE fingerprint = ?", fingerprint)

    def all(self) -> Sequence[EkRoot]:
        return _EK_ROOTS.many(self._c, "ORDER BY added, fingerprint")

    def remove(self, fingerprint: str) -> None:
        self._c.execute("DELETE FROM ek_roots WHERE fingerprint = ?", (fingerprint,))


class SqliteEks(_Part):
    def put(self, listed: ListedEk) -> None:
        _EKS.put(self._c, listed)

    def get(self, ek: str) -> ListedEk | None:
        return _EKS.one(self._c, "WHERE ek = ?", ek)

    def all(self) -> Sequence[ListedEk]:
        return _EKS.many(self._c, "ORDER BY listed, ek")

    def remove(self, ek: str) -> None:
        self._c.execute("DELETE FROM eks WHERE ek = ?", (ek,))


class SqliteTpmKeys(_Part):
    def put(self, key: TpmKey) -> None:
        _TPM_KEYS.put(self._c, key)

    def of_ak(self, ak: str) -> Sequence[TpmKey]:
        return _TPM_KEYS.many(self._c, "WHERE ak = ? ORDER BY ek", ak)

    def of_ek(self, ek: str) -> Sequence[TpmKey]:
        return _TPM_KEYS.many(self._c, "WHERE ek = ? ORDER BY ak", ek)


class SqliteChallenges(_Part):
    def put(self, challenge: Challenge) -> None:
        _CHALLENGES.put(self._c, challenge)

    def get(self, challenge_id: str) -> Challenge | None:
        return _CHALLENGES.one(self._c, "WHERE id = ?", challenge_id)

    def of_request(self, csr_sha256: bytes) -> Sequence[Challenge]:
        return _CHALLENGES.many(self._c, "WHERE csr_sha256 = ? ORDER BY issued, id", csr_sha256)

    def count(self, source: str | None = None) -> int:
        if source is None:
            return int(self._c.execute("SELECT count(*) FROM challenges").fetchone()[0])
        return int(self._c.execute("SELECT count(*) FROM challenges WHERE source = ?", (source,)).fetchone()[0])

    def remove(self, challenge_id: str) -> None:
        self._c.execute("DELETE FROM challenges WHERE id = ?", (challenge_id,))

    def remove_ended(self, at: datetime) -> int:
        return self._c.execute("DELETE FROM challenges WHERE not_after <= ?", (to_cell(at),)).rowcount


class SqliteRecords:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.tokens = SqliteTokens(connection)
        self.nodes = SqliteNodes(connection)
        self.certificates = SqliteCertificates(connection)
        self.answers = SqliteAnswers(connection)
        self.approvals = SqliteApprovals(connection)
        self.refusals = SqliteRefusals(connection)
        self.audit = SqliteAudit(connection)
        self.bundles = SqliteBundles(connection)
        self.restorations = SqliteRestorations(connection)
        self.ek_roots = SqliteEkRoots(connection)
        self.eks = SqliteEks(connection)
        self.tpm_keys = SqliteTpmKeys(connection)
        self.challenges = SqliteChallenges(connection)
