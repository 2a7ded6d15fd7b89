"""What a machine's TPM showed and answered, judged: the numbers are docs/protocol.md's, "Checking a machine's TPM"."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from bcd.controlplane.domain.challenges import Challenge
from bcd.controlplane.domain.ek_admission import OfferedEk
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import Reason
from bcd.domain.model.attestation import ChallengeAnswer, KeyAttestation, TpmEvidence
from bcd.protocol.pki import ek_certificate
from bcd.protocol.tpm2 import attest, names
from bcd.protocol.tpm2.attest import Certified, Check, DoesNotHold, F, Quoted, Row
from bcd.protocol.tpm2.structures import MAX_ATTEST_BYTES, MAX_BANKS, MAX_DIGEST_BYTES, Algorithm, Public
from bcd.protocol.tpm2.wire import Malformed, decode

MAX_EKS = 8
# An RSA-2048 area has 314 bytes.
MAX_AREA_BYTES = 1024
MAX_CHAIN_PARTS = 64
MAX_PCRS = 24
# The banks that are asked for, the first that the TPM has: SHA-1's proves nothing any more.
BANKS = (Algorithm.SHA256, Algorithm.SHA384, Algorithm.SHA512)


@dataclass(frozen=True)
class Shown:
    """Evidence whose form is in order. `areas` are the endorsement keys' public areas, in the order of `offered`."""

    offered: tuple[OfferedEk, ...]
    areas: tuple[Public, ...]
    pcr_banks: tuple[int, ...]
    ak: Public
    node_key: Public | None

    @property
    def ak_name(self) -> bytes:
        return names.name(self.ak)

    def area(self, offered: OfferedEk) -> Public:
        return self.areas[self.offered.index(offered)]


def read_evidence(evidence: TpmEvidence | None) -> Shown:
    """1. There is evidence, and it is within its bounds; each area is one, and all of it."""
    if evidence is None:
        raise No(Reason.EVIDENCE_MISSING)
    _check_bounds(evidence)
    areas = tuple(_area(one.public_area, "an endorsement key's") for one in evidence.endorsement_keys)
    ak = _area(evidence.ak_public, "the attestation key's")
    node_key = _area(evidence.node_key_public, "the node key's") if evidence.node_key_public else None
    offered = tuple(
        OfferedEk(_spki(area), one.certificate, evidence.ek_chain)
        for area, one in zip(areas, evidence.endorsement_keys, strict=True)
    )
    return Shown(offered, areas, evidence.pcr_banks, ak, node_key)


def _check_bounds(evidence: TpmEvidence) -> None:
    keys = evidence.endorsement_keys
    within = (
        len(keys) <= MAX_EKS
        and all(len(one.certificate) <= ek_certificate.MAX_BYTES for one in keys)
        and len(evidence.ek_chain) <= MAX_CHAIN_PARTS
        and sum(map(len, evidence.ek_chain)) <= ek_certificate.MAX_CHAIN_BYTES
        and len(evidence.pcr_banks) <= MAX_BANKS
    )
    if not within:
        raise No(Reason.EVIDENCE_MALFORMED, "more than a TPM shows")
    if len({one.public_area for one in keys}) != len(keys):
        raise No(Reason.EVIDENCE_MALFORMED, "one endorsement key twice")


def _area(data: bytes, whose: str) -> Public:
    if len(data) > MAX_AREA_BYTES:
        raise No(Reason.EVIDENCE_MALFORMED, f"{whose} area has {len(data)} bytes")
    try:
        area = decode(Public, data)
        # Nobody could name a key of another name algorithm.
        names.name(area)
    except Malformed as error:
        raise No(Reason.EVIDENCE_MALFORMED, f"{whose} area: {error}") from None
    return area


def _spki(area: Public) -> bytes:
    try:
        return names.spki(area)
    except Malformed as error:
        raise No(Reason.EVIDENCE_MALFORMED, f"an endorsement key's area: {error}") from None


def bank_of(shown: Shown) -> int:
    """Which bank is asked for."""
    for bank in BANKS:
        if bank in shown.pcr_banks:
            return bank
    raise No(Reason.PCR_BANK_MISSING, f"it has {', '.join(f'0x{bank:04x}' for bank in shown.pcr_banks) or 'none'}")


@dataclass(frozen=True)
class Answered:
    """A machine's second round: `ek` is the area of the key that was challenged, `spki` the request's key."""

    shown: Shown
    ek: Public
    challenge: Challenge
    answer: ChallengeAnswer
    spki: bytes
    csr_sha256: bytes
    now: datetime

    @cached_property
    def quoted(self) -> Quoted:
        asked = self.challenge
        return Quoted(
            ak=self.shown.ak,
            quote=self.answer.quote,
            nonce=asked.nonce,
            bank=asked.pcr_bank,
            selection=asked.pcr_selection,
            pcr_values=self.answer.pcr_values,
        )

    @cached_property
    def certified(self) -> Certified | None:
        """None for a key that is in no TPM."""
        if self.shown.node_key is None or self.answer.certification is None:
            return None
        return Certified(self.shown.ak, self.answer.certification, self.shown.node_key, self.spki, self.csr_sha256)


def require(rows: Sequence[Row[F]], facts: F) -> None:
    """No for the first that does not hold."""
    try:
        attest.require(rows, facts)
    except DoesNotHold as error:
        raise No(Reason[error.check.name], error.detail) from None


def renewal_trouble(
    leaf_ak_name: bytes,
    value: KeyAttestation | None,
    spki: bytes,
    csr_sha256: bytes,
    rows: Sequence[Row[Certified]] = attest.CERTIFICATION,
) -> str:
    """Why `value` does not prove that the key in `spki` is in the TPM of the attestation key that a leaf names; empty
    when it does. There is no way down: such a leaf is renewed for such a key, or not at all."""
    if value is None:
        return "the certificate names an attestation key, and there is no key_attestation by it"
    if not key_attestation_within_bounds(value):
        return "the key_attestation is larger than one can be"
    try:
        ak, key = decode(Public, value.ak_public), decode(Public, value.key_public)
        # A key of another name algorithm has none that could be certified.
        named, _ = names.name(ak), names.name(key)
    except Malformed as error:
        return f"an area of the key_attestation: {error}"
    if named != leaf_ak_name:
        return f"the certificate names the attestation key {leaf_ak_name.hex()}, this one is {named.hex()}"
    try:
        attest.require(rows, Certified(ak, value.certification, key, spki, csr_sha256))
    except DoesNotHold as error:
        return f"{Reason[error.check.name]}: {error.detail}"
    return ""


def within_bounds(answer: ChallengeAnswer) -> bool:
    """Of the answer's parts, before they are looked at. What has one length only fails at its own check."""
    attested = [answer.quote] + ([answer.certification] if answer.certification is not None else [])
    return (
        len(answer.pcr_values) <= MAX_PCRS
        and all(len(value) <= MAX_DIGEST_BYTES for value in answer.pcr_values)
        and all(len(one.attest) <= MAX_ATTEST_BYTES for one in attested)
    )


def key_attestation_within_bounds(value: KeyAttestation) -> bool:
    return (
        max(len(value.ak_public), len(value.key_public)) <= MAX_AREA_BYTES
        and len(value.certification.attest) <= MAX_ATTEST_BYTES
    )


def _bound(facts: Answered) -> str:
    asked = facts.challenge
    for what, have, want in (
        ("request", facts.csr_sha256, asked.csr_sha256),
        ("endorsement key", names.name(facts.ek), asked.ek_name),
        ("attestation key", facts.shown.ak_name, asked.ak_name),
    ):
        if have != want:
            return f"another {what} than was challenged"
    return ""


def _in_time(facts: Answered) -> str:
    ended = facts.challenge.not_after
    return f"it ended at {ended:%Y-%m-%dT%H:%M:%SZ}" if facts.now >= ended else ""


def _secret(facts: Answered) -> str:
    given = sha256(facts.answer.secret).digest()
    return "" if hmac.compare_digest(given, facts.challenge.secret_sha256) else "another secret"


def _certification(facts: Answered) -> str:
    if (facts.shown.node_key is None) != (facts.answer.certification is None):
        return "a certification without a node key in the TPM, or the other way round"
    return ""


def _of_quote(row: Row[Quoted]) -> Row[Answered]:
    check, wrong = row
    return check, lambda facts: wrong(facts.quoted)


def _of_certification(row: Row[Certified]) -> Row[Answered]:
    check, wrong = row
    return check, lambda facts: wrong(facts.certified) if facts.certified is not None else ""


ANSWER: tuple[Row[Answered], ...] = (
    (Check.CHALLENGE_MISMATCH, _bound),
    (Check.CHALLENGE_EXPIRED, _in_time),
    (Check.SECRET_WRONG, _secret),
    *map(_of_quote, attest.QUOTE),
    (Check.CERTIFICATION_MISSING, _certification),
    *map(_of_certification, attest.CERTIFICATION),
)


@dataclass(frozen=True)
class Checks:
    """3 and 4, and 6 to 24: what a join by TPM has to pass."""

    ek: tuple[Row[Public], ...] = attest.ENDORSEMENT_KEY
    ak: tuple[Row[Public], ...] = attest.ATTESTATION_KEY
    answer: tuple[Row[Answered], ...] = ANSWER

    @property
    def binding(self) -> tuple[Row[Answered], ...]:
        """What holds of an answer that is given once more."""
        return tuple(row for row in self.answer if row[0] is Check.CHALLENGE_MISMATCH)


ALL = Checks()
