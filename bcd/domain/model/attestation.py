"""What a TPM shows of itself to the control plane. TPM structures are their bytes, signatures P1363."""

from dataclasses import dataclass
from datetime import datetime

# Protocol, "TPM attestation": a node follows so many challenges in one join.
MAX_ROUNDS = 3
NONCE_BYTES = 32


@dataclass(frozen=True)
class OfferedKey:
    """An endorsement key: TPMT_PUBLIC, and its certificate as the TPM's memory holds it, empty without one."""

    public_area: bytes
    certificate: bytes = b""


@dataclass(frozen=True)
class TpmEvidence:
    """`ek_chain` is what the memory holds from 0x01c00100 on; `pcr_banks` are TPM_ALG_IDs; both areas are TPMT_PUBLIC,
    `node_key_public` empty for a key that is in no TPM."""

    endorsement_keys: tuple[OfferedKey, ...]
    ek_chain: tuple[bytes, ...]
    pcr_banks: tuple[int, ...]
    ak_public: bytes
    node_key_public: bytes = b""


@dataclass(frozen=True)
class TpmChallenge:
    """`credential` is TPMS_ID_OBJECT, `encrypted_secret` what TPM2B_ENCRYPTED_SECRET holds, `ek_name` the TPM name of
    the endorsement key that opens them; `pcr_selection` a bit for each PCR from the lowest, of the bank `pcr_bank`."""

    credential: bytes
    encrypted_secret: bytes
    nonce: bytes
    pcr_bank: int
    pcr_selection: bytes
    ek_name: bytes


@dataclass(frozen=True)
class JoinChallenge:
    """`not_after` is by the server's clock; it is judged by how long after the reply's server time it lies."""

    id: str
    attestor: str
    not_after: datetime
    tpm: TpmChallenge


@dataclass(frozen=True)
class Attestation:
    """TPMS_ATTEST and its signature by the attestation key."""

    attest: bytes
    signature: bytes


@dataclass(frozen=True)
class ChallengeAnswer:
    """`pcr_values` are the selected PCRs, from the lowest; no certification for a key that is in no TPM."""

    id: str
    secret: bytes
    quote: Attestation
    pcr_values: tuple[bytes, ...]
    certification: Attestation | None = None


@dataclass(frozen=True)
class KeyAttestation:
    """For the renewal of a leaf that names an attestation key: that key's area and the next node key's, TPMT_PUBLIC,
    and the one's TPM2_Certify of the other over SHA-256 of the request's DER."""

    ak_public: bytes
    key_public: bytes
    certification: Attestation
