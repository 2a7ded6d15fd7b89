"""Join: one request, one answer. The form is checked first; everything else happens in one transaction of the store."""

from dataclasses import dataclass, replace
from datetime import datetime

from bcd.controlplane.app.issue import Due, IssuedJoin, IssueJoin
from bcd.controlplane.app.join_by_tpm import JoinByTpm
from bcd.controlplane.app.note import Note
from bcd.controlplane.app.refuse import Refuse
from bcd.controlplane.domain import attestation, joining
from bcd.controlplane.domain.admission import Ask, Asked, Decision, Issue, Repeat, Requested, admit
from bcd.controlplane.domain.approvals import Approval, retry_after_s
from bcd.controlplane.domain.attestation import Shown
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.ek_admission import Vouched, roots_in_question, vouch
from bcd.controlplane.domain.ids import SHORT_ID_BYTES, ApprovalId, TokenText, short_id
from bcd.controlplane.domain.joining import JoinAnswer, JoinRequest, No, Refused, Waiting
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Reason
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.tokens import Token, credential_of
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements, Unsealer
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model import names
from bcd.domain.model.names import NodeId
from bcd.protocol.pki import csr


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
    # The tests leave one out at a time, to see what it alone keeps away.
    tpm_checks: attestation.Checks = attestation.ALL

    @property
    def _issue(self) -> IssueJoin:
        return IssueJoin(self.settings, self.random, self.issuer, self.statements)

    def malformed(self, source: str) -> Refused:
        return self.refuse(joining.NOTHING, source, No(Reason.REQUEST_MALFORMED, "not a JoinRequest"))

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        try:
            asked, shown = self._form(request, source)
        except No as no:
            return self.refuse(request, source, no)
        vouched = self._vouched(shown)

        revoked: list[NodeRevoked] = []

        def decide(records: Records) -> tuple[JoinAnswer, Note]:
            now = self.clock.now()
            try:
                outcome = (
                    self._carry_out(records, asked, admit(records, asked, now), now)
                    if isinstance(asked, Asked)
                    else JoinByTpm(self.random, self._issue, self.tpm_checks, vouched)(
                        records, asked, _there(shown), request.answer, now
                    )
                )
            except No as no:
                token_id = asked.token.id if isinstance(asked, Asked) else ""
                return self.refuse.within(records, request, source, _named(no, shown), token_id)
            if not isinstance(outcome, IssuedJoin):
                return outcome
            revoked.extend(outcome.revoked)
            return outcome.granted, outcome.note

        answer, note = self.store.change(decide).result()
        note.write(self.log)
        for item in revoked:
            self.news.tell(item)
        return answer

    def _form(self, request: JoinRequest, source: str) -> tuple[Requested, Shown | None]:
        """The request's own form: bounds, names, the CSR's signature, the seal or the evidence. Needs no record."""
        joining.check_bounds(request)
        if request.attestor not in joining.ATTESTORS:
            raise No(Reason.ATTESTOR_UNKNOWN, request.attestor)
        try:
            role = names.role(request.role)
        except names.MalformedName as error:
            raise No(Reason.ROLE_UNKNOWN, str(error)) from None
        wanted = _wanted(request)
        try:
            spki = csr.key_of(request.csr)
        except csr.MalformedCsr as error:
            raise No(Reason.CSR_MALFORMED, str(error)) from None
        requested = Requested(
            attestor=request.attestor,
            spki=spki,
            csr=request.csr,
            role=role,
            claims=request.claims,
            daemon_version=request.daemon_version,
            source=source,
        )
        if request.attestor == joining.TPM:
            if request.answer is not None and not attestation.within_bounds(request.answer):
                raise No(Reason.REQUEST_MALFORMED, "the answer to a challenge is larger than one can be")
            return requested, attestation.read_evidence(request.evidence)
        return Asked(**vars(requested), token=self._open(request), wanted=wanted), None

    def _vouched(self, shown: Shown | None) -> Vouched | None:
        """Whether a manufacturer vouches for the TPM, asked before the transaction: a stranger's certificates are to
        keep nobody waiting."""
        if shown is None:
            return None
        roots = self.store.read(lambda records: roots_in_question(records, shown.offered))
        return vouch(shown.offered, roots) if roots is not None else None

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

    def _carry_out(
        self, records: Records, asked: Asked, decision: Decision, now: datetime
    ) -> IssuedJoin | tuple[Waiting, Note]:
        told = {"token": asked.token.id, "source": asked.source}
        match decision:
            case Repeat(answer):
                note = Note("join answered again", {"serial": answer.serial, **told})
                return IssuedJoin(self._issue.again(records, asked, answer, now), answer.serial, note, ())
            case Ask(token, node, known):
                question = known or self._put_question(records, asked, token, node, now)
                note = Note("join waits for approval", {"approval": question.id, **told})
                return Waiting(question.id, retry_after_s(question, now)), note
            case Issue(token, node, node_id):
                records.tokens.put(replace(token, used=token.used + 1))
                due = Due(
                    credential=credential_of(token.id),
                    site=token.site,
                    role=token.role,
                    node=node,
                    node_id=node_id,
                    token_id=token.id,
                    told={"token": token.id},
                )
                return self._issue(records, asked, due, now)

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


def _wanted(request: JoinRequest) -> NodeId | None:
    try:
        wanted = names.node_id(request.wanted_node_id) if request.wanted_node_id else None
    except names.MalformedName as error:
        raise No(Reason.NODE_ID_MALFORMED, str(error)) from None
    if request.attestor == joining.PROVISIONED and wanted is None:
        raise No(Reason.NODE_ID_MISSING)
    return wanted


def _named(no: No, shown: Shown | None) -> No:
    """With the endorsement key in it, which is what an operator could allow."""
    if shown is None or not shown.offered or any(one.ek in no.detail for one in shown.offered):
        return no
    which = f"endorsement key {shown.offered[0].ek}"
    return No(no.reason, f"{no.detail} ({which})" if no.detail else which)


def _there(shown: Shown | None) -> Shown:
    if shown is None:
        raise AssertionError("a join without a token shows a TPM")
    return shown
