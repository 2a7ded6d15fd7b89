"""A join by TPM: what the TPM shows and proves, and which challenges it answers."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import pytest

from bcd.domain.model.attestation import Attestation, JoinChallenge
from bcd.domain.model.failures import Message, TryLater
from bcd.domain.model.joining import Challenged, Failed, JoinDenied, Pending
from bcd.domain.model.keys import KeyKind
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.joining import ControlPlane
from tests.fakes.memory_join import ByTpm, failure, pending
from tests.fakes.memory_node import MemoryNode
from tests.fakes.memory_tpm import LOCKED


def test_a_join_by_tpm_reads_no_credential_and_seals_nothing() -> None:
    case = ByTpm()
    assert case.gets(case.challenge()).join().kind is KeyKind.TPM
    assert case.credential.taken == 0
    first, second = case.plane.sent
    assert (first.pending.attestor, first.pending.sealed, first.pending.node_id) == ("tpm", None, None)
    assert first.evidence is not None
    assert first.evidence.node_key_public
    assert first.answer is None
    assert second == replace(first, answer=second.answer)
    assert second.answer is not None
    assert second.answer.id == "c-1"
    assert second.answer.certification == Attestation(sha256(first.pending.csr).digest(), bytes(64))
    assert case.attestor.calls == ["ak_name", "evidence", "answer", "release"]


def test_a_machine_whose_tpm_takes_no_key_proves_the_tpm_alone() -> None:
    case = ByTpm()
    case.held.trouble = LOCKED
    assert case.gets(case.challenge()).join().kind is KeyKind.FILE
    asked = case.plane.sent[1]
    assert asked.evidence is not None
    assert asked.evidence.node_key_public == b""
    assert asked.answer is not None
    assert asked.answer.certification is None


def test_a_tpm_that_shows_nothing_leaves_no_join_behind() -> None:
    case = ByTpm()
    case.attestor.trouble = LOCKED
    assert case.fails() is LOCKED
    assert case.node.files == {}
    assert case.plane.sent == []


def test_an_answer_that_was_lost_is_sent_again_and_made_once() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Failed("lost"), Failed("lost")).join()
    assert [one.answer is not None for one in case.plane.sent] == [False, True, True, True]
    assert len({id(one.answer) for one in case.plane.sent[1:]}) == 1
    assert case.attestor.calls.count("answer") == 1


def test_after_an_approval_there_is_a_fresh_round() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Pending("p-1", 1.0), case.challenge("c-2")).join()
    assert [one.answer.id if one.answer else "" for one in case.plane.sent] == ["", "c-1", "", "c-2"]
    assert case.plane.sent[-1].pending.pending_id == "p-1"
    assert case.attestor.calls == ["ak_name", "evidence", "answer", "release", "release", "answer", "release"]


def test_while_a_person_is_asked_the_tpm_is_given_back() -> None:
    case = ByTpm()
    case.gets(Pending("p-1", 1.0), Pending("p-1", 1.0), case.challenge()).join()
    assert case.attestor.calls == ["ak_name", "evidence", "release", "release", "answer", "release"]


@pytest.mark.parametrize(
    ("challenged", "why"),
    [
        (lambda case: case.challenge(attestor="x509pop"), "is for the attestor 'x509pop'"),
        (
            lambda case: case.challenge(tpm=case.attestor.challenge(ek_name=bytes(34))),
            "is for an endorsement key that this TPM did not offer",
        ),
        (
            lambda case: case.challenge(tpm=case.attestor.challenge(pcr_bank=4)),
            "is for PCRs that this TPM does not have",
        ),
        (lambda case: case.challenge(tpm=case.attestor.challenge(nonce=bytes(31))), "asks for nothing"),
        (lambda case: case.challenge(tpm=case.attestor.challenge(pcr_selection=bytes(3))), "asks for nothing"),
        (lambda case: case.challenge(lasts_s=0.0), "had ended when it came"),
    ],
)
def test_a_challenge_that_is_not_for_this_tpm_is_not_answered(
    challenged: Callable[[ByTpm], Challenged], why: str
) -> None:
    case = ByTpm()
    found = case.gets(challenged(case)).fails()
    assert (type(found), found.message) == (TryLater, Message.CHALLENGE)
    assert why in found.text
    assert "answer" not in case.attestor.calls
    assert pending(case.node).attestor == "tpm"


def test_at_most_three_challenges_are_followed() -> None:
    case = ByTpm()
    found = case.gets(*(case.challenge(f"c-{number}") for number in range(1, 6))).fails()
    assert "is number 4, and 3 are followed" in found.text
    assert case.attestor.calls.count("answer") == 3


@pytest.mark.parametrize(("took_s", "sent"), [(9.9, 2), (10.0, 1)])
def test_an_answer_is_not_sent_once_the_challenge_has_ended(took_s: float, sent: int) -> None:
    """By the time that passed here, however the two clocks stand."""
    case = ByTpm()
    case.attestor.on_answer = lambda: case.node.clock.forward(took_s)
    case.gets(case.challenge(lasts_s=10.0))
    if sent == 2:
        case.join()
    else:
        assert "ended, after 10 s, before the TPM had answered it" in case.fails().text
    assert len(case.plane.sent) == sent


def test_a_challenge_in_a_join_by_token_is_not_answered() -> None:
    node, attestor = MemoryNode(), MemoryAttestor()
    asked = Challenged(JoinChallenge("c", "tpm", pki.NOW, attestor.challenge()), 600.0)
    found = failure(node, ControlPlane(scripted=[asked]))
    assert "is for a join by TPM" in found.text
    assert attestor.calls == []


def test_a_refusal_names_what_the_allow_list_needs() -> None:
    found = ByTpm().gets(JoinDenied("r-1")).fails()
    assert found.message is Message.TPM_JOIN_REFUSED
    assert "bcd tpm identify" in found.text
