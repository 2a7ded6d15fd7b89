"""Join: one request, one answer. The form is checked first; everything else happens in one transaction of the store."""

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.app.bundle import newest_bundle
from bcd.controlplane.app.note import Note
from bcd.controlplane.app.refuse import Refuse
from bcd.controlplane.domain import joining
from bcd.controlplane.domain.admission import Ask, Asked, Decision, Issue, Repeat, admit
from bcd.controlplane.domain.approvals import Approval, retry_after_s
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import Certificate, CertificateState, GivenAnswer, LeafToIssue, leaf_dates
from bcd.controlplane.domain.ids import SERIAL_BYTES, SHORT_ID_BYTES, ApprovalId, TokenText, short_id
from bcd.controlplane.domain.joining import Granted, JoinAnswer, JoinRequest, No, Refused, Waiting
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.nodes import Node, machine_of
from bcd.controlplane.domain.refusals import Reason
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.standing import last_generation
from bcd.controlplane.domain.tokens import Token, credential_of
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements, Unsealer
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model import names
from bcd.domain.model.names import NodeId, SpiffeId
from bcd.protocol.pki import csr

# What a session with a certificate of before is told.
JOINED_AGAIN = "joined again"


@dataclass(frozen=True)
class Join:
    """`ports.joins.Joins`: safe to call from many threads at once."""

    settings: Settings
    store: Store
    clock: WallClock
    random: Random
    issuer: Issuer
    statements: Statements
    unsealer: Unsealer
    refuse: Refuse
    news: News
    log: Log

    def malformed(self, source: str) -> Refused:
        return self.refuse(joining.NOTHING, source, No(Reason.REQUEST_MALFORMED, "not a JoinRequest"))

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        try:
            asked = self._form(request, source)
        except No as no:
            return self.refuse(request, source, no)

        revoked: list[NodeRevoked] = []

        def decide(records: Records) -> tuple[JoinAnswer, Note]:
            now = self.clock.now()
            try:
                decision = admit(records, asked, now)
            except No as no:
                return self.refuse.within(records, request, source, no, asked.token.id)
            if isinstance(decision, Issue) and decision.node is not None:
                revoked.extend(_revoke(records, decision.node, now))
            return self._carry_out(records, asked, decision, now)

        answer, note = self.store.change(decide).result()
        note.write(self.log)
        for item in revoked:
            self.news.tell(item)
        return answer

    def _form(self, request: JoinRequest, source: str) -> Asked:
        """The request's own form: bounds, names, the CSR's signature, the seal. Needs no record."""
        joining.check_bounds(request)
        if request.attestor not in joining.ATTESTORS:
            raise No(Reason.ATTESTOR_UNKNOWN, request.attestor)
        try:
            role = names.role(request.role)
        except names.MalformedName as error:
            raise No(Reason.ROLE_UNKNOWN, str(error)) from None
        try:
            wanted = names.node_id(request.wanted_node_id) if request.wanted_node_id else None
        except names.MalformedName as error:
            raise No(Reason.NODE_ID_MALFORMED, str(error)) from None
        if request.attestor == joining.PROVISIONED and wanted is None:
            raise No(Reason.NODE_ID_MISSING)
        try:
            spki = csr.key_of(request.csr)
        except csr.MalformedCsr as error:
            raise No(Reason.CSR_MALFORMED, str(error)) from None
        return Asked(
            attestor=request.attestor,
            token=self._open(request),
            spki=spki,
            spki_sha256=sha256(spki).digest(),
            csr_sha256=sha256(request.csr).digest(),
            role=role,
            wanted=wanted,
            claims=request.claims,
            daemon_version=request.daemon_version,
            source=source,
        )

    def _open(self, request: JoinRequest) -> TokenText:
        if request.sealed is None or not request.sealed.sealed:
            raise No(Reason.TOKEN_MISSING)
        if request.sealed.kid != self.unsealer.kid:
            raise No(Reason.SEAL_KEY_UNKNOWN, request.sealed.kid)
        text = self.unsealer.open(request.sealed, request.csr)
        if text is None:
            raise No(Reason.SEAL_DOES_NOT_OPEN)
        token = TokenText.parse(text)
        if token is None:
            raise No(Reason.TOKEN_MALFORMED)
        return token

    def _carry_out(self, records: Records, asked: Asked, decision: Decision, now: datetime) -> tuple[JoinAnswer, Note]:
        told = {"token": asked.token.id, "source": asked.source}
        match decision:
            case Repeat(answer):
                note = Note("join answered again", {"serial": answer.serial, **told})
                return Granted(self._again(records, asked, answer, now)), note
            case Ask(token, node, known):
                question = known or self._put_question(records, asked, token, node, now)
                note = Note("join waits for approval", {"approval": question.id, **told})
                return Waiting(question.id, retry_after_s(question, now)), note
            case Issue():
                return self._issue(records, asked, decision, now)

    def _again(self, records: Records, asked: Asked, answer: GivenAnswer, now: datetime) -> bytes:
        if answer.csr_sha256 == asked.csr_sha256:
            return answer.signed
        # The same key in another request: the same certificate, said of this request.
        return self.statements.join_response(asked.csr_sha256, answer.chain, newest_bundle(records).signed, now)

    def _put_question(self, records: Records, asked: Asked, token: Token, node: Node | None, now: datetime) -> Approval:
        question = Approval(
            id=ApprovalId(f"a-{short_id(self.random.bytes(SHORT_ID_BYTES))}"),
            credential=credential_of(token.id),
            spki_sha256=asked.spki_sha256,
            token_id=token.id,
            site=token.site,
            role=token.role,
            node_id=node.id if node is not None else token.node_id,
            reclaims=node is not None,
            claims=asked.claims,
            daemon_version=asked.daemon_version,
            source=asked.source,
            asked=now,
        )
        records.approvals.put(question)
        records.audit.add(
            Event(now, f"node:{asked.source}", Kind.JOIN_PENDING, {"approval": question.id, "token": token.id})
        )
        return question

    def _issue(self, records: Records, asked: Asked, due: Issue, now: datetime) -> tuple[Granted, Note]:
        token = due.token
        node = self._node(records, asked, due, now)
        not_before, not_after = leaf_dates(now, self.settings.leaf_lifetime, token.role)
        serial = self.random.bytes(SERIAL_BYTES)
        chain = self.issuer.issue(
            LeafToIssue(
                spiffe_id=SpiffeId(self.settings.trust_domain, node.site, node.id),
                role=token.role,
                spki=asked.spki,
                serial=int.from_bytes(serial),
                not_before=not_before,
                not_after=not_after,
            )
        )
        signed = self.statements.join_response(asked.csr_sha256, chain, newest_bundle(records).signed, now)
        records.nodes.put(node)
        records.tokens.put(replace(token, used=token.used + 1))
        records.certificates.put(
            Certificate(
                serial=serial.hex(),
                node_id=node.id,
                generation=node.generation,
                state=CertificateState.ISSUED,
                state_since=now,
                credential=credential_of(token.id),
                parent="",
                spki_sha256=asked.spki_sha256,
                leaf_sha256=sha256(chain[0]).digest(),
                issued=now,
                not_before=not_before,
                not_after=not_after,
            )
        )
        records.answers.remove_expired(now)
        records.answers.put(
            GivenAnswer(
                credential=credential_of(token.id),
                spki_sha256=asked.spki_sha256,
                csr_sha256=asked.csr_sha256,
                serial=serial.hex(),
                chain=chain,
                signed=signed,
                not_after=not_after,
            )
        )
        detail: dict[str, str | int | bool] = {
            "node": node.id,
            "site": node.site,
            "role": node.role.value,
            "generation": node.generation,
            "token": token.id,
            "serial": serial.hex(),
            "attestor": asked.attestor,
            "nodeKey": "unattested",
        }
        records.audit.add(Event(now, f"node:{asked.source}", Kind.NODE_JOINED, detail))
        return Granted(signed), Note("node joined", {"source": asked.source, **detail})

    def _node(self, records: Records, asked: Asked, due: Issue, now: datetime) -> Node:
        if due.node is not None:
            return replace(
                due.node,
                role=due.token.role,
                generation=due.node.generation + 1,
                machine=machine_of(asked.claims),
                claims=asked.claims,
                daemon_version=asked.daemon_version,
                token_id=due.token.id,
                joined=now,
            )
        node_id = due.node_id or self._new_id(records)
        return Node(
            id=node_id,
            site=due.token.site,
            role=due.token.role,
            # A node of this id may have been deleted: its certificates are of generations that have been.
            generation=1 + last_generation(records, node_id),
            machine=machine_of(asked.claims),
            claims=asked.claims,
            daemon_version=asked.daemon_version,
            token_id=due.token.id,
            created=now,
            joined=now,
        )

    def _new_id(self, records: Records) -> NodeId:
        while True:
            node_id = NodeId(f"n-{short_id(self.random.bytes(SHORT_ID_BYTES))}")
            if records.nodes.get(node_id) is None:
                return node_id


def _revoke(records: Records, node: Node, now: datetime) -> list[NodeRevoked]:
    """The node comes back: what it held is of another generation; the retired and the void stay what they were."""
    for older in records.certificates.open(node.id):
        records.certificates.put(replace(older, state=CertificateState.REVOKED, state_since=now, reason=JOINED_AGAIN))
    return [NodeRevoked(node.id, node.generation + 1, JOINED_AGAIN, now)]
