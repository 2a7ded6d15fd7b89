"""A join as the control plane sees it: what is asked, and what is answered."""

from dataclasses import dataclass

from bcd.controlplane.domain.ids import ApprovalId, RefusalId
from bcd.controlplane.domain.refusals import Reason
from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge, TpmEvidence
from bcd.domain.model.claims import MAX_CLAIM, MAX_CLAIMS_OF_A_KIND, Claims, is_gpu_uuid, is_mac
from bcd.domain.model.pending import SealedToken

JOIN_TOKEN = "join-token"  # noqa: S105
PROVISIONED = "provisioned"
TPM = "tpm"
ATTESTORS = frozenset({JOIN_TOKEN, PROVISIONED, TPM})

# A token is at most 4096 bytes; sealed it grows by a point (65) and a tag (16).
MAX_SEALED_BYTES = 4096 + 65 + 16
MAX_KID = 64
MAX_WORD = 64


@dataclass(frozen=True)
class JoinRequest:
    """As received: nothing in it has been looked at. `csr` is PKCS#10 DER; absent texts are empty."""

    attestor: str
    csr: bytes
    sealed: SealedToken | None
    wanted_node_id: str
    role: str
    claims: Claims
    daemon_version: str = ""
    pending_id: str = ""
    evidence: TpmEvidence | None = None
    answer: ChallengeAnswer | None = None


# What stands in the record of a refusal when there was no request to read.
NOTHING = JoinRequest("", b"", None, "", "", Claims())


@dataclass(frozen=True)
class Granted:
    """`signed` is the serialized SignedStatement of purpose join-response."""

    signed: bytes


@dataclass(frozen=True)
class Waiting:
    id: ApprovalId
    retry_after_s: int


@dataclass(frozen=True)
class Refused:
    """All the node learns is the id."""

    id: RefusalId


@dataclass(frozen=True)
class Challenged:
    """The TPM has to prove first whose keys it showed."""

    challenge: JoinChallenge


@dataclass(frozen=True)
class TooManyChallenges:
    """Nothing is decided: as many are under way as there may be."""


JoinAnswer = Granted | Waiting | Challenged | TooManyChallenges | Refused


class No(Exception):
    """The decision to refuse, on its way to the one place that records it. `detail` is for the operator."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.detail = detail


def check_bounds(request: JoinRequest) -> None:
    """No when a field is larger than the protocol lets it be, or would not print."""
    words = (request.attestor, request.role, request.wanted_node_id, request.pending_id)
    if not all(_printable(word, MAX_WORD) for word in words):
        raise No(Reason.REQUEST_MALFORMED, "a field is too long or not printable")
    if not _printable(request.daemon_version, MAX_CLAIM):
        raise No(Reason.REQUEST_MALFORMED, "the daemon version is too long or not printable")
    if request.sealed and not (
        _printable(request.sealed.kid, MAX_KID) and len(request.sealed.sealed) <= MAX_SEALED_BYTES
    ):
        raise No(Reason.REQUEST_MALFORMED, "the sealed token is larger than one can be")
    if request.attestor == JOIN_TOKEN and request.wanted_node_id:
        raise No(Reason.REQUEST_MALFORMED, f"a node id with the attestor {JOIN_TOKEN}")
    if request.attestor == TPM and (request.wanted_node_id or request.sealed is not None):
        raise No(Reason.REQUEST_MALFORMED, f"a node id or a token with the attestor {TPM}")
    if not claims_in_bounds(request.claims):
        raise No(Reason.CLAIMS_MALFORMED)


def claims_in_bounds(claims: Claims) -> bool:
    many = (claims.macs, claims.gpu_uuids)
    single = (
        claims.product_uuid,
        claims.product_serial,
        claims.board_serial,
        claims.chassis_serial,
        claims.hostname,
        claims.boot_id,
    )
    return all(len(kind) <= MAX_CLAIMS_OF_A_KIND and list(kind) == sorted(set(kind)) for kind in many) and (
        all(map(is_mac, claims.macs))
        and all(map(is_gpu_uuid, claims.gpu_uuids))
        and all(_printable(text, MAX_CLAIM) for text in single)
    )


def _printable(text: str, limit: int) -> bool:
    return len(text) <= limit and text.isprintable()
