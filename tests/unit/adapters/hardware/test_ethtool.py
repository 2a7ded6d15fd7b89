"""The kernel's structures for asking a driver for the permanent address."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.adapters.hardware.ethtool import ask_nobody, decode_answer, encode_ifreq, encode_request

POINTER_BYTES = struct.calcsize("P")


def answer(mac: bytes, length_bytes: int = 6, command: int = 0x20) -> bytes:
    return struct.pack("=II", command, length_bytes) + mac.ljust(32, b"\0")


def test_the_request_is_the_command_and_room_for_the_longest_address() -> None:
    assert encode_request() == struct.pack("=II", 0x20, 32) + bytes(32)


def test_the_ifreq_has_the_kernels_size_the_name_and_the_pointer() -> None:
    ifreq = encode_ifreq("enp3s0f1", 0x1234_5678)
    assert len(ifreq) == 16 + POINTER_BYTES + 16
    assert ifreq[:16] == b"enp3s0f1".ljust(16, b"\0")
    assert int.from_bytes(ifreq[16 : 16 + POINTER_BYTES], sys.byteorder) == 0x1234_5678


def test_the_longest_name_keeps_its_final_nul() -> None:
    assert encode_ifreq("a" * 15, 0)[:16] == b"a" * 15 + b"\0"


@pytest.mark.parametrize("name", ["", "a" * 16, "é" * 8, "eth0\0"])
def test_a_name_that_does_not_fit_is_refused_and_never_cut(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a network device"):
        encode_ifreq(name, 0)


def test_an_answer_of_six_bytes_is_a_mac() -> None:
    assert decode_answer(answer(bytes.fromhex("3cecef123456"))) == "3c:ec:ef:12:34:56"
    assert decode_answer(answer(bytes(6))) == "00:00:00:00:00:00"


@pytest.mark.parametrize("length_bytes", [0, 5, 7, 8, 20, 32, 2**32 - 1])
def test_an_address_of_another_length_is_no_mac(length_bytes: int) -> None:
    assert decode_answer(answer(bytes(range(20)), length_bytes)) == ""


def test_an_answer_to_another_command_or_of_another_size_is_none() -> None:
    assert decode_answer(answer(b"\x3c\xec\xef\x12\x34\x56", command=0x21)) == ""
    assert decode_answer(answer(b"\x3c\xec\xef\x12\x34\x56")[:-1]) == ""
    assert decode_answer(answer(b"\x3c\xec\xef\x12\x34\x56") + b"\0") == ""


@given(st.binary(max_size=64))
def test_any_bytes_give_a_mac_or_nothing(raw: bytes) -> None:
    assert len(decode_answer(raw)) in (0, 17)


def test_nobody_knows_no_address() -> None:
    assert ask_nobody("eth0") == ""
