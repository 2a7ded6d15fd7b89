"""A control plane in memory: the real decisions, keys and certificates, without files, SQLite or gRPC."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from bcd.controlplane.adapters.grpc.messages import MalformedMessage, decode_request, encode_reply
from bcd.controlplane.adapters.pki import authorities, keys
from bcd.controlplane.adapters.pki.authorities import Authority
from bcd.controlplane.adapters.pki.join_keys import SealKey, SigningKey
from bcd.controlplane.adapters.pki.leaves import IssuingCa
from bcd.controlplane.app.admin import Admin
from bcd.controlplane.app.alarms import Alarms
from bcd.controlplane.app.gateway import Gateway
from bcd.controlplane.app.initialize import first_records
from bcd.controlplane.app.join import Join
from bcd.controlplane.app.refuse import Refuse
from bcd.controlplane.app.renew import RenewCertificate
from bcd.controlplane.app.use import UseCertificate
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.gateway import Greeting, HelloAnswer, Presented, RenewAnswer, RenewRequest
from bcd.controlplane.domain.joining import (
    Challenged,
    Granted,
    JoinAnswer,
    JoinRequest,
    Refused,
    TooManyChallenges,
    Waiting,
)
from bcd.controlplane.domain.news import Item
from bcd.controlplane.domain.settings import RETIRED_GRACE, Settings
from bcd.domain.model import joining
from bcd.domain.model.attestation import KeyAttestation
from bcd.domain.model.names import NodeId, trust_domain
from bcd.domain.model.pins import Pin
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.pki import certificates, ecdsa
from bcd.protocol.pki.seal import Recipient
from tests.fakes.controlplane.memory_store import MemoryRecords, MemoryStore

START = datetime(2026, 9, 26, 11, 42, tzinfo=UTC)
GREETING = Greeting("0a" * 16, "boot", "0.1.0", "file")


class SetClock:
    """Stands still until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def pass_(self, **how_long: float) -> None:
        self.at += timedelta(**how_long)


class CountedRandom:
    """The same bytes in every run, never the same twice in one."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def bytes(self, count: int) -> bytes:
        with self._lock:
            self._count += 1
            return hashlib.shake_256(self._count.to_bytes(8)).digest(count)


class HeldLog:
    """Keeps what it is told: (level, what, fields)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def info(self, what: str, **fields: object) -> None:
        self.lines.append(("info", what, fields))

    def warning(self, what: str, **fields: object) -> None:
        self.lines.append(("warning", what, fields))

    def fault(self, what: str, cause: BaseException, **fields: object) -> None:
        self.lines.append(("error", what, {**fields, "cause": cause}))


class HeldNews:
    """Keeps what sessions would be told. `up`: the nodes that have one."""

    def __init__(self) -> None:
        self.told: list[Item] = []
        self.up: set[NodeId] = set()

    def tell(self, item: Item) -> None:
        self.told.append(item)

    def live(self) -> frozenset[NodeId]:
        return frozenset(self.up)


class MemoryControlPlane:
    """`clock` is any object with `now()`; certificates and statements are real and verify under the pins here.

    join: the domain's own request and answer. ask: a node's `JoinQuestion` and `Answer`, which is what a fake
    `JoinTransport` needs. exchange: serialized JoinRequest and JoinReply.

    hello, renew: the gateway's two calls by whoever holds the key of `leaf` (DER); TLS is what is not here. What live
    sessions would be told stands in `news.told`. snapshot and restore: a backup of the store, and putting it back."""

    def __init__(
        self,
        clock: Any = None,
        domain: str = "example.test",
        leaf_lifetime: timedelta = timedelta(hours=24),
        store: Any = None,
        retired_grace: timedelta = RETIRED_GRACE,
    ) -> None:
        self.clock = clock or SetClock()
        self.store = store or MemoryStore()
        self.log = HeldLog()
        self.news = HeldNews()
        self.settings = Settings(trust_domain(domain), ("localhost",), leaf_lifetime, retired_grace)
        root_key, issuing_key, self.serving_key = keys.new_key(), keys.new_key(), keys.new_key()
        now = self.clock.now()
        self.root = Authority(authorities.self_issued("node root CA", root_key, now, 1), root_key)
        issuing = authorities.issued_by(self.root, "node issuing CA", issuing_key, now)
        self.issuing = Authority(issuing, issuing_key)
        self.signing_key, self.encryption_key = keys.new_key(), keys.new_key()
        random = CountedRandom()
        refuse = Refuse(self.store, self.clock, random, self.log)
        statements = SigningKey(self.signing_key)
        self.joins = Join(
            settings=self.settings,
            store=self.store,
            clock=self.clock,
            random=random,
            issuer=IssuingCa(self.issuing),
            statements=statements,
            unsealer=SealKey(self.encryption_key),
            refuse=refuse,
            news=self.news,
            log=self.log,
        )
        use = UseCertificate(self.settings, self.news, self.log, Alarms(self.log))
        renewal = RenewCertificate(self.settings, random, IssuingCa(self.issuing), statements, use, self.log)
        self.gateway = Gateway(self.store, self.clock, use, renewal)
        self.admin = Admin(self.settings, self.store, self.clock, random, self.news, lambda: statements)
        first_records(self.store, statements, self.settings, now)

    @property
    def recipient(self) -> Recipient:
        return Recipient(self.encryption_key.public_key())

    @property
    def encryption_pin(self) -> str:
        return str(Pin.of(self.recipient.spki))

    @property
    def signing_pin(self) -> str:
        return str(Pin.of(ecdsa.spki_of(self.signing_key.public_key())))

    @property
    def serving_pin(self) -> str:
        return str(Pin.of(ecdsa.spki_of(self.serving_key.public_key())))

    def token(
        self,
        site: str = "lab",
        role: str = "node",
        node_id: str | None = None,
        allow_reclaim: bool = False,
        require_approval: bool = False,
        ttl_s: int = 3600,
        uses: int = 1,
    ) -> str:
        """A new token's text."""
        asked = admin.CreateToken(site, role, node_id, allow_reclaim, require_approval, ttl_s, uses)
        return cast(admin.NewToken, self.admin(asked)).token

    def approvals(self) -> tuple[admin.ApprovalView, ...]:
        return cast(tuple[admin.ApprovalView, ...], self.admin(admin.ListApprovals()))

    def approve(self, approval_id: str, site: str | None = None) -> None:
        self.admin(admin.DecideApproval(approval_id, approve=True, site=site))

    def deny(self, approval_id: str) -> None:
        self.admin(admin.DecideApproval(approval_id, approve=False))

    def revoke_token(self, token: str) -> None:
        self.admin(admin.RevokeToken(token.split("_")[1]))

    def nodes(self) -> tuple[admin.NodeView, ...]:
        return cast(tuple[admin.NodeView, ...], self.admin(admin.ListNodes()))

    def refusals(self) -> tuple[admin.RefusalView, ...]:
        """Newest first."""
        return cast(tuple[admin.RefusalView, ...], self.admin(admin.ListRefusals(1000)))

    def join(self, request: JoinRequest, source: str = "192.0.2.1") -> JoinAnswer:
        return self.joins.join(request, source)

    def ask(self, question: JoinQuestion, source: str = "192.0.2.1") -> joining.Answer:
        """As the node's JoinTransport answers."""
        pending = question.pending
        answer = self.join(
            JoinRequest(
                attestor=pending.attestor,
                csr=pending.csr,
                sealed=pending.sealed,
                wanted_node_id=pending.node_id or "",
                role=pending.role.value,
                claims=question.claims,
                daemon_version=question.daemon_version,
                pending_id=pending.pending_id,
            ),
            source,
        )
        match answer:
            case Granted(signed):
                return joining.Issued(signed)
            case Waiting(approval_id, retry_after_s):
                return joining.Pending(approval_id, retry_after_s)
            case Refused(refusal_id):
                return joining.JoinDenied(refusal_id)
            case Challenged() | TooManyChallenges():
                raise AssertionError("a challenge to a node that joins with a token")

    def exchange(self, data: bytes, source: str = "192.0.2.1") -> bytes | Refused:
        """A serialized JoinRequest in, a serialized JoinReply out; a refusal has no reply."""
        try:
            answer = self.join(decode_request(data), source)
        except MalformedMessage:
            return self.joins.malformed(source)
        return answer if isinstance(answer, Refused) else encode_reply(answer, self.clock.now())

    def hello(self, leaf: bytes, source: str = "192.0.2.1", greeting: Greeting = GREETING) -> HelloAnswer:
        return self.gateway.hello(present(leaf, source), greeting).result()

    def renew(
        self,
        leaf: bytes,
        csr: bytes,
        pop: bytes,
        source: str = "192.0.2.1",
        chain: tuple[bytes, ...] | None = None,
        key_attestation: KeyAttestation | None = None,
    ) -> RenewAnswer:
        """`pop` is a serialized statement of purpose renew-pop; `chain` what the request says if not the right one."""
        asked = RenewRequest(csr, (leaf, self.issuing.der) if chain is None else chain, pop, key_attestation)
        return self.gateway.renew(present(leaf, source), asked).result()

    def revoke(self, node: str, reason: str = "stolen") -> None:
        self.admin(admin.RevokeNode(node, reason))

    def delete(self, node: str) -> None:
        self.admin(admin.DeleteNode(node))

    def renew_now(self, node: str | None = None, reason: str = "moved") -> None:
        self.admin(admin.AskRenewal(node, reason))

    def restored(self, bundle_above: int = 0) -> admin.RestoredView:
        """`bcd-controlplane restored`."""
        return cast(admin.RestoredView, self.admin(admin.Restored(bundle_above)))

    def snapshot(self) -> MemoryRecords:
        """A backup of the store: only MemoryStore has one."""
        return cast(MemoryRecords, self.store.snapshot())

    def restore(self, backup: MemoryRecords) -> None:
        """Puts `backup` back, as often as wanted; nobody has said so yet (`restored`)."""
        self.store.restore(backup)

    def certificates(self, node: str) -> dict[str, str]:
        """Serial and state, oldest first."""
        detail = cast(admin.NodeDetail, self.admin(admin.ShowNode(node)))
        return {row.serial: row.state for row in detail.certificates}

    def audit(self) -> list[tuple[str, dict[str, Any]]]:
        """Kind and detail of every event, oldest first."""
        events = cast(tuple[admin.EventView, ...], self.admin(admin.TailAudit(10_000, None)))
        return [(event.kind, dict(event.detail)) for event in events]


def present(leaf: bytes, source: str = "192.0.2.1") -> Presented:
    """What a handshake with `leaf` (DER) tells the gateway."""
    return Presented(certificates.parse_leaf(leaf), f"{certificates.load(leaf).serial_number:032x}", source)
