"""The rounds of a join by TPM: who it says it is, a challenge, and the proof (docs/protocol.md, "TPM attestation")."""

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.app.issue import Due, IssuedJoin, IssueJoin
from bcd.controlplane.app.note import Note
from bcd.controlplane.domain import attestation, challenges, tpms
from bcd.controlplane.domain.admission import Requested
from bcd.controlplane.domain.approvals import Approval, ApprovalState, retry_after_s
from bcd.controlplane.domain.attestation import Answered, Checks, Shown
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import CertificateState, GivenAnswer
from bcd.controlplane.domain.challenges import Challenge, ek_credential
from bcd.controlplane.domain.ek_admission import Admitted, Denied, Pending, Vouched, judge_offered
from bcd.controlplane.domain.ids import SHORT_ID_BYTES, ApprovalId, TokenId, short_id
from bcd.controlplane.domain.joining import TPM, Challenged, No, TooManyChallenges, Waiting
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Reason
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.store import Records
from bcd.domain.model.attestation import NONCE_BYTES, ChallengeAnswer
from bcd.domain.model.names import SiteId
from bcd.protocol.pki import ek_certificate
from bcd.protocol.tpm2 import credential, names

# TPMs nobody spoke of that wait for a person at once: more than anybody looks at.
MAX_WAITING = 256

_Answer = IssuedJoin | tuple[Waiting | Challenged | TooManyChallenges, Note]


@dataclass(frozen=True)
class JoinByTpm:
    random: Random
    issue: IssueJoin
    checks: Checks
    vouched: Vouched | None = None

    def __call__(
        self, records: Records, asked: Requested, shown: Shown, answer: ChallengeAnswer | None, now: datetime
    ) -> _Answer:
        """The answer, or No. Whatever it decides is in the caller's transaction."""
        # 2. The endorsement key is one that may join here.
        verdict = judge_offered(records, shown.offered, shown.ak_name.hex(), self.vouched)
        if isinstance(verdict, Denied):
            raise No(verdict.reason, verdict.detail)
        # 3. It is a key of the TCG's profile; 4. the attestation key speaks for its TPM alone.
        ek = shown.area(verdict.offered)
        attestation.require(self.checks.ek, ek)
        attestation.require(self.checks.ak, shown.ak)
        if isinstance(verdict, Pending):
            return self._wait(records, asked, verdict, now)
        if asked.role is not verdict.role:
            raise No(Reason.ROLE_MISMATCH, f"asked {asked.role.value}, {verdict.offered.ek} is {verdict.role.value}")
        node = _node(records, verdict)
        if answer is None:
            return self._challenge(records, asked, shown, verdict, now)
        return self._prove(records, asked, shown, verdict, answer, node=node, now=now)

    def _wait(self, records: Records, asked: Requested, verdict: Pending, now: datetime) -> tuple[Waiting, Note]:
        ek = verdict.offered.ek
        known = records.approvals.of_credential(ek_credential(ek))
        question = known[0] if known else None
        if question is not None and question.state is ApprovalState.DENIED:
            raise No(Reason.APPROVAL_DENIED, question.id)
        # Approved, and here all the same: somebody has taken the key off the list since.
        if question is None or question.lapsed(now) or question.state is ApprovalState.APPROVED:
            question = self._put_question(records, asked, verdict, question, now)
        told = {"approval": question.id, "ek": ek, "source": asked.source}
        return Waiting(question.id, retry_after_s(question, now)), Note("join waits for its TPM to be allowed", told)

    def _put_question(
        self, records: Records, asked: Requested, verdict: Pending, before: Approval | None, now: datetime
    ) -> Approval:
        waiting = [
            row
            for row in records.approvals.all()
            if row.ek and row.state is ApprovalState.PENDING and not row.lapsed(now)
        ]
        if len(waiting) >= MAX_WAITING:
            raise No(Reason.APPROVALS_TOO_MANY, f"{len(waiting)} TPMs wait already")
        question = Approval(
            id=before.id if before else ApprovalId(f"a-{short_id(self.random.bytes(SHORT_ID_BYTES))}"),
            credential=ek_credential(verdict.offered.ek),
            # What is to be allowed is the endorsement key: its fingerprint is what is shown.
            spki_sha256=sha256(verdict.offered.spki).digest(),
            token_id=TokenId(""),
            site=SiteId(""),
            role=asked.role,
            node_id=None,
            reclaims=False,
            claims=asked.claims,
            daemon_version=asked.daemon_version,
            source=asked.source,
            asked=now,
        )
        records.approvals.put(question)
        detail = {"approval": question.id, "ek": verdict.offered.ek, "ekRoot": verdict.roots[0]}
        detail |= {"besideDenied": verdict.doubt} if verdict.doubt else {}
        records.audit.add(Event(now, f"node:{asked.source}", Kind.JOIN_PENDING, detail))
        return question

    def _challenge(
        self, records: Records, asked: Requested, shown: Shown, verdict: Admitted, now: datetime
    ) -> tuple[Challenged | TooManyChallenges, Note]:
        bank = attestation.bank_of(shown)
        ek = shown.area(verdict.offered)
        records.challenges.remove_ended(now - challenges.REPEATS_FOR)
        mine = records.challenges.of_request(asked.csr_sha256)
        for known in mine:
            same = (known.ek_name, known.ak_name, known.pcr_bank) == (names.name(ek), shown.ak_name, bank)
            if same and known.repeats_at(now):
                return Challenged(known.as_sent(TPM)), _challenged(known, asked)
        if _certified_before(records, asked, verdict):
            raise No(Reason.KEY_CERTIFIED_BEFORE)
        if len(mine) >= challenges.MAX_ROWS_PER_REQUEST:
            raise No(Reason.CHALLENGES_TOO_MANY)
        here = records.challenges.count(asked.source)
        if here >= challenges.MAX_ROWS_PER_SOURCE or records.challenges.count() >= challenges.MAX_ROWS:
            note = Note("too many challenges under way", {"source": asked.source, "here": here}, warning=True)
            return TooManyChallenges(), note
        secret = self.random.bytes(challenges.SECRET_BYTES)
        made, encrypted_secret = credential.make_credential(ek, shown.ak_name, secret)
        challenge = Challenge(
            id=self.random.bytes(challenges.ID_BYTES).hex(),
            ek=verdict.offered.ek,
            ek_name=names.name(ek),
            ak_name=shown.ak_name,
            csr_sha256=asked.csr_sha256,
            secret_sha256=sha256(secret).digest(),
            credential=made,
            encrypted_secret=encrypted_secret,
            nonce=self.random.bytes(NONCE_BYTES),
            pcr_bank=bank,
            pcr_selection=challenges.PCR_SELECTION,
            source=asked.source,
            issued=now,
            not_after=now + challenges.LIFETIME,
        )
        records.challenges.put(challenge)
        return Challenged(challenge.as_sent(TPM)), _challenged(challenge, asked)

    def _prove(
        self,
        records: Records,
        asked: Requested,
        shown: Shown,
        verdict: Admitted,
        answer: ChallengeAnswer,
        *,
        node: Node | None,
        now: datetime,
    ) -> IssuedJoin:
        # 5. The challenge is one of ours.
        challenge = records.challenges.get(answer.id)
        if challenge is None:
            raise No(Reason.CHALLENGE_UNKNOWN)
        facts = Answered(shown, shown.area(verdict.offered), challenge, answer, asked.spki, asked.csr_sha256, now)
        attestation.require(self.checks.binding, facts)
        if challenge.answered is not None:
            return self._answered(records, asked, challenge, challenge.answered, now)
        try:
            # 6 to 24.
            attestation.require(self.checks.answer, facts)
        except No:
            # One answer each: who failed asks anew.
            records.challenges.remove(challenge.id)
            raise
        tpms.remember(records, shown.ak_name.hex(), verdict.offered.ek, [one.ek for one in shown.offered])
        given = _given(records, asked, verdict)
        if given is not None:
            records.challenges.put(replace(challenge, answered=now, serial=given.serial))
            return self._again(records, asked, given, now)
        if records.certificates.of_key(asked.spki_sha256):
            raise No(Reason.KEY_CERTIFIED_BEFORE)
        due = Due(
            credential=ek_credential(verdict.offered.ek),
            site=verdict.site,
            role=verdict.role,
            node=node,
            node_id=verdict.node_id,
            token_id=TokenId(""),
            ek=verdict.offered.ek,
            ak_name=shown.ak_name if facts.certified is not None else None,
            told=_told(facts, verdict),
        )
        issued = self.issue(records, asked, due, now)
        records.challenges.put(replace(challenge, answered=now, serial=issued.serial))
        return issued

    def _answered(
        self, records: Records, asked: Requested, challenge: Challenge, answered: datetime, now: datetime
    ) -> IssuedJoin:
        """The answer may have been lost."""
        given = records.answers.get(ek_credential(challenge.ek), asked.spki_sha256)
        certificate = records.certificates.get(challenge.serial)
        lives = certificate is not None and certificate.state in {CertificateState.ISSUED, CertificateState.CURRENT}
        if given is None or given.serial != challenge.serial or not lives or now >= answered + challenges.REPEATS_FOR:
            raise No(Reason.CHALLENGE_USED, f"at {answered:%Y-%m-%dT%H:%M:%SZ}")
        return self._again(records, asked, given, now)

    def _again(self, records: Records, asked: Requested, given: GivenAnswer, now: datetime) -> IssuedJoin:
        note = Note("join answered again", {"serial": given.serial, "source": asked.source})
        return IssuedJoin(self.issue.again(records, asked, given, now), given.serial, note, _NOBODY)


_NOBODY: tuple[NodeRevoked, ...] = ()


def _node(records: Records, verdict: Admitted) -> Node | None:
    """The node that comes back: by the endorsement key, never by what the machine claims to be."""
    node = records.nodes.get(verdict.node_id) if verdict.node_id is not None else None
    if node is None:
        return None
    if node.ek not in {"", verdict.offered.ek}:
        raise No(Reason.EK_NODE_TAKEN, f"{node.id} is the TPM {node.ek}")
    if node.site != verdict.site:
        raise No(Reason.SITE_MISMATCH, f"{node.id} is of {node.site}, its TPM is allowed for {verdict.site}")
    return node


def _given(records: Records, asked: Requested, verdict: Admitted) -> GivenAnswer | None:
    """What was answered before for this key and TPM, while nobody has used it."""
    given = records.answers.get(ek_credential(verdict.offered.ek), asked.spki_sha256)
    certificate = records.certificates.get(given.serial) if given is not None else None
    return given if certificate is not None and certificate.state is CertificateState.ISSUED else None


def _certified_before(records: Records, asked: Requested, verdict: Admitted) -> bool:
    return bool(records.certificates.of_key(asked.spki_sha256)) and _given(records, asked, verdict) is None


def _challenged(challenge: Challenge, asked: Requested) -> Note:
    return Note("join challenged", {"ek": challenge.ek, "ak": challenge.ak_name.hex(), "source": asked.source})


def _told(facts: Answered, verdict: Admitted) -> dict[str, str | int | bool]:
    """What is recorded and decides nothing: PCRs, clock and counters, the certificate's end."""
    clock = facts.quoted.attest.clock
    told: dict[str, str | int | bool] = {
        "ek": verdict.offered.ek,
        "ekRoot": verdict.root or "",
        "ekUntil": _until(verdict.offered.certificate),
        "ak": facts.shown.ak_name.hex(),
        "pcrBank": f"0x{facts.challenge.pcr_bank:04x}",
        "pcrs": " ".join(value.hex() for value in facts.answer.pcr_values),
        "clockMs": clock.clock_ms,
        "clockSafe": bool(clock.safe),
        "resets": clock.resets,
        "restarts": clock.restarts,
        "firmware": f"{facts.quoted.attest.firmware:016x}",
    }
    return told


def _until(certificate: bytes) -> str:
    if not certificate:
        return ""
    try:
        until = ek_certificate.read(certificate).not_after
    except ek_certificate.Malformed:
        return ""
    return f"{until:%Y-%m-%dT%H:%M:%SZ}" if until else ""
