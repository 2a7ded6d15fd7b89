"""Port `Attestor` in memory: it shows an endorsement key and an attestation key, and says that it proved them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from bcd.domain.model.attestation import (
    Attestation,
    ChallengeAnswer,
    JoinChallenge,
    KeyAttestation,
    OfferedKey,
    TpmChallenge,
    TpmEvidence,
)
from bcd.domain.model.failures import Failure
from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.structures import Algorithm, Point, Public
from bcd.protocol.tpm2.wire import encode
from tests.fakes import pki


def area(template: Public, number: int) -> Public:
    """The area of the key `pki.private_key(number)`."""
    point = pki.private_key(number).public_key().public_numbers()
    return replace(template, unique=Point(point.x.to_bytes(32), point.y.to_bytes(32)))


@dataclass
class MemoryAttestor:
    """`trouble` is what everything fails with, `no_certification` a certification alone; `on_answer` is called before
    a challenge is answered, `on_certify` before a key is certified; `calls` are what it was asked for."""

    ak: int = 7001
    ek: int = 7002
    trouble: Failure | None = None
    no_certification: Failure | None = None
    on_answer: Callable[[], None] = lambda: None
    on_certify: Callable[[], None] = lambda: None
    calls: list[str] = field(default_factory=list)

    @property
    def ek_public(self) -> Public:
        return area(templates.EK_ECC_P256, self.ek)

    def challenge(self, id_: str = "c-1", **departures: object) -> TpmChallenge:
        """One for the key it offers."""
        asked = TpmChallenge(b"id", b"seed", bytes(32), Algorithm.SHA256, b"\xff\0\0", names.name(self.ek_public))
        return replace(asked, **departures)  # type: ignore[arg-type]

    def evidence(self, unique: bytes | None) -> TpmEvidence:
        self._called("evidence")
        node_key = b"" if unique is None else encode(area(templates.node_key(unique), 7003))
        offered = OfferedKey(encode(self.ek_public))
        return TpmEvidence((offered,), (), (Algorithm.SHA256,), encode(area(templates.AK, self.ak)), node_key)

    def answer(self, challenge: JoinChallenge, unique: bytes | None, csr_sha256: bytes) -> ChallengeAnswer:
        self._called("answer")
        self.on_answer()
        certification = None if unique is None else Attestation(csr_sha256, bytes(64))
        return ChallengeAnswer(challenge.id, b"s" * 32, Attestation(b"quote", bytes(64)), (bytes(32),), certification)

    def ak_name(self) -> bytes:
        self._called("ak_name")
        return names.name(area(templates.AK, self.ak))

    def certify(self, unique: bytes, csr_sha256: bytes) -> KeyAttestation:
        self._called("certify")
        if self.no_certification is not None:
            raise self.no_certification
        self.on_certify()
        ak = encode(area(templates.AK, self.ak))
        return KeyAttestation(ak, sha256(unique).digest(), Attestation(csr_sha256, bytes(64)))

    def release(self) -> None:
        self.calls.append("release")

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.trouble is not None:
            raise self.trouble
