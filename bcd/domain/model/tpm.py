"""What a TPM is and holds, as `bcd tpm identify` reports it."""

import hashlib
from dataclasses import dataclass
from enum import Enum

from bcd.domain.model.failures import Failure


class EkKind(Enum):
    """The endorsement keys of the TCG's profile that bcd can use."""

    RSA_2048 = "rsa-2048"
    ECC_P256 = "ecc-p256"


@dataclass(frozen=True)
class Stored:
    """What an index of the TPM's memory holds, as it is: often DER, sometimes padded or with something before it."""

    index: int
    data: bytes

    @property
    def sha256(self) -> str:
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


@dataclass(frozen=True)
class EndorsementKey:
    """`spki` is DER, empty when it could not be read; `trouble` is why something of this key could not."""

    kind: EkKind
    spki: bytes
    certificate: Stored | None
    in_certificate: bool
    trouble: Failure | None

    @property
    def sha256(self) -> str:
        """The key as an allow-list names it; empty when it could not be read."""
        return f"sha256:{hashlib.sha256(self.spki).hexdigest()}" if self.spki else ""


@dataclass(frozen=True)
class TpmFound:
    """`others` are certificates of keys bcd does not use, and chains, `unread` why one of them could not be read;
    `node_keys` why none can live there, or None."""

    device: str
    endorsement_keys: tuple[EndorsementKey, ...]
    others: tuple[Stored, ...]
    unread: Failure | None
    banks: tuple[str, ...]
    node_keys: Failure | None

    @property
    def trouble(self) -> Failure | None:
        """What an operator has to see to first."""
        troubles = [self.node_keys, *(key.trouble for key in self.endorsement_keys), self.unread]
        return next((trouble for trouble in troubles if trouble is not None), None)
