"""A TPM that refuses, ends, or is somebody else's: a documented failure each, and nothing is left in it."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from bcd.adapters.tpm.attestor import LinkedAttestor
from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.link import Late
from bcd.domain.model.attestation import JoinChallenge, TpmEvidence
from bcd.domain.model.failures import TryLater
from bcd.protocol.tpm2 import commands, templates
from bcd.protocol.tpm2.commands import CommandCode, StartAuthSessionIn
from bcd.protocol.tpm2.credential import make_credential
from bcd.protocol.tpm2.structures import Algorithm, Handle, Public, Symmetric
from bcd.protocol.tpm2.wire import decode
from tests.fakes.attesting import (
    AK,
    BROKEN,
    CSR,
    NODE_KEY,
    RSA,
    SECRET,
    UNIQUE,
    Case,
    code_of,
    creation,
    judge,
    persisted,
)
from tests.fakes.software_tpm import Theirs


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


def test_where_others_hold_every_session_that_is_said(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    others = Client(case.seen.link, "others")
    wanted = StartAuthSessionIn(bytes(16), b"", 0x01, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
    for _ in range(3):
        others.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)
    with pytest.raises(TryLater, match="no free session slots"):
        case.answer(challenge)


@pytest.mark.parametrize("loss", [False, True], ids=["orderly", "of power"])
def test_a_restart_of_the_tpm_between_evidence_and_answer_is_lived_through(loss: bool, case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence)
    case.tpm.power_cycle(loss=loss)
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
