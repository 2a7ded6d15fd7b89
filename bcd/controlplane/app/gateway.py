"""The gateway's two calls: Hello and Renew, each one transaction of the store."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TypeVar

from bcd.controlplane.app.use import Call, InUse, UseCertificate
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import (
    Certificate,
    CertificateState,
    GivenAnswer,
    LeafToIssue,
    leaf_credential,
    leaf_dates,
)
from bcd.controlplane.domain.gateway import (
    Declined,
    Full,
    Greeting,
    HelloAnswer,
    Malformed,
    NotNow,
    Presented,
    RenewAnswer,
    Renewed,
    RenewRequest,
    Welcomed,
)
from bcd.controlplane.domain.ids import SERIAL_BYTES
from bcd.controlplane.domain.news import Item
from bcd.controlplane.domain.quota import wait_for_quota
from bcd.controlplane.domain.settings import Settings, SignedBundle
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements
from bcd.controlplane.ports.store import Records, Store, StoreUnavailable
from bcd.protocol.pki import csr, renew_pop

T = TypeVar("T")
Tell = Callable[[Item], None]


@dataclass(frozen=True)
class Question:
    """A renewal whose form is in order. `client_time` is the node's word, recorded and believed in nothing."""

    spki: bytes
    csr_sha256: bytes
    client_time: datetime

    @property
    def spki_sha256(self) -> bytes:
        return sha256(self.spki).digest()


@dataclass(frozen=True)
class Gateway:
    """`ports.gateways.Gateways`."""

    settings: Settings
    store: Store
    clock: WallClock
    random: Random
    issuer: Issuer
    statements: Statements
    use: UseCertificate
    news: News
    log: Log

    def hello(self, presented: Presented, greeting: Greeting) -> Future[HelloAnswer]:
        if not greeting.in_bounds:
            return _done(Malformed("Hello is out of bounds"))
        return self._changing(lambda records, tell: self._hello(records, presented, greeting, tell))

    def renew(self, presented: Presented, request: RenewRequest) -> Future[RenewAnswer]:
        question = self._form(presented, request)
        if isinstance(question, Malformed):
            return _done(question)
        return self._changing(lambda records, tell: self._renew(records, presented, question, tell))

    def ended(self, presented: Presented) -> None:
        def seen(records: Records) -> None:
            node = records.nodes.get(presented.node_id)
            if node is not None:
                records.nodes.put(replace(node, last_seen=self.clock.now()))

        # Nobody waits for it: a store that is away loses an instant nobody decides by.
        self.store.change(seen)

    def _changing(self, work: Callable[[Records, Tell], T]) -> "Future[T]":
        """`work` in one transaction; what it tells reaches the sessions once that is durable, then the answer is
        there, whether or not anybody still waits for it."""
        told: list[Item] = []

        def changed(records: Records) -> T:
            told.clear()
            return work(records, told.append)

        answer: Future[T] = Future()

        def after(done: Future[T]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
                return
            for item in told:
                self.news.tell(item)
            answer.set_result(done.result())

        self.store.change(changed).add_done_callback(after)
        return answer

    def _hello(self, records: Records, presented: Presented, greeting: Greeting, tell: Tell) -> HelloAnswer:
        now = self.clock.now()
        used = self.use(Call(records, presented, now, tell))
        if not isinstance(used, InUse):
            return used
        node, certificate = used.node, used.certificate
        records.nodes.put(replace(node, last_seen=now, daemon_version=greeting.daemon_version))
        asked = node.renew_asked is not None and certificate.issued <= node.renew_asked
        reason = node.renew_reason if asked else ""
        return Welcomed(now, newest_bundle(records), reason, certificate.not_after)

    def _form(self, presented: Presented, request: RenewRequest) -> "Question | Malformed":
        """The gateway's checks 1 to 4 (docs/protocol.md, "Renew"). They need no record."""
        leaf = presented.leaf
        # 1. The chain begins with the leaf of this very connection.
        if not request.chain or request.chain[0] != leaf.der:
            return Malformed("the chain does not begin with the certificate of this connection")
        # 2. The request for the next key is one, and proves that key.
        try:
            spki = csr.key_of(request.csr)
        except csr.MalformedCsr as error:
            return Malformed(f"the certificate request is {error}")
        # 3. The current key signed for this request and this leaf.
        try:
            client_time = renew_pop.open_renew_pop(request.renew_pop, request.csr, leaf)
        except renew_pop.BadProof as error:
            return Malformed(str(error))
        return Question(spki, sha256(request.csr).digest(), client_time)

    def _renew(self, records: Records, presented: Presented, question: Question, tell: Tell) -> RenewAnswer:
        now = self.clock.now()
        # 4. The certificate may be used.
        used = self.use(Call(records, presented, now, tell))
        if not isinstance(used, InUse):
            return used
        records.nodes.put(replace(used.node, last_seen=now))
        # 5. An answer that may have been lost is given again, and costs nothing.
        given = records.answers.get(leaf_credential(presented.serial), question.spki_sha256)
        if given is not None and given.csr_sha256 == question.csr_sha256:
            self.log.info("renewal answered again", node=used.node.id, serial=given.serial, source=presented.source)
            return Renewed(now, given.signed)
        # 6. No key is certified twice.
        if records.certificates.of_key(question.spki_sha256):
            return Declined("the key was certified before: renew with a new one")
        # 7. A certificate that names an attestation key is renewed with its proof alone, which this version has not.
        if presented.leaf.ak_name is not None:
            return Declined("the certificate names an attestation key, whose proof this gateway cannot check")
        # 8. The quota.
        wait = wait_for_quota(records, used.node.id, self.settings.leaf_lifetime, now)
        if wait is not None:
            self.log.warning("renewal quota used up", node=used.node.id, source=presented.source, wait=wait)
            return Full(wait)
        return self._issue(records, used, presented, question, now)

    def _issue(
        self, records: Records, used: InUse, presented: Presented, question: Question, now: datetime
    ) -> RenewAnswer:
        held, leaf = used.certificate, presented.leaf
        not_before, not_after = leaf_dates(now, self.settings.leaf_lifetime, leaf.role)
        # 9. The new certificate outlives the one it replaces.
        if not_after <= held.not_after:
            why = "a renewed certificate would end no later than the one it replaces: was this server's clock set back?"
            self.use.alarms.raise_(records, presented, why, now)
            return NotNow(why)
        serial = self.random.bytes(SERIAL_BYTES)
        chain = self.issuer.issue(
            LeafToIssue(
                spiffe_id=leaf.spiffe_id,
                role=leaf.role,
                spki=question.spki,
                serial=int.from_bytes(serial),
                not_before=not_before,
                not_after=not_after,
            )
        )
        signed = self.statements.renew_response(question.csr_sha256, chain, newest_bundle(records).signed, now)
        credential = leaf_credential(held.serial)
        records.certificates.put(
            Certificate(
                serial=serial.hex(),
                node_id=used.node.id,
                generation=used.node.generation,
                state=CertificateState.ISSUED,
                state_since=now,
                credential=credential,
                parent=held.serial,
                spki_sha256=question.spki_sha256,
                leaf_sha256=sha256(chain[0]).digest(),
                issued=now,
                not_before=not_before,
                not_after=not_after,
            )
        )
        records.answers.remove_expired(now)
        records.answers.put(
            GivenAnswer(
                credential=credential,
                spki_sha256=question.spki_sha256,
                csr_sha256=question.csr_sha256,
                serial=serial.hex(),
                chain=chain,
                signed=signed,
                not_after=not_after,
            )
        )
        detail = {
            "node": used.node.id,
            "serial": serial.hex(),
            "parent": held.serial,
            "clientTime": f"{question.client_time:%Y-%m-%dT%H:%M:%SZ}",
        }
        records.audit.add(Event(now, f"node:{presented.source}", Kind.NODE_RENEWED, detail))
        self.log.info("certificate renewed", source=presented.source, **detail)
        return Renewed(now, signed)


def newest_bundle(records: Records) -> SignedBundle:
    bundle = records.bundles.newest()
    if bundle is None:
        raise StoreUnavailable("the store holds no trust bundle")
    return bundle


def _done(answer: T) -> "Future[T]":
    future: Future[T] = Future()
    future.set_result(answer)
    return future
