"""Pins, and lists of them while a key is rotated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.pins import MalformedPin, Pin, Pins
from tests.fakes.properties import few

DIGITS = "0123456789abcdef" * 4


@few
@given(st.binary())
def test_the_pin_of_a_key_reads_back_and_matches_it(spki: bytes) -> None:
    pin = Pin.of(spki)
    assert Pin(str(pin)) == pin
    assert Pins.parse([str(pin)]).match(spki)


@few
@given(st.binary(), st.binary())
def test_only_the_pinned_key_matches(one: bytes, other: bytes) -> None:
    assert Pins((Pin.of(one),)).match(other) is (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        DIGITS,
        f"sha256:{DIGITS[:-1]}",
        f"sha256:{DIGITS}0",
        f"sha256:{DIGITS.upper()}",
        f"SHA256:{DIGITS}",
        f"sha512:{DIGITS}",
        f"sha256:{DIGITS}\n",
        f" sha256:{DIGITS}",
        f"sha256: {DIGITS}",
        f"sha256/{DIGITS}",
        f"sha256:{DIGITS[:-1]}g",
        f"sha256:{DIGITS[:-1]}٣",
    ],
)
def test_a_pin_has_one_spelling(text: str) -> None:
    assert Pin(f"sha256:{DIGITS}")
    with pytest.raises(MalformedPin, match="want sha256: and 64 lower-case hexadecimal digits"):
        Pin(text)


def test_each_pin_of_a_rotation_matches_and_no_other_key_does() -> None:
    """B55: while a CA is rotated both its pins stand in the list."""
    pins = Pins.parse([str(Pin.of(b"old")), str(Pin.of(b"new"))])
    assert [pins.match(key) for key in (b"old", b"new", b"another")] == [True, True, False]
    assert str(pins) == f"{Pin.of(b'old')}, {Pin.of(b'new')}"


def test_an_empty_list_pins_nothing_and_is_refused() -> None:
    with pytest.raises(MalformedPin, match="empty list"):
        Pins.parse([])


def test_one_malformed_pin_spoils_the_list() -> None:
    with pytest.raises(MalformedPin):
        Pins.parse([str(Pin.of(b"good")), "sha256:short"])
    with pytest.raises(MalformedPin):
        Pins.parse(str(Pin.of(b"a text where a list belongs")))
