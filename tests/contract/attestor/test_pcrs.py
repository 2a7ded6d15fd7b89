"""Quotes and what they are over: banks that are there, PCRs in parts, PCRs that move."""

from hashlib import sha256

import pytest

from bcd.domain.model.failures import TryLater
from bcd.protocol.tpm2 import attest
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import Algorithm
from tests.fakes.attesting import ALL, NO_SUCH_HASH, UNIQUE, Case, code_of, judge


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


def test_a_bank_of_a_rare_algorithm_is_found_where_there_is_no_other(case: Case) -> None:
    sm3 = bytes.fromhex("00000001" + "0012" + "03010000")
    # A counter, the selection as it was asked for, one digest of 32 bytes.
    body = bytes(4) + sm3 + bytes.fromhex("000000010020") + bytes(32)
    found = b"\x80\x01" + (10 + len(body)).to_bytes(4) + bytes(4) + body

    def answers(command: bytes) -> bytes | None:
        if code_of(command) is CommandCode.PCR_READ:
            return found if command.endswith(sm3) else NO_SUCH_HASH
        return None

    case.seen.instead = answers
    assert case.port.evidence(UNIQUE).pcr_banks == (Algorithm.SM3_256,)


@pytest.mark.parametrize("selected", ["000080", "ff0000"], ids=["another", "eight for one digest"])
def test_pcrs_that_nobody_asked_for_are_a_failure(selected: str, case: Case) -> None:
    challenge = case.challenge(case.port.evidence(UNIQUE))
    # A counter; a selection of sha256; one digest of 32 bytes.
    body = bytes.fromhex("00000001" + "00000001000b03" + selected + "000000010020") + bytes(32)
    answer = b"\x80\x01" + (10 + len(body)).to_bytes(4) + bytes(4) + body
    case.seen.instead = lambda command: answer if code_of(command) is CommandCode.PCR_READ else None
    with pytest.raises(TryLater, match="PCR_Read failed: gave other PCRs than it was asked for"):
        case.answer(challenge)
