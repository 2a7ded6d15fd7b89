"""Port: what the machine's TPM proves of itself and of the node's key (protocol, "TPM attestation")."""

from typing import Protocol

from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge, KeyAttestation, TpmEvidence


class Attestor(Protocol):
    """`unique` names a node key in the TPM, 32 bytes. Every failure is TryLater with the documented message; nothing of
    the TPM is changed."""

    def evidence(self, unique: bytes | None) -> TpmEvidence:
        """What it shows before a challenge; without `unique` the node key is in no TPM."""
        ...

    def answer(self, challenge: JoinChallenge, unique: bytes | None, csr_sha256: bytes) -> ChallengeAnswer:
        """Its proof, for a challenge of an endorsement key and a bank that it offered."""
        ...

    def ak_name(self) -> bytes:
        """The TPM name of its attestation key, 34 bytes. Another endorsement seed is another key."""
        ...

    def certify(self, unique: bytes, csr_sha256: bytes) -> KeyAttestation:
        """The attestation key's word that the node key is in this TPM and cannot leave it."""
        ...

    def release(self) -> None:
        """Makes room: its own keys are derived again when they are needed. Never fails."""
        ...
