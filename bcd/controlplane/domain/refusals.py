"""Why a join was refused: for the operator alone. The node gets one uniform answer and an id to ask with."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bcd.controlplane.domain.ids import RefusalId
from bcd.domain.model.claims import Claims

# Anyone who reaches the join port can be refused, so what that leaves behind is bounded: rows in all, rows from one
# source within an hour, and days a row is kept. What is beyond them is in the log alone.
MAX_ROWS = 10_000
MAX_ROWS_PER_SOURCE_AND_HOUR = 60
MAX_ROWS_PER_HOUR = 600
KEPT_FOR = timedelta(days=30)
WINDOW = timedelta(hours=1)


class Reason(StrEnum):
    """The reason as `refusals show` and the log give it."""

    REQUEST_MALFORMED = "request-malformed"
    CLAIMS_MALFORMED = "claims-malformed"
    ATTESTOR_UNKNOWN = "attestor-unknown"
    CSR_MALFORMED = "csr-malformed"
    ROLE_UNKNOWN = "role-unknown"
    NODE_ID_MALFORMED = "node-id-malformed"
    NODE_ID_MISSING = "node-id-missing"
    TOKEN_MISSING = "token-missing"  # noqa: S105
    SEAL_KEY_UNKNOWN = "seal-key-unknown"
    SEAL_DOES_NOT_OPEN = "seal-does-not-open"
    TOKEN_MALFORMED = "token-malformed"  # noqa: S105
    TOKEN_UNKNOWN = "token-unknown"  # noqa: S105
    TOKEN_SECRET_WRONG = "token-secret-wrong"  # noqa: S105
    TOKEN_REVOKED = "token-revoked"  # noqa: S105
    TOKEN_EXPIRED = "token-expired"  # noqa: S105
    TOKEN_USED_UP = "token-used-up"  # noqa: S105
    ROLE_MISMATCH = "role-mismatch"
    NODE_ID_MISMATCH = "node-id-mismatch"
    SITE_MISMATCH = "site-mismatch"
    MACHINE_KNOWN = "machine-known"
    MACHINE_AMBIGUOUS = "machine-ambiguous"
    KEY_CERTIFIED_BEFORE = "key-certified-before"
    APPROVAL_DENIED = "approval-denied"
    APPROVAL_LAPSED = "approval-lapsed"
    APPROVALS_TOO_MANY = "approvals-too-many"
    EK_MISSING = "ek-missing"
    EK_DENIED = "ek-denied"
    EK_NODE_MISMATCH = "ek-node-mismatch"
    EK_CERTIFICATE_MISSING = "ek-certificate-missing"
    EK_CERTIFICATE_MALFORMED = "ek-certificate-malformed"
    EK_CERTIFICATE_MISMATCH = "ek-certificate-mismatch"
    EK_CERTIFICATE_CA = "ek-certificate-ca"
    EK_CERTIFICATE_PURPOSE = "ek-certificate-purpose"
    EK_CERTIFICATE_EXTENSION = "ek-certificate-extension"
    EK_CA_UNKNOWN = "ek-ca-unknown"
    EK_CA_UNFIT = "ek-ca-unfit"
    EK_SIGNATURE_UNKNOWN = "ek-signature-unknown"
    EK_SIGNATURE_WRONG = "ek-signature-wrong"
    EVIDENCE_MISSING = "evidence-missing"
    EVIDENCE_MALFORMED = "evidence-malformed"
    EK_TEMPLATE = "ek-template"
    EK_NODE_TAKEN = "ek-node-taken"
    AK_UNFIT = "ak-unfit"
    PCR_BANK_MISSING = "pcr-bank-missing"
    CHALLENGES_TOO_MANY = "challenges-too-many"
    CHALLENGE_UNKNOWN = "challenge-unknown"
    CHALLENGE_MISMATCH = "challenge-mismatch"
    CHALLENGE_EXPIRED = "challenge-expired"
    CHALLENGE_USED = "challenge-used"
    SECRET_WRONG = "secret-wrong"  # noqa: S105
    QUOTE_SIGNATURE = "quote-signature"
    QUOTE_MALFORMED = "quote-malformed"
    QUOTE_MAGIC = "quote-magic"
    QUOTE_TYPE = "quote-type"
    QUOTE_NONCE = "quote-nonce"
    QUOTE_SELECTION = "quote-selection"
    QUOTE_DIGEST = "quote-digest"
    CERTIFICATION_MISSING = "certification-missing"
    CERTIFICATION_SIGNATURE = "certification-signature"
    CERTIFICATION_MALFORMED = "certification-malformed"
    CERTIFICATION_MAGIC = "certification-magic"
    CERTIFICATION_TYPE = "certification-type"
    CERTIFICATION_DATA = "certification-data"
    CERTIFIED_NAME = "certified-name"
    NODE_KEY_MISMATCH = "node-key-mismatch"
    NODE_KEY_TEMPLATE = "node-key-template"


_FORGED = "no TPM that joins says this: look at what runs on that machine"
# What the operator may do about each; `refusals show` prints it.
WAY_BACK = {
    Reason.REQUEST_MALFORMED: "the request is not one of bcd's: look at what runs on that machine",
    Reason.CLAIMS_MALFORMED: "a claim is too long, not printable or in another form: look at what runs there",
    Reason.ATTESTOR_UNKNOWN: "this control plane takes join-token, provisioned and tpm: join with one of these",
    Reason.CSR_MALFORMED: "the certificate request is not one of bcd's: look at what runs on that machine",
    Reason.ROLE_UNKNOWN: "join with --role node, site or ramdisk",
    Reason.NODE_ID_MALFORMED: "join with a --node-id of 1 to 63 letters, digits and . _ -",
    Reason.NODE_ID_MISSING: "join with --node-id, or without the provisioned attestor",
    Reason.TOKEN_MISSING: "join with a token: bcd-controlplane token create",
    Reason.SEAL_KEY_UNKNOWN: "the machine has another control plane's join-encryption.jwk: run node-config anew",
    Reason.SEAL_DOES_NOT_OPEN: "the sealed token does not belong to this request: join again with a new token",
    Reason.TOKEN_MALFORMED: "that is no token of bcd-controlplane token create (cut off when copied?)",
    Reason.TOKEN_UNKNOWN: "no such token here (another control plane's?): bcd-controlplane token create",
    Reason.TOKEN_SECRET_WRONG: "the token's id is known, its secret is not: mistyped, or somebody is guessing",
    Reason.TOKEN_REVOKED: "the token was revoked: bcd-controlplane token create",
    Reason.TOKEN_EXPIRED: "the token had expired: bcd-controlplane token create, with a longer --ttl if need be",
    Reason.TOKEN_USED_UP: "the token was used up, by another key: if not by you, look at nodes list; then token create",
    Reason.ROLE_MISMATCH: "the token, or the ek allow, is for another role: join with that --role, or give this one",
    Reason.NODE_ID_MISMATCH: "the token is not for that node: bcd-controlplane token create --node-id",
    Reason.SITE_MISMATCH: "the node is of another site than the token or ek allow says: give the node's site there",
    Reason.MACHINE_KNOWN: "the machine is a node already: token create --allow-reclaim gives it back its id",
    Reason.MACHINE_AMBIGUOUS: "several nodes make this machine's claims: name one with token create --node-id",
    Reason.KEY_CERTIFIED_BEFORE: "the key was certified before: the machine must make a new one: bcd join --reset",
    Reason.APPROVAL_DENIED: "somebody denied it: ek allow lets a TPM in after all; with a token join anew",
    Reason.APPROVAL_LAPSED: "nobody decided for 7 days: join again with a new token",
    Reason.APPROVALS_TOO_MANY: "as many wait as may (16 a token, 256 TPMs): decide those, or revoke the token",
    Reason.EK_MISSING: "the TPM offers no endorsement key: bcd tpm identify on that machine",
    Reason.EK_DENIED: "the key is denied: bcd-controlplane ek list; ek allow lets it join again",
    Reason.EK_NODE_MISMATCH: "the TPM is another node: nodes delete that one, or ek allow the key for it",
    Reason.EK_CERTIFICATE_MISSING: "the TPM has no certificate for this key: if it is yours, bcd-controlplane ek allow",
    Reason.EK_CERTIFICATE_MALFORMED: "the certificate cannot be read: if the key is yours, bcd-controlplane ek allow",
    Reason.EK_CERTIFICATE_MISMATCH: "the certificate is another key's (a replaced TPM?): look at that machine",
    Reason.EK_CERTIFICATE_CA: "no endorsement key's certificate: look at what runs on that machine",
    Reason.EK_CERTIFICATE_PURPOSE: "no endorsement key's certificate: look at what runs on that machine",
    Reason.EK_CERTIFICATE_EXTENSION: "the certificate demands what is not known here: if the key is yours, ek allow",
    Reason.EK_CA_UNKNOWN: "import the manufacturer's CA with bcd-controlplane ek-roots import, or ek allow this key",
    Reason.EK_CA_UNFIT: "the manufacturer's CA may not vouch for it: if the key is yours, bcd-controlplane ek allow",
    Reason.EK_SIGNATURE_UNKNOWN: "the signature is of a kind not known here: if the key is yours, ek allow",
    Reason.EK_SIGNATURE_WRONG: "a CA of that name did not sign it: a forgery, or another CA of that name is missing",
    Reason.EVIDENCE_MISSING: "the machine showed no TPM: look at what runs there, or join with a token",
    Reason.EVIDENCE_MALFORMED: _FORGED,
    Reason.EK_TEMPLATE: "the key is none of the TCG's templates L-1 and L-2: join this machine with a token",
    Reason.EK_NODE_TAKEN: "that node is another TPM's: nodes delete it first, or ek allow this key under another name",
    Reason.AK_UNFIT: _FORGED,
    Reason.PCR_BANK_MISSING: "its TPM has no PCRs of SHA-256, 384 or 512: allocate a bank in its firmware's setup",
    Reason.CHALLENGES_TOO_MANY: "it was challenged three times for one request: run bcd join there again in 20 minutes",
    Reason.CHALLENGE_UNKNOWN: "nobody here asked that (a backup put back, or a failed answer): bcd join there again",
    Reason.CHALLENGE_MISMATCH: "the answer is for another request or TPM than the question: bcd join there again",
    Reason.CHALLENGE_EXPIRED: "the TPM took more than 10 minutes to answer: bcd join there again",
    Reason.CHALLENGE_USED: "the challenge was answered before: look at nodes list; bcd join there again",
    Reason.SECRET_WRONG: "the endorsement key and the attestation key are not of one TPM: look at that machine",
    Reason.QUOTE_SIGNATURE: _FORGED,
    Reason.QUOTE_MALFORMED: _FORGED,
    Reason.QUOTE_MAGIC: _FORGED,
    Reason.QUOTE_TYPE: _FORGED,
    Reason.QUOTE_NONCE: _FORGED,
    Reason.QUOTE_SELECTION: "the quote is over other PCRs: bcd tpm identify there says which banks its TPM has",
    Reason.QUOTE_DIGEST: "the PCRs moved while they were read, or are not the TPM's: bcd join there again",
    Reason.CERTIFICATION_MISSING: _FORGED,
    Reason.CERTIFICATION_SIGNATURE: _FORGED,
    Reason.CERTIFICATION_MALFORMED: _FORGED,
    Reason.CERTIFICATION_MAGIC: _FORGED,
    Reason.CERTIFICATION_TYPE: _FORGED,
    Reason.CERTIFICATION_DATA: _FORGED,
    Reason.CERTIFIED_NAME: _FORGED,
    Reason.NODE_KEY_MISMATCH: _FORGED,
    Reason.NODE_KEY_TEMPLATE: "the key in that TPM is not made as bcd makes node keys: look at what runs there",
}


@dataclass(frozen=True)
class Refusal:
    """`source` is the peer's address without its port (IPv6: its /64). `detail` completes the reason, in words."""

    id: RefusalId
    at: datetime
    reason: Reason
    source: str
    attestor: str
    token_id: str
    claims: Claims
    detail: str
