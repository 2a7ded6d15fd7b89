"""Framing, response codes, names and templates."""

import hashlib
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.serialization import load_der_public_key
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.tpm2 import commands, names, structures, templates
from bcd.protocol.tpm2.codes import Code, Rc
from bcd.protocol.tpm2.commands import Answer, Empty, NotTpm2, read_answer, write_command
from bcd.protocol.tpm2.structures import Algorithm, Handle, NvPublic, Point
from bcd.protocol.tpm2.wire import Malformed, encode
from tests.fakes import pki

# The twelve of the TPM profile, by Part 2, 6.5.2.
ALLOWED = {0x131, 0x173, 0x169, 0x14E, 0x176, 0x151, 0x147, 0x158, 0x17E, 0x15D, 0x148, 0x165}


def test_the_commands_of_the_profile_are_the_table_and_no_other() -> None:
    assert {command.code for command in commands.COMMANDS} == set(commands.CommandCode) == ALLOWED
    assert len(commands.COMMANDS) == 12


def test_a_command_without_and_one_with_an_authorization() -> None:
    assert write_command(commands.READ_PUBLIC, (0x81010001,), Empty()).hex() == "80010000000e0000017381010001"
    index = 0x01C00002
    assert write_command(commands.NV_READ, (index, index), commands.NvReadIn(512, 16)).hex() == (
        "8002000000230000014e01c0000201c00002" + "00000009" + "400000090000010000" + "02000010"
    )
    with pytest.raises(Malformed):
        write_command(commands.NV_READ, (index,), commands.NvReadIn(1, 0))


def test_a_policy_session_authorizes_the_second_handle_and_ends_with_that() -> None:
    parameters = commands.ActivateCredentialIn(b"\xaa", b"\xbb")
    passwords = (structures.EMPTY_PASSWORD, structures.policy(0x03000000))
    written = write_command(commands.ACTIVATE_CREDENTIAL, (0x80000000, 0x80000001), parameters, passwords)
    assert written.hex() == (
        "80020000002e00000147"
        + "80000000"
        + "80000001"
        + "00000012"
        + "400000090000010000"
        + "030000000000000000"
        + "0001aa0001bb"
    )
    with pytest.raises(Malformed, match="2 authorizations, not 1"):
        write_command(commands.ACTIVATE_CREDENTIAL, (1, 2), parameters, passwords[:1])


def answer(tag: int, code: int, body: bytes) -> bytes:
    return tag.to_bytes(2) + (10 + len(body)).to_bytes(4) + code.to_bytes(4) + body


def test_an_answer_with_and_one_without_an_authorization() -> None:
    assert read_answer(commands.FLUSH_CONTEXT, answer(0x8001, 0, b"")) == Answer((), Empty())
    body = bytes.fromhex("00000004" + "0002abcd" + "0000010000")
    assert read_answer(commands.NV_READ, answer(0x8002, 0, body)) == Answer((), commands.NvReadOut(b"\xab\xcd"))
    assert read_answer(commands.NV_READ, answer(0x8001, 0x18B, b"")) == Code(0x18B)


GOOD = answer(0x8002, 0, bytes.fromhex("00000004" + "0002abcd" + "0000010000"))


@pytest.mark.parametrize(
    "reply",
    {
        "nothing": b"",
        "short": GOOD[:9],
        "cut": GOOD[:-1],
        "long": GOOD + b"\0",
        "says more": GOOD[:5] + b"\xff" + GOOD[6:],
        "another tag": b"\x80\x01" + GOOD[2:],
        "a refusal with more behind it": answer(0x8001, 0x18B, b"\0"),
        "a refusal with a session's tag": answer(0x8002, 0x18B, b""),
        "parameters longer than they are": answer(0x8002, 0, bytes.fromhex("00000005" + "0002abcd" + "0000010000")),
        "more than one read of the device gives": answer(
            0x8002, 0, bytes.fromhex("00000ff2" + "0ff0") + bytes(0xFF0) + bytes.fromhex("0000010000")
        ),
        "no authorization": answer(0x8002, 0, bytes.fromhex("00000004" + "0002abcd")),
    }.values(),
)
def test_a_short_long_or_inconsistent_answer_is_malformed(reply: bytes) -> None:
    with pytest.raises(Malformed):
        read_answer(commands.NV_READ, reply)


def test_the_answer_of_a_tpm_1_2_is_named() -> None:
    with pytest.raises(NotTpm2):
        read_answer(commands.NV_READ, bytes.fromhex("00c40000000a0000001e"))


@given(st.sampled_from(commands.COMMANDS), st.binary(max_size=100), st.booleans())
def test_any_reply_is_an_answer_a_code_or_malformed(
    command: commands.Command[object, object], body: bytes, framed: bool
) -> None:
    reply = answer(0x8002 if command.authorizations else 0x8001, 0, body) if framed else body
    try:
        found = read_answer(command, reply)
    except (Malformed, NotTpm2):
        return
    assert isinstance(found, Answer | Code)


@pytest.mark.parametrize(
    ("number", "base", "text"),
    [
        (0x100, Rc.INITIALIZE, "TPM_RC_INITIALIZE, 0x100"),
        (0x18B, Rc.HANDLE, "TPM_RC_HANDLE, handle 1, 0x18b"),
        (0x185, Rc.HIERARCHY, "TPM_RC_HIERARCHY, handle 1, 0x185"),
        (0x9A2, Rc.BAD_AUTH, "TPM_RC_BAD_AUTH, session 1, 0x9a2"),
        (0x2D5, Rc.SIZE, "TPM_RC_SIZE, parameter 2, 0x2d5"),
        (0x922, Rc.RETRY, "TPM_RC_RETRY, 0x922"),
        (0x902, Rc.OBJECT_MEMORY, "TPM_RC_OBJECT_MEMORY, 0x902"),
        (0x921, Rc.LOCKOUT, "TPM_RC_LOCKOUT, 0x921"),
        (0x000B0143, Rc.COMMAND_CODE, "TPM_RC_COMMAND_CODE, 0xb0143"),
        (0x1FF, 0x0BF, "an unknown code, parameter 1, 0x1ff"),
        (0x17F, 0x17F, "an unknown code, 0x17f"),
    ],
)
def test_a_code_by_name_and_by_what_it_speaks_of(number: int, base: int, text: str) -> None:
    assert Code(number).base == base
    assert str(Code(number)) == text


@given(st.integers(1, 0xFFFFFFFF))
def test_every_number_has_a_text(number: int) -> None:
    assert f"0x{number:x}" in str(Code(number))


def test_the_attribute_words_are_the_profiles() -> None:
    assert templates.node_key(bytes(32)).attributes == 0x00040472
    assert templates.AK.attributes == 0x00050472
    assert templates.EK_RSA_2048.attributes == templates.EK_ECC_P256.attributes == 0x000300B2


def test_a_node_key_is_asked_for_by_its_unique_alone() -> None:
    unique = bytes(range(32))
    template = templates.node_key(unique)
    assert template.unique == Point(unique, bytes(32))
    assert encode(template).hex() == (
        "0023" + "000b" + "00040472" + "0000" + "0010" + "0010" + "0003" + "0010"
        "0020" + unique.hex() + "0020" + "00" * 32
    )
    with pytest.raises(ValueError, match="32"):
        templates.node_key(bytes(31))


def test_a_key_of_a_template_differs_from_it_in_its_unique_alone() -> None:
    template = templates.node_key(bytes(32))
    assert templates.same_but_unique(templates.node_key(bytes([1]) * 32), template)
    # B27: a key read back without noDA is another key.
    assert not templates.same_but_unique(replace(template, attributes=0x00040072), template)
    assert not templates.same_but_unique(replace(template, policy=bytes(32)), template)
    assert not templates.same_but_unique(templates.AK, template)
    assert not templates.same_but_unique(templates.EK_RSA_2048, templates.EK_ECC_P256)


def test_a_name_is_the_algorithm_and_the_digest_of_the_public_area() -> None:
    template = templates.AK
    assert names.name(template) == b"\x00\x0b" + hashlib.sha256(encode(template)).digest()
    assert len(names.name(replace(template, name_algorithm=Algorithm.SHA384))) == 2 + 48
    with pytest.raises(Malformed):
        names.name(replace(template, name_algorithm=Algorithm.SM3_256))


def test_a_public_key_is_written_as_the_rest_of_the_world_does() -> None:
    key = pki.ENCRYPTION_KEY.public_key()
    point = key.public_numbers()
    stripped = Point(point.x.to_bytes(32).lstrip(b"\0"), point.y.to_bytes(32))
    assert names.spki(replace(templates.EK_ECC_P256, unique=stripped)) == pki.spki(pki.ENCRYPTION_KEY)
    modulus = bytes([0xC3]) * 256
    written = names.spki(replace(templates.EK_RSA_2048, unique=modulus))
    # AlgorithmIdentifier rsaEncryption with NULL.
    assert bytes.fromhex("300d06092a864886f70d0101010500") in written
    assert load_der_public_key(written).public_numbers().n == int.from_bytes(modulus)  # type: ignore[union-attr]


def test_what_is_no_key_is_malformed() -> None:
    for public in (
        templates.EK_RSA_2048,
        templates.EK_ECC_P256,
        replace(templates.EK_ECC_P256, unique=Point(b"\1", b"\1")),
        replace(templates.AK, parameters=templates.EK_RSA_2048.parameters),
    ):
        with pytest.raises(Malformed):
            names.spki(public)


def test_a_certificate_names_the_key_whose_bytes_are_in_it() -> None:
    x, y = b"\0" + b"\x11" * 31, b"\x22" * 32
    ecc = replace(templates.EK_ECC_P256, unique=Point(x[1:], y))
    assert names.in_certificate(ecc, b"before" + x + y + b"padding")
    assert not names.in_certificate(ecc, b"before" + y + x)
    # The same with the coordinates' roles changed: here the zero stands between them.
    assert names.in_certificate(replace(ecc, unique=Point(y, x[1:])), b"before" + y + x)
    rsa = replace(templates.EK_RSA_2048, unique=b"\x33" * 256)
    assert names.in_certificate(rsa, b"\0" + b"\x33" * 256)
    assert not names.in_certificate(rsa, b"\x33" * 255)
    assert not names.in_certificate(replace(rsa, unique=b""), b"anything")


def test_handles_are_the_specifications() -> None:
    assert (Handle.OWNER, Handle.ENDORSEMENT, Handle.PASSWORD) == (0x40000001, 0x4000000B, 0x40000009)
    assert encode(NvPublic(0x01C00002, 0xB, 0x62072001, b"", 900)).hex() == "01c00002000b6207200100000384"
