"""Port `Attestor` over bcd-fakehw's TPM and over libtpms, judged as the control plane judges it."""

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bcd.adapters.tpm.attestor import LinkedAttestor
from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.link import Late, Link
from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge, KeyAttestation, TpmChallenge, TpmEvidence
from bcd.domain.model.failures import TryLater
from bcd.ports.attestor import Attestor
from bcd.protocol.tpm2 import attest, commands, names, templates
from bcd.protocol.tpm2.attest import Certified, Quoted, require
from bcd.protocol.tpm2.commands import CommandCode, CreatePrimaryIn, StartAuthSessionIn
from bcd.protocol.tpm2.credential import make_credential
from bcd.protocol.tpm2.structures import Algorithm, Handle, Public, SensitiveCreate, Symmetric
from bcd.protocol.tpm2.wire import decode, encode
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
    # The endorsement key and the attestation key are given back, and the node key stays for what comes.
    case.port.release()
    assert case.places() == 2
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


def test_the_rsa_key_is_derived_once_for_both_rounds(case: Case) -> None:
    """It takes a chip seconds."""
    challenge = case.challenge(case.port.evidence(UNIQUE))
    case.answer(challenge)
    assert sum(encode(templates.EK_RSA_2048) in command for command in case.seen.sent) == 1


def test_a_tpm_without_p256_offers_its_rsa_key_unless_a_certificate_says_that_there_is_another(case: Case) -> None:
    der = certificate(case.port.evidence(UNIQUE), ECC)
    case.client.close()
    case.seen.instead = partial(instead_of, encode(templates.EK_ECC_P256), NO_SUCH_CURVE)
    evidence = case.port.evidence(UNIQUE)
    assert len(evidence.endorsement_keys) == 1
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    case.tpm.store(ECC_INDEX, der, READABLE)
    with pytest.raises(TryLater, match="CreatePrimary failed"):
        case.port.evidence(UNIQUE)


def test_an_endorsement_key_that_cannot_be_made_now_is_a_failure_and_not_one_that_the_tpm_has_not(case: Case) -> None:
    """It may be the one that the control plane knows: without it the machine would be refused for good."""
    for code in (refused(0x902), BROKEN, refused(0x921)):
        case.seen.instead = partial(instead_of, encode(templates.EK_ECC_P256), code)
        with pytest.raises(TryLater):
            case.port.evidence(UNIQUE)
    case.seen.instead = lambda _command: None
    assert len(case.port.evidence(UNIQUE).endorsement_keys) == 2


def test_a_renewals_certification_holds_before_the_control_plane(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    word = case.port.certify(UNIQUE, CSR)
    key, ak = decode(Public, word.key_public), decode(Public, word.ak_public)
    require(attest.CERTIFICATION, Certified(ak, word.certification, key, names.spki(key), CSR))
    assert word == KeyAttestation(evidence.ak_public, evidence.node_key_public, word.certification)
    assert case.port.ak_name() == names.name(ak)
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


def test_banks_of_algorithms_that_a_tpm_does_not_know_are_asked_for_one_by_one(case: Case) -> None:
    unknown = int(Algorithm.SHA512).to_bytes(2)

    def answers(command: bytes) -> bytes | None:
        return NO_SUCH_HASH if code_of(command) is CommandCode.PCR_READ and unknown in command[14:] else None

    case.seen.instead = answers
    assert case.port.evidence(UNIQUE).pcr_banks == (Algorithm.SHA1, Algorithm.SHA256, Algorithm.SHA384)


def test_pcrs_that_nobody_asked_for_are_a_failure(case: Case) -> None:
    challenge = case.challenge(case.port.evidence(UNIQUE))
    # A counter; of sha256, PCR 23; one digest of 32 bytes.
    body = bytes.fromhex("00000001" + "00000001000b03000080" + "000000010020") + bytes(32)
    answer = b"\x80\x01" + (10 + len(body)).to_bytes(4) + bytes(4) + body
    case.seen.instead = lambda command: answer if code_of(command) is CommandCode.PCR_READ else None
    with pytest.raises(TryLater, match="PCR_Read failed: gave other PCRs than it was asked for"):
        case.answer(challenge)


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


def test_a_chain_ends_at_the_first_index_that_is_not_there(case: Case) -> None:
    first, third = manufacturer.root().der, manufacturer.root(9009).der
    case.tpm.store(CHAIN_INDEX, first, READABLE)
    case.tpm.store(CHAIN_INDEX + 2, third, READABLE)
    assert case.port.evidence(UNIQUE).ek_chain == (first,)
    # RSA, ECC, the chain's first and second.
    assert case.seen.counts[CommandCode.NV_READ_PUBLIC] == 4


def test_a_look_at_an_index_that_fails_is_a_failure_and_not_an_index_that_is_not_there(case: Case) -> None:
    case.seen.instead = lambda command: BROKEN if code_of(command) is CommandCode.NV_READ_PUBLIC else None
    with pytest.raises(TryLater, match="NV_ReadPublic failed"):
        case.port.evidence(UNIQUE)


def test_a_certificate_of_which_a_part_is_missing_is_a_failure(case: Case) -> None:
    case.tpm.store(RSA_INDEX, bytes(600), READABLE)
    # TPM2B_MAX_NV_BUFFER of three bytes, and the authorization.
    short = bytes.fromhex("80020000001800000000000000050003aabbcc0000010000")
    case.seen.instead = lambda command: short if code_of(command) is CommandCode.NV_READ else None
    with pytest.raises(TryLater, match="NV_Read failed: gave 3 bytes for 512"):
        case.port.evidence(UNIQUE)


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
    case.client.close()
    case.tpm.store(RSA_INDEX, certificate(before), READABLE)
    case.tpm.persist_ek()
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
    case.room()


def test_a_persistent_key_that_the_certificate_does_not_name_is_not_used(case: Case) -> None:
    before = case.port.evidence(UNIQUE)
    case.client.close()
    case.tpm.store(RSA_INDEX, manufacturer.root().ek(manufacturer.rsa_spki(manufacturer.modulus(1))), READABLE)
    case.tpm.persist_ek()
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    assert PERSISTENT_EK not in activated(case)


def test_a_persistent_key_of_another_template_is_not_used(case: Case) -> None:
    """Not even where the certificate names it."""
    before = case.port.evidence(UNIQUE)
    case.client.close()
    area = decode(Public, before.ak_public)
    case.tpm.store(RSA_INDEX, manufacturer.root().ek(names.spki(area)), READABLE)
    case.tpm.persist(AK.hierarchy, AK.template)
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area


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


def test_a_tpm_that_makes_another_attestation_key_than_was_asked_for_is_a_failure(case: Case) -> None:
    def answers(command: bytes) -> bytes | None:
        return case.seen.link.transmit(creation(NODE_KEY)) if command == creation(AK) else None

    case.seen.instead = answers
    with pytest.raises(TryLater, match="attestation failed: made another key than was asked for"):
        case.port.evidence(UNIQUE)


def test_a_quote_that_does_not_parse_is_a_failure(case: Case) -> None:
    challenge = case.challenge(case.port.evidence(UNIQUE))

    def answers(command: bytes) -> bytes | None:
        quoted = code_of(command) is CommandCode.QUOTE
        return case.seen.link.transmit(command).replace(b"\xffTCG", b"\xffTCX") if quoted else None

    case.seen.instead = answers
    with pytest.raises(TryLater, match="failed"):
        case.answer(challenge)


def test_what_was_given_back_between_the_rounds_is_derived_again(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    assert case.places() == 0
    case.port.release()
    assert case.places() == 2
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))


def test_giving_back_what_a_tpm_that_is_gone_held_is_no_failure(case: Case) -> None:
    case.port.ak_name()

    def gone(_command: bytes) -> bytes | None:
        raise OSError(errno.EIO, "gone")

    case.seen.instead = gone
    case.port.release()


@dataclass
class Nth:
    """What happens instead of the answer to the command with that number; the TPM may have carried it out."""

    case: Case
    number: int
    trouble: Callable[[Callable[[], bytes]], bytes]
    seen: int = 0

    def __call__(self, command: bytes) -> bytes | None:
        self.seen += 1
        return self.trouble(lambda: self.case.seen.link.transmit(command)) if self.seen == self.number else None


def lost(carry_out: Callable[[], bytes]) -> bytes:
    carry_out()
    raise Late


def cut(carry_out: Callable[[], bytes]) -> bytes:
    return carry_out()[:-1]


def input_output(_carry_out: Callable[[], bytes]) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


TROUBLES = {"broken": lambda _carry_out: BROKEN, "lost": lost, "cut": cut, "EIO": input_output}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_whichever_command_a_tpm_fails_at_it_is_a_documented_failure_and_the_next_join_proves(
    trouble: str, case: Case
) -> None:
    persisted(case)
    number = 0
    while True:
        number += 1
        port = LinkedAttestor(case.client, case.events)
        case.seen.instead = nth = Nth(case, number, TROUBLES[trouble])
        try:
            evidence = port.evidence(UNIQUE)
            port.answer(case.challenge(evidence), UNIQUE, CSR)
        except TryLater as failure:
            assert failure.message.name.startswith("TPM_")
        case.seen.instead = lambda _command: None
        case.client.close()
        if isinstance(case.tpm, Theirs):
            # Without a resource manager what nobody heard of stays.
            case.tpm.free()
        if nth.seen < number:
            break
        fresh = LinkedAttestor(case.client, case.events)
        evidence = fresh.evidence(UNIQUE)
        challenge = case.challenge(evidence)
        judge(evidence, challenge, fresh.answer(challenge, UNIQUE, CSR))
        case.client.close()
    assert number > 15
