"""Certificates as chips hold them: what is sent of them, and what is a failure."""

from collections.abc import Callable

import pytest

from bcd.domain.model.failures import TryLater
from bcd.protocol.pki import ek_certificate
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import Public
from bcd.protocol.tpm2.wire import decode
from tests.fakes import manufacturer
from tests.fakes.attesting import (
    BROKEN,
    CHAIN_INDEX,
    ECC,
    ECC_INDEX,
    READABLE,
    RSA,
    RSA_INDEX,
    UNIQUE,
    Case,
    certificate,
    code_of,
    judge,
    refused,
)

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


def test_of_an_index_that_is_larger_than_any_certificate_the_beginning_is_sent(case: Case) -> None:
    """Larger than either TPM has room for: they say so of a smaller one."""
    case.tpm.store(RSA_INDEX, bytes(512), READABLE)
    index = RSA_INDEX.to_bytes(4)

    def answers(command: bytes) -> bytes | None:
        if code_of(command) is CommandCode.NV_READ_PUBLIC and command.endswith(index):
            reply = case.seen.link.transmit(command)
            # Behind the size there is the name: two bytes of length, and 34.
            return reply[:-38] + (ek_certificate.MAX_BYTES + 1).to_bytes(2) + reply[-36:]
        if code_of(command) is CommandCode.NV_READ:
            size = int.from_bytes(command[-4:-2])
            content = size.to_bytes(2) + b"\x30" * size
            body = bytes(4) + len(content).to_bytes(4) + content + bytes.fromhex("0000010000")
            return b"\x80\x02" + (6 + len(body)).to_bytes(4) + body
        return None

    case.seen.instead = answers
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].certificate == b"\x30" * ek_certificate.MAX_BYTES
    [(level, text, _)] = case.events.lines
    assert (level, text) == ("warning", "the endorsement certificate is odd, and sent as it is")


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
    with pytest.raises(TryLater, match="NV_Read failed: gave 3 bytes for 600"):
        case.port.evidence(UNIQUE)


def asked(case: Case) -> list[tuple[int, int]]:
    """Size and offset of each NV_Read."""
    reads = [command[-4:] for command in case.seen.sent if code_of(command) is CommandCode.NV_READ]
    return [(int.from_bytes(read[:2]), int.from_bytes(read[2:])) for read in reads]


@pytest.mark.parametrize(
    ("size", "reads"),
    [(1024, [(1024, 0)]), (1025, [(1024, 0), (1, 1024)]), (512, [(512, 0)])],
)
def test_a_certificate_is_read_in_the_largest_blocks_that_a_tpm_gives(
    size: int, reads: list[tuple[int, int]], case: Case
) -> None:
    data = bytes(range(250)) * 5
    case.tpm.store(RSA_INDEX, data[:size], READABLE)
    assert case.port.evidence(UNIQUE).endorsement_keys[RSA].certificate == data[:size]
    assert asked(case) == reads


# TPM_RC_VALUE and TPM_RC_SIZE of the first parameter, TPM_RC_NV_RANGE.
@pytest.mark.parametrize("code", [0x1C4, 0x1D5, 0x146], ids=hex)
@pytest.mark.parametrize(
    ("most", "size", "reads"),
    [
        (768, 1200, [(1024, 0), (768, 0), (432, 768)]),
        (512, 1200, [(1024, 0), (768, 0), (512, 0), (512, 512), (176, 1024)]),
        (512, 700, [(700, 0), (512, 0), (188, 512)]),
        (512, 512, [(512, 0)]),
    ],
)
def test_a_tpm_that_gives_less_at_a_time_is_asked_for_less(
    most: int, size: int, reads: list[tuple[int, int]], code: int, case: Case
) -> None:
    data = (bytes(range(250)) * 5)[:size]
    case.tpm.store(RSA_INDEX, data, READABLE)

    def small(command: bytes) -> bytes | None:
        too_large = code_of(command) is CommandCode.NV_READ and int.from_bytes(command[-4:-2]) > most
        return refused(code) if too_large else None

    case.seen.instead = small
    assert case.port.evidence(UNIQUE).endorsement_keys[RSA].certificate == data
    assert asked(case) == reads


@pytest.mark.parametrize(
    ("code", "reads"),
    [(0x1C4, [700, 512]), (0x98E, [700]), (0x149, [700]), (0x921, [700])],
    ids=["size", "password", "authorization", "lockout"],
)
def test_what_is_refused_whatever_its_size_or_for_another_reason_is_a_failure(
    code: int, reads: list[int], case: Case
) -> None:
    """A wrong password counts, and may lock the TPM: no second one for nothing."""
    case.tpm.store(RSA_INDEX, bytes(700), READABLE)
    case.seen.instead = lambda command: refused(code) if code_of(command) is CommandCode.NV_READ else None
    with pytest.raises(TryLater):
        case.port.evidence(UNIQUE)
    assert [size for size, _ in asked(case)] == reads


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
