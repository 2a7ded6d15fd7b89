"""A TPM that attests, seen command by command, and its word judged as the control plane judges it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.link import Link
from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge, TpmChallenge, TpmEvidence
from bcd.domain.model.failures import TryLater
from bcd.ports.attestor import Attestor
from bcd.protocol.tpm2 import attest, commands, names, templates
from bcd.protocol.tpm2.attest import Certified, Quoted, require
from bcd.protocol.tpm2.commands import CommandCode, CreatePrimaryIn, StartAuthSessionIn
from bcd.protocol.tpm2.credential import make_credential
from bcd.protocol.tpm2.structures import Algorithm, Handle, Public, SensitiveCreate, Symmetric
from bcd.protocol.tpm2.wire import decode
from tests.fakes import manufacturer
from tests.fakes.joining import Recorded
from tests.fakes.pki import NOW
from tests.fakes.software_tpm import Ours, SoftwareTpm, Theirs

BOTH = {"tpmsim": Ours, "swtpm": Theirs}
RSA_INDEX, ECC_INDEX, CHAIN_INDEX = 0x01C00002, 0x01C0000A, 0x01C00100
READABLE = "ownerwrite|authread|no_da"
UNIQUE = bytes(range(32))
CSR = sha256(b"the request").digest()
NONCE = bytes(range(32, 64))
SECRET = b"s" * 32
# PCRs 0 to 7, and all that a PC has.
EIGHT, ALL = b"\xff\x00\x00", b"\xff\xff\xff"
RSA, ECC = 0, 1


def code_of(command: bytes) -> CommandCode:
    return CommandCode(int.from_bytes(command[6:10]))


def refused(code: int) -> bytes:
    return bytes.fromhex("80010000000a") + code.to_bytes(4)


def instead_of(what: bytes, answer: bytes, command: bytes) -> bytes | None:
    """`answer` to a command with `what` in it."""
    return answer if what in command else None


def creation(key: Key) -> bytes:
    wanted = CreatePrimaryIn(SensitiveCreate(b"", b""), key.template, b"", ())
    return commands.write_command(commands.CREATE_PRIMARY, (key.hierarchy,), wanted)


# TPM_RC_CURVE of the second parameter, TPM_RC_HASH of the first, TPM_RC_FAILURE.
NO_SUCH_CURVE, NO_SUCH_HASH, BROKEN = refused(0x2E6), refused(0x1C3), refused(0x101)
NODE_KEY = Key(Handle.OWNER, templates.node_key(UNIQUE))
AK = Key(Handle.ENDORSEMENT, templates.AK)


@dataclass
class Seen:
    """A link that keeps what is sent over it, lets something happen just before a command, and answers where `instead`
    has an answer."""

    link: Link
    sent: list[bytes] = field(default_factory=list)
    before: dict[CommandCode, Callable[[], object]] = field(default_factory=dict)
    instead: Callable[[bytes], bytes | None] = lambda _command: None

    def transmit(self, command: bytes) -> bytes:
        self.sent.append(command)
        self.before.get(code_of(command), lambda: None)()
        answer = self.instead(command)
        return self.link.transmit(command) if answer is None else answer

    def close(self) -> None:
        self.link.close()

    @property
    def counts(self) -> "Counter[CommandCode]":
        return Counter(map(code_of, self.sent))


@dataclass
class Case:
    tpm: SoftwareTpm
    seen: Seen
    events: Recorded
    client: Client
    port: Attestor

    def challenge(
        self, evidence: TpmEvidence, key: int = RSA, *, bank: int = Algorithm.SHA256, selection: bytes = EIGHT
    ) -> JoinChallenge:
        """As the control plane makes one, for the endorsement key with that number among the offered."""
        ek = decode(Public, evidence.endorsement_keys[key].public_area)
        credential, encrypted = make_credential(ek, names.name(decode(Public, evidence.ak_public)), SECRET)
        asked = TpmChallenge(credential, encrypted, NONCE, bank, selection, names.name(ek))
        return JoinChallenge("c-1", "tpm", NOW, asked)

    def answer(self, challenge: JoinChallenge, unique: bytes | None = UNIQUE) -> ChallengeAnswer:
        return self.port.answer(challenge, unique, CSR)

    def room(self) -> None:
        """Everything was given back: there is room for three objects and three sessions, as at first."""
        self.client.close()
        assert self.places() == 3
        other = Client(self.seen.link, "another")
        wanted = StartAuthSessionIn(bytes(16), b"", 0x01, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
        for _ in range(3):
            other.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)
        with pytest.raises(Refusal):
            other.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)

    def places(self) -> int:
        """For how many objects there is room."""
        others = [Client(self.seen.link, "another") for _ in range(4)]
        loaded = 0
        with suppress(TryLater, Refusal):
            for number, other in enumerate(others):
                # Each with one key, or it would make room itself.
                other.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
                loaded += 1
        for number, other in enumerate(others[:loaded]):
            other.release(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
        return loaded


def judge(
    evidence: TpmEvidence, challenge: JoinChallenge, answer: ChallengeAnswer, *, certified: bool = True
) -> tuple[bytes, ...]:
    """All that docs/protocol.md has checked; the PCRs that were proved."""
    ak = decode(Public, evidence.ak_public)
    for offered in evidence.endorsement_keys:
        require(attest.ENDORSEMENT_KEY, decode(Public, offered.public_area))
    require(attest.ATTESTATION_KEY, ak)
    asked = challenge.tpm
    assert answer.secret == SECRET
    quoted = Quoted(ak, answer.quote, asked.nonce, asked.pcr_bank, asked.pcr_selection, answer.pcr_values)
    require(attest.QUOTE, quoted)
    if certified:
        assert answer.certification is not None
        key = decode(Public, evidence.node_key_public)
        require(attest.CERTIFICATION, Certified(ak, answer.certification, key, names.spki(key), CSR))
    return answer.pcr_values


def certificate(evidence: TpmEvidence, key: int = RSA) -> bytes:
    """A manufacturer's certificate of that endorsement key."""
    return manufacturer.root().ek(names.spki(decode(Public, evidence.endorsement_keys[key].public_area)))


def persisted(case: Case) -> TpmEvidence:
    """A manufacturer left the RSA key and its certificate."""
    before = case.port.evidence(UNIQUE)
    case.client.close()
    case.tpm.store(RSA_INDEX, certificate(before), READABLE)
    case.tpm.persist_ek()
    case.seen.sent.clear()
    return before
