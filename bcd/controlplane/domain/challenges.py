"""What a TPM was asked to prove, until it has: a row for each challenge, bound to one request, one EK and one AK."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bcd.controlplane.domain.approvals import EK_PREFIX
from bcd.domain.model.attestation import JoinChallenge, TpmChallenge

ID_BYTES = 16
# 32 bytes is what TPM2_MakeCredential takes at most for a name of SHA-256.
SECRET_BYTES = 32
# A chip takes a second or two for its part; the rest is for a network that fails, and a node that tries again.
LIFETIME = timedelta(minutes=10)
# A challenge that is repeated has to leave a slow chip and a slow network their time.
REPEATED_UNTIL = timedelta(minutes=1)
# Protocol, "Answers can be lost": an answered challenge repeats its answer.
REPEATS_FOR = timedelta(minutes=10)
# Whoever knows the public part of a key that may join can ask, so what that leaves behind is bounded. A site behind one
# address may start all at once.
MAX_ROWS = 10_000
MAX_ROWS_PER_SOURCE = 1000
# Of one request; the third answers somebody who lost two.
MAX_ROWS_PER_REQUEST = 3
# PCRs 0 to 7: what ran before the operating system. 10 is the kernel's own and moves all the time.
PCR_SELECTION = b"\xff\x00\x00"


@dataclass(frozen=True)
class Challenge:
    """`ek` as the allow-list names it. Of the secret only its hash is kept. `answered` and `serial`: when the answer
    was good, and the certificate it brought."""

    id: str
    ek: str
    ek_name: bytes
    ak_name: bytes
    csr_sha256: bytes
    secret_sha256: bytes = field(repr=False)
    credential: bytes
    encrypted_secret: bytes
    nonce: bytes
    pcr_bank: int
    pcr_selection: bytes
    source: str
    issued: datetime
    not_after: datetime
    answered: datetime | None = None
    serial: str = ""

    def as_sent(self, attestor: str) -> JoinChallenge:
        tpm = TpmChallenge(
            self.credential, self.encrypted_secret, self.nonce, self.pcr_bank, self.pcr_selection, self.ek_name
        )
        return JoinChallenge(self.id, attestor, self.not_after, tpm)

    def repeats_at(self, now: datetime) -> bool:
        """Whether who asks again is to get this one."""
        return self.answered is None and now < self.not_after - REPEATED_UNTIL


def ek_credential(ek: str) -> str:
    """How an answer or an approval names the endorsement key it was given for."""
    return f"{EK_PREFIX}{ek}"
