"""What this machine's TPM shows and proves in a join (protocol, "TPM attestation")."""

from dataclasses import dataclass
from hashlib import sha256

from bcd.domain.model.attestation import NONCE_BYTES, ChallengeAnswer, JoinChallenge, TpmEvidence
from bcd.domain.model.failures import Message, TryLater
from bcd.ports.attestor import Attestor
from bcd.ports.clock import Clock
from bcd.ports.events import Events
from bcd.ports.keys import NodeKey
from bcd.protocol.files import node_key
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.structures import Public
from bcd.protocol.tpm2.wire import Malformed, decode

# The attestor that needs no token.
TPM = "tpm"


@dataclass(frozen=True)
class Attest:
    attestor: Attestor
    clock: Clock
    events: Events

    def evidence(self, key: NodeKey) -> TpmEvidence:
        """What the TPM shows of itself, and of `key` when it is in it. TryLater as the TPM gave it."""
        return self.attestor.evidence(node_key.unique_of(key.record))

    def __call__(
        self, challenge: JoinChallenge, lasts_s: float, evidence: TpmEvidence | None, key: NodeKey, csr: bytes
    ) -> ChallengeAnswer:
        """The answer to a challenge that came just now. TryLater for one that is not to be followed, or that has ended
        when the TPM is done."""
        why = "is for a join by TPM" if evidence is None else _unfit(challenge, evidence)
        if why:
            raise TryLater(Message.CHALLENGE, why=why)
        came_s = self.clock.boottime_s()
        answer = self.attestor.answer(challenge, node_key.unique_of(key.record), sha256(csr).digest())
        if self.clock.boottime_s() - came_s >= lasts_s:
            raise TryLater(Message.CHALLENGE, why=f"ended, after {lasts_s:.0f} s, before the TPM had answered it")
        self.attestor.release()
        self.events.info("the TPM answers the control plane's challenge", id=challenge.id)
        return answer


def _unfit(challenge: JoinChallenge, evidence: TpmEvidence) -> str:
    """Why it is not answered; empty for one that is."""
    asked = challenge.tpm
    if challenge.attestor != TPM:
        return f"is for the attestor {challenge.attestor[:64]!r}"
    if asked.ek_name not in {name_of(one.public_area) for one in evidence.endorsement_keys}:
        return "is for an endorsement key that this TPM did not offer"
    if asked.pcr_bank not in evidence.pcr_banks:
        return "is for PCRs that this TPM does not have"
    if len(asked.nonce) != NONCE_BYTES or not any(asked.pcr_selection):
        return "asks for nothing that can be proved"
    return ""


def name_of(area: bytes) -> bytes:
    """The TPM name of the key with this TPMT_PUBLIC; empty for what is none."""
    try:
        return names.name(decode(Public, area))
    except Malformed:
        return b""
