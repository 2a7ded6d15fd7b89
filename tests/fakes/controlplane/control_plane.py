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
from bcd.controlplane.app.initialize import first_records
from bcd.controlplane.app.join import Join
from bcd.controlplane.app.refuse import Refuse
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.joining import Granted, JoinAnswer, JoinRequest, Refused, Waiting
from bcd.controlplane.domain.settings import Settings
from bcd.domain.model import joining
from bcd.domain.model.names import trust_domain
from bcd.domain.model.pins import Pin
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.pki import ecdsa
from bcd.protocol.pki.seal import Recipient
from tests.fakes.controlplane.memory_store import MemoryStore

START = datetime(2026, 9, 26, 11, 42, tzinfo=UTC)


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


class MemoryControlPlane:
    """`clock` is any object with `now()`; certificates and statements are real and verify under the pins here.

    join: the domain's own request and answer. ask: a node's `JoinQuestion` and `Answer`, which is what a fake
    `JoinTransport` needs. exchange: serialized JoinRequest and JoinReply."""

    def __init__(
        self,
        clock: Any = None,
        domain: str = "example.test",
        leaf_lifetime: timedelta = timedelta(hours=24),
        store: Any = None,
    ) -> None:
        self.clock = clock or SetClock()
        self.store = store or MemoryStore()
        self.log = HeldLog()
        self.settings = Settings(trust_domain(domain), ("localhost",), leaf_lifetime)
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
            log=self.log,
        )
        self.admin = Admin(self.settings, self.store, self.clock, random)
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

    def approve(self, approval_id: str) -> None:
        self.admin(admin.DecideApproval(approval_id, approve=True))

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

    def exchange(self, data: bytes, source: str = "192.0.2.1") -> bytes | Refused:
        """A serialized JoinRequest in, a serialized JoinReply out; a refusal has no reply."""
        try:
            answer = self.join(decode_request(data), source)
        except MalformedMessage:
            return self.joins.malformed(source)
        return answer if isinstance(answer, Refused) else encode_reply(answer, self.clock.now())
