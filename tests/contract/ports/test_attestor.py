"""Port `Attestor` over bcd-fakehw's TPM and over libtpms, judged as the control plane judges it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bcd.adapters.tpm.attestor import LinkedAttestor
from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.link import Link
from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge, KeyAttestation, TpmChallenge, TpmEvidence
from bcd.domain.model.failures import TryLater
from bcd.ports.attestor import Attestor
from bcd.protocol.tpm2 import attest, commands, names, templates
from bcd.protocol.tpm2.attest import Certified, Quoted, require
from bcd.protocol.tpm2.commands import CommandCode, StartAuthSessionIn
from bcd.protocol.tpm2.credential import make_credential
from bcd.protocol.tpm2.structures import Algorithm, Handle, Public, Symmetric
from bcd.protocol.tpm2.wire import decode
from tests.fakes import manufacturer
from tests.fakes.joining import Recorded
from tests.fakes.pki import NOW
from tests.fakes.software_tpm import PERSISTENT_EK, Ours, SoftwareTpm, Theirs

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


@dataclass
class Seen:
    """A link that keeps what is sent over it, and lets something happen just before a command."""

    link: Link
    sent: list[bytes] = field(default_factory=list)
    before: dict[CommandCode, Callable[[], object]] = field(default_factory=dict)

    def transmit(self, command: bytes) -> bytes:
        self.sent.append(command)
        self.before.get(CommandCode(int.from_bytes(command[6:10])), lambda: None)()
        return self.link.transmit(command)

    def close(self) -> None:
        self.link.close()

    @property
    def counts(self) -> "Counter[CommandCode]":
        return Counter(CommandCode(int.from_bytes(command[6:10])) for command in self.sent)


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
        """Three objects and three sessions are all there is room for, and there is."""
        self.port.release()
        free = Client(self.seen.link, "free")
        for number in range(3):
            free.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
        wanted = StartAuthSessionIn(bytes(16), b"", 0x01, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
        for _ in range(3):
            free.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)
        with pytest.raises(Refusal):
            free.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)


@pytest.fixture(params=BOTH)
def tpm(request: pytest.FixtureRequest) -> Iterator[SoftwareTpm]:
    # A Unix socket's path has room for 107 bytes.
    with TemporaryDirectory() as home:
        made: SoftwareTpm = BOTH[request.param](Path(home))
        yield made
        made.close()


@pytest.fixture
def case(tpm: SoftwareTpm) -> Case:
    seen, events = Seen(tpm.link()), Recorded()
    client = Client(seen, tpm.name)
    return Case(tpm, seen, events, client, LinkedAttestor(client, events))


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


# ---- what is shown and proved


@pytest.mark.parametrize("key", [RSA, ECC], ids=["RSA", "ECC"])
def test_what_is_shown_and_proved_holds_before_the_control_plane(key: int, case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence, key)
    answer = case.answer(challenge)
    assert answer.id == challenge.id
    assert len(judge(evidence, challenge, answer)) == 8
    assert templates.same_but_unique(decode(Public, evidence.node_key_public), templates.node_key(UNIQUE))
    case.room()


def test_a_node_key_that_is_in_no_tpm_is_neither_shown_nor_certified(case: Case) -> None:
    evidence = case.port.evidence(None)
    assert evidence.node_key_public == b""
    challenge = case.challenge(evidence)
    answer = case.answer(challenge, None)
    assert answer.certification is None
    judge(evidence, challenge, answer, certified=False)
    assert case.seen.counts[CommandCode.CERTIFY] == 0
    case.room()


def test_both_endorsement_keys_are_offered_and_the_same_each_time(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    kinds = [decode(Public, one.public_area).type for one in evidence.endorsement_keys]
    assert kinds == [Algorithm.RSA, Algorithm.ECC]
    assert case.port.evidence(UNIQUE) == evidence


def test_a_renewals_certification_holds_before_the_control_plane(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    word = case.port.certify(UNIQUE, CSR)
    key, ak = decode(Public, word.key_public), decode(Public, word.ak_public)
    require(attest.CERTIFICATION, Certified(ak, word.certification, key, names.spki(key), CSR))
    assert word == KeyAttestation(evidence.ak_public, evidence.node_key_public, word.certification)
    assert case.port.ak_name() == names.name(ak)
    case.client.release(Key(Handle.OWNER, templates.node_key(UNIQUE)))
    case.room()


def test_a_clear_leaves_the_attestation_key_and_another_endorsement_seed_does_not(case: Case) -> None:
    name = case.port.ak_name()
    case.port.release()
    case.tpm.clear()
    assert case.port.ak_name() == name
    case.port.release()
    case.tpm.change_endorsement_seed()
    assert case.port.ak_name() != name


def test_a_certification_names_the_attestation_key_that_made_it(case: Case) -> None:
    """Also where another was loaded, and read, before the seed changed."""
    before = case.port.ak_name()
    case.tpm.change_endorsement_seed()
    word = case.port.certify(UNIQUE, CSR)
    ak, key = decode(Public, word.ak_public), decode(Public, word.key_public)
    require(attest.CERTIFICATION, Certified(ak, word.certification, key, names.spki(key), CSR))
    assert names.name(ak) != before


# ---- PCRs


def test_more_pcrs_than_one_answer_holds_are_read_one_part_after_the_other(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence, selection=ALL)
    case.seen.sent.clear()
    answer = case.answer(challenge)
    assert len(judge(evidence, challenge, answer)) == 24
    assert case.seen.counts[CommandCode.PCR_READ] == 3


def test_of_each_bank_that_is_shown_a_quote_is_made(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    assert evidence.pcr_banks == (Algorithm.SHA1, Algorithm.SHA256, Algorithm.SHA384, Algorithm.SHA512)
    for bank in evidence.pcr_banks:
        challenge = case.challenge(evidence, bank=bank, selection=b"\x81\x00\x01")
        values = judge(evidence, challenge, case.answer(challenge))
        assert [len(one) for one in values] == [attest.DIGEST_BYTES[Algorithm(bank)]] * 3


def test_pcrs_come_in_their_order(case: Case) -> None:
    case.tpm.extend(7, b"\x07" * 32)
    case.tpm.extend(23, b"\x17" * 32)
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence, selection=b"\x80\x00\x80")
    values = judge(evidence, challenge, case.answer(challenge))
    assert values == tuple(sha256(bytes(32) + one * 32).digest() for one in (b"\x07", b"\x17"))


def moves(case: Case, times: int) -> None:
    """A PCR is extended before the next readings of the values, so many times."""
    left = iter(range(times))

    def happens() -> None:
        if next(left, None) is not None:
            case.tpm.extend(5, b"\x05" * 32)

    case.seen.before[CommandCode.PCR_READ] = happens


def test_a_pcr_that_moves_between_quote_and_reading_is_quoted_again(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    case.seen.sent.clear()
    moves(case, 2)
    answer = case.answer(challenge)
    assert judge(evidence, challenge, answer)[5] != bytes(32)
    assert case.seen.counts[CommandCode.QUOTE] == 3


def test_a_pcr_that_moves_each_time_is_a_failure(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    case.seen.sent.clear()
    moves(case, 99)
    with pytest.raises(TryLater, match="Quote failed: a PCR moved under it 3 times"):
        case.answer(challenge)
    assert case.seen.counts[CommandCode.QUOTE] == 3
    case.seen.before.clear()
    judge(evidence, challenge, case.answer(challenge))


def test_b42_a_missing_bank_is_not_shown_and_not_quoted(case: Case) -> None:
    case.tpm.only_bank("sha384")
    evidence = case.port.evidence(UNIQUE)
    assert evidence.pcr_banks == (Algorithm.SHA384,)
    with pytest.raises(TryLater, match="Quote failed: quoted other PCRs than it was asked for"):
        case.answer(case.challenge(evidence, bank=Algorithm.SHA256))
    challenge = case.challenge(evidence, bank=Algorithm.SHA384)
    judge(evidence, challenge, case.answer(challenge))


# ---- certificates

CUT: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda der: der,
    "B43 padded with ff": lambda der: der.ljust(1600, b"\xff"),
    "B43 padded with 00": lambda der: der.ljust(1600, b"\x00"),
    "B44 with a header": manufacturer.with_tcg_header,
}
AS_IS = {"rubbish": b"no certificate" * 40, "only padding": b"\xff" * 600, "cut short": None, "one byte": b"\x30"}


@pytest.mark.parametrize("how", CUT)
def test_a_certificate_is_cut_out_of_what_is_around_it(how: str, case: Case) -> None:
    der = certificate(case.port.evidence(UNIQUE))
    case.tpm.store(RSA_INDEX, CUT[how](der), READABLE)
    evidence = case.port.evidence(UNIQUE)
    assert [one.certificate for one in evidence.endorsement_keys] == [der, b""]
    assert len(case.events.lines) == (how != "as it is")
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))


def test_b44_a_serial_with_zeros_in_front_is_sent_as_it_stands(case: Case) -> None:
    spki = names.spki(decode(Public, case.port.evidence(UNIQUE).endorsement_keys[RSA].public_area))
    der = manufacturer.root().ek(spki, serial=b"\x00\x00\x80\x01")
    case.tpm.store(RSA_INDEX, der, READABLE)
    assert case.port.evidence(UNIQUE).endorsement_keys[RSA].certificate == der


@pytest.mark.parametrize("what", AS_IS)
def test_what_is_no_certificate_is_sent_as_it_is_with_one_line_in_the_log(what: str, case: Case) -> None:
    data = AS_IS[what] or certificate(case.port.evidence(UNIQUE))[:-1]
    case.tpm.store(RSA_INDEX, data, READABLE)
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].certificate == data
    [(level, text, fields)] = case.events.lines
    assert (level, text) == ("warning", "the endorsement certificate is odd, and sent as it is")
    assert fields["why"]
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))


def test_b46_without_a_certificate_there_is_evidence_all_the_same(case: Case) -> None:
    assert [one.certificate for one in case.port.evidence(UNIQUE).endorsement_keys] == [b"", b""]
    assert case.events.lines == []


def test_an_index_that_was_never_written_is_none(case: Case) -> None:
    case.tpm.store(RSA_INDEX, None, READABLE)
    assert case.port.evidence(UNIQUE).endorsement_keys[RSA].certificate == b""


def test_each_key_comes_with_its_own_certificate_and_the_chips_chain(case: Case) -> None:
    before = case.port.evidence(UNIQUE)
    rsa, ecc = (certificate(before, key) for key in (RSA, ECC))
    chain = manufacturer.root().der, manufacturer.root(9009).der
    for index, data in ((RSA_INDEX, rsa), (ECC_INDEX, ecc), (CHAIN_INDEX, chain[0]), (CHAIN_INDEX + 1, chain[1])):
        case.tpm.store(index, data, READABLE)
    evidence = case.port.evidence(UNIQUE)
    assert [one.certificate for one in evidence.endorsement_keys] == [rsa, ecc]
    assert evidence.ek_chain == chain


def test_a_certificate_that_only_the_owner_reads_is_read(case: Case) -> None:
    der = certificate(case.port.evidence(UNIQUE))
    case.tpm.store(RSA_INDEX, der, "ownerwrite|ownerread|no_da")
    assert case.port.evidence(UNIQUE).endorsement_keys[RSA].certificate == der


@pytest.mark.parametrize("index", [RSA_INDEX, ECC_INDEX], ids=["RSA", "ECC"])
def test_a_certificate_that_cannot_be_read_is_a_failure_and_never_another_key(index: int, case: Case) -> None:
    case.tpm.store(index, b"certificate", READABLE, auth=b"secret")
    with pytest.raises(TryLater, match=r"NV_Read failed|hierarchy has a password"):
        case.port.evidence(UNIQUE)
    case.room()


# ---- the persistent endorsement key


def persisted(case: Case) -> TpmEvidence:
    """A manufacturer left the RSA key and its certificate."""
    before = case.port.evidence(UNIQUE)
    case.tpm.store(RSA_INDEX, certificate(before), READABLE)
    case.tpm.persist_ek()
    case.client.close()
    case.seen.sent.clear()
    return before


def activated(case: Case) -> list[int]:
    """The second handles of each ActivateCredential."""
    code = CommandCode.ACTIVATE_CREDENTIAL.to_bytes(4)
    return [int.from_bytes(one[14:18]) for one in case.seen.sent if one[6:10] == code]


def test_the_persistent_endorsement_key_is_used_and_left_alone(case: Case) -> None:
    before = persisted(case)
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
    # ECC key, attestation key, node key.
    assert case.seen.counts[CommandCode.CREATE_PRIMARY] == 3
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    assert activated(case) == [PERSISTENT_EK]
    assert case.port.evidence(UNIQUE) == evidence
    case.client.close()
    case.room()


def test_a_persistent_key_that_the_certificate_does_not_name_is_not_used(case: Case) -> None:
    before = case.port.evidence(UNIQUE)
    case.tpm.store(RSA_INDEX, manufacturer.root().ek(manufacturer.rsa_spki(manufacturer.modulus(1))), READABLE)
    case.tpm.persist_ek()
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    assert PERSISTENT_EK not in activated(case)


# ---- failures


def spoilt(challenge: JoinChallenge) -> JoinChallenge:
    credential = bytearray(challenge.tpm.credential)
    credential[-1] ^= 1
    return replace(challenge, tpm=replace(challenge.tpm, credential=bytes(credential)))


def another_ak(evidence: TpmEvidence, challenge: JoinChallenge) -> JoinChallenge:
    """A credential for the same endorsement key and an attestation key that is not this TPM's."""
    ek = decode(Public, evidence.endorsement_keys[RSA].public_area)
    credential, secret = make_credential(ek, b"\x00\x0b" + bytes(32), SECRET)
    return replace(challenge, tpm=replace(challenge.tpm, credential=credential, encrypted_secret=secret))


def test_a_wrong_credential_opens_nothing_and_leaves_no_session(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    for wrong in (spoilt(challenge), another_ak(evidence, challenge), spoilt(challenge), spoilt(challenge)):
        with pytest.raises(TryLater, match="ActivateCredential failed"):
            case.answer(wrong)
    judge(evidence, challenge, case.answer(challenge))
    case.client.close()
    case.room()


def test_an_endorsement_hierarchy_with_a_password_is_named(case: Case) -> None:
    case.tpm.set_password(Handle.ENDORSEMENT, "secret")
    for ask in (lambda: case.port.evidence(UNIQUE), case.port.ak_name, lambda: case.port.certify(UNIQUE, CSR)):
        with pytest.raises(TryLater, match="endorsement hierarchy has a password"):
            ask()


def test_a_password_set_between_evidence_and_answer_is_named_and_leaves_no_session(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    case.tpm.set_password(Handle.ENDORSEMENT, "secret")
    for _ in range(4):
        with pytest.raises(TryLater, match="endorsement hierarchy has a password"):
            case.answer(challenge)
    case.client.close()
    case.room()


def test_b30_where_others_hold_every_place_that_is_said(case: Case) -> None:
    others = Client(case.seen.link, "others")
    for number in range(3):
        others.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
    with pytest.raises(TryLater, match="no free object slots"):
        case.port.ak_name()


def test_a_power_cycle_between_evidence_and_answer_is_lived_through(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    case.tpm.power_cycle(loss=False)
    judge(evidence, challenge, case.answer(challenge))
