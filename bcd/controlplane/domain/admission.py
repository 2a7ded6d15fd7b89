"""Whether a join is granted: the records in, a decision out. Reads alone; `app.join` carries the decision out.

The order of the checks is the order in which an operator would want to hear of them, with one exception that is not
free: what a lost answer said is repeated before anything that its own first success has made false (the token's use).
"""

import hmac
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.domain import approvals, refusals
from bcd.controlplane.domain.approvals import Approval, ApprovalState
from bcd.controlplane.domain.certificates import CertificateState, GivenAnswer
from bcd.controlplane.domain.ids import TokenText
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.nodes import Node, machine_of
from bcd.controlplane.domain.tokens import Token, credential_of
from bcd.controlplane.ports.store import Records
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, Role

Reason = refusals.Reason


@dataclass(frozen=True)
class Requested:
    """A request whose form is in order: its CSR (DER) proved the key in `spki` (DER)."""

    attestor: str
    spki: bytes
    csr: bytes
    role: Role
    claims: Claims
    daemon_version: str
    source: str

    @property
    def spki_sha256(self) -> bytes:
        return sha256(self.spki).digest()

    @property
    def csr_sha256(self) -> bytes:
        return sha256(self.csr).digest()


@dataclass(frozen=True)
class Asked(Requested):
    """One with a token, which opened."""

    token: TokenText
    wanted: NodeId | None


@dataclass(frozen=True)
class Repeat:
    """This was answered before and the answer may have been lost."""

    answer: GivenAnswer


@dataclass(frozen=True)
class Ask:
    """A person has to decide first. `known` is the question when it was put before; `node` as in Issue."""

    token: Token
    node: Node | None
    known: Approval | None


@dataclass(frozen=True)
class Issue:
    """A certificate is due. `node` is the node that comes back, None for a new one; `node_id` a new one's, if given."""

    token: Token
    node: Node | None
    node_id: NodeId | None


Decision = Repeat | Ask | Issue


def admit(records: Records, asked: Asked, now: datetime) -> Decision:
    """What is to be done, or No."""
    token = _token(records, asked)
    credential = credential_of(token.id)
    if asked.role is not token.role:
        raise No(Reason.ROLE_MISMATCH, f"asked {asked.role.value}, the token is for {token.role.value}")
    _check_wanted(asked, token)
    given = records.answers.get(credential, asked.spki_sha256)
    if given is not None and now < given.not_after:
        certificate = records.certificates.get(given.serial)
        if certificate is not None and certificate.state is CertificateState.ISSUED:
            return Repeat(given)
    question = records.approvals.asked(credential, asked.spki_sha256)
    if token.used_up:
        raise No(Reason.TOKEN_USED_UP, f"{token.used} of {token.uses} uses")
    # A question asked in time stays asked: people take longer to answer than a token lives.
    if question is None and now >= token.expires:
        raise No(Reason.TOKEN_EXPIRED, f"at {token.expires:%Y-%m-%dT%H:%M:%SZ}")
    if records.certificates.of_key(asked.spki_sha256):
        raise No(Reason.KEY_CERTIFIED_BEFORE)
    node = _known_node(records, asked, token)
    if token.require_approval and not _approved(records, credential, question, now):
        return Ask(token, node, question)
    return Issue(token, node, token.node_id)


def _token(records: Records, asked: Asked) -> Token:
    token = records.tokens.get(asked.token.id)
    if token is None:
        raise No(Reason.TOKEN_UNKNOWN)
    if not hmac.compare_digest(token.secret_sha256, asked.token.secret_sha256):
        raise No(Reason.TOKEN_SECRET_WRONG)
    if token.revoked is not None:
        raise No(Reason.TOKEN_REVOKED, f"at {token.revoked:%Y-%m-%dT%H:%M:%SZ}")
    return token


def _check_wanted(asked: Asked, token: Token) -> None:
    if asked.wanted is not None and asked.wanted != token.node_id:
        raise No(Reason.NODE_ID_MISMATCH, f"asked {asked.wanted}, the token is for {token.node_id or 'any new node'}")


def _known_node(records: Records, asked: Asked, token: Token) -> Node | None:
    """The node this machine already is and may be again; None when it is a new one."""
    if token.node_id is not None:
        # The operator named the node; what the machine claims to be decides nothing.
        node = records.nodes.get(token.node_id)
    else:
        known = records.nodes.of_machine(machine_of(asked.claims))
        names = ", ".join(node.id for node in known)
        if known and not token.allow_reclaim:
            raise No(Reason.MACHINE_KNOWN, f"as {names}")
        if len(known) > 1:
            raise No(Reason.MACHINE_AMBIGUOUS, f"as {names}")
        node = known[0] if known else None
    if node is not None and node.site != token.site:
        raise No(Reason.SITE_MISMATCH, f"{node.id} is of {node.site}, the token is for {token.site}")
    return node


def _approved(records: Records, credential: str, question: Approval | None, now: datetime) -> bool:
    if question is None:
        open_questions = [
            other
            for other in records.approvals.of_credential(credential)
            if other.state is ApprovalState.PENDING and not other.lapsed(now)
        ]
        if len(open_questions) >= approvals.MAX_PENDING_PER_TOKEN:
            raise No(Reason.APPROVALS_TOO_MANY)
        return False
    if question.lapsed(now):
        raise No(Reason.APPROVAL_LAPSED, question.id)
    if question.state is ApprovalState.DENIED:
        raise No(Reason.APPROVAL_DENIED, question.id)
    return question.state is ApprovalState.APPROVED
