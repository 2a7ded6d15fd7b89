"""The join token's text (B52: line ends, spaces, byte-order marks and other bytes around it)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.tokens import MalformedToken, parse_token
from tests.fakes.properties import few

TOKEN = b"bcjt_abcdefghij_" + b"C4n4ry" * 7 + b"x"
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-"


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_one_trailing_line_end_goes(ending: bytes) -> None:
    """B52."""
    assert parse_token(TOKEN + ending).reveal() == TOKEN


@pytest.mark.parametrize(
    "raw",
    [
        TOKEN + b"\r",
        TOKEN + b"\n\n",
        TOKEN + b"\r\n\r\n",
        TOKEN + b"\n\r\n",
        TOKEN + b"\r\r\n",
        TOKEN + b"\n\r",
        TOKEN + b" ",
        TOKEN + b" \n",
        b" " + TOKEN,
        b"\n" + TOKEN,
        TOKEN + b"\t",
        TOKEN + b"\x00",
        b"\x00" + TOKEN,
        TOKEN[:20] + b"\x00" + TOKEN[20:],
        TOKEN + b"\x0b",
        TOKEN + b"\xc2\xa0",
        TOKEN + b"\nsecond line",
        TOKEN + b"\n" + TOKEN,
        TOKEN + b"\nsecond line\n",
        b'"' + TOKEN + b'"',
        TOKEN + b"!",
        TOKEN + b"\xff",
    ],
)
def test_anything_else_around_it_is_refused_and_not_shown(raw: bytes) -> None:
    """B52: a usage error that holds nothing of the token."""
    with pytest.raises(MalformedToken, match="a character that no token has") as refused:
        parse_token(raw)
    assert b"C4n4ry" not in repr(refused.value).encode()
    assert "second" not in str(refused.value)


def test_a_byte_order_mark_is_named() -> None:
    """B52: an editor's mark cannot be seen, so the message says it."""
    with pytest.raises(MalformedToken, match="begins with a byte-order mark"):
        parse_token(b"\xef\xbb\xbf" + TOKEN)
    assert parse_token(TOKEN)


@pytest.mark.parametrize("raw", [b"", b"\n", b"\r\n"])
def test_nothing_is_empty(raw: bytes) -> None:
    with pytest.raises(MalformedToken, match=r"^is empty$"):
        parse_token(raw)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_4096_bytes_are_a_token_and_4097_are_not(ending: bytes) -> None:
    """B52: the limit holds for the token; its line end does not count."""
    assert parse_token(b"a" * 4096 + ending).reveal() == b"a" * 4096
    with pytest.raises(MalformedToken, match="is longer than 4096 bytes"):
        parse_token(b"a" * 4097 + ending)


def test_16_characters_are_a_token_and_15_are_not() -> None:
    assert parse_token(b"a" * 16)
    with pytest.raises(MalformedToken, match="is shorter than 16 characters"):
        parse_token(b"a" * 15)


def test_the_alphabet_is_exactly_the_documented_one() -> None:
    for byte in range(256):
        raw = b"a" * 15 + bytes((byte,)) + b"a"
        if byte in ALPHABET:
            assert parse_token(raw).reveal() == raw
        else:
            with pytest.raises(MalformedToken):
                parse_token(raw)


@few
@given(st.binary(max_size=64) | st.builds(lambda head, tail: head + TOKEN + tail, st.binary(max_size=3), st.binary()))
def test_any_bytes_are_a_token_or_malformed(raw: bytes) -> None:
    try:
        assert parse_token(raw).reveal() in {raw, raw[:-1], raw[:-2]}
    except MalformedToken as refused:
        assert "C4n4ry" not in str(refused)


def test_nothing_that_prints_a_token_prints_its_text() -> None:
    token = parse_token(TOKEN)
    for shown in (repr(token), str(token), f"{token}", f"{token!r:>40}", repr([token]), repr({"t": token})):
        assert "C4n4ry" not in shown
    assert not hasattr(token, "__dict__")
    assert "C4n4ry" not in repr(copy.copy(token))
