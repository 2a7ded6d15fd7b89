"""Every declared structure: decode(encode(x)) == x, and any bytes give a value or Malformed."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.protocol.tpm2 import commands, structures
from bcd.protocol.tpm2.wire import (
    Chosen,
    Constant,
    Kind,
    ListOf,
    Malformed,
    Nested,
    Nothing,
    Reader,
    Sized,
    SizedOf,
    Unsigned,
    bytes_of,
    decode,
    encode,
    fields_of,
)

DECLARED = sorted(
    {
        value
        for module in (structures, commands)
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and dataclasses.is_dataclass(value)
        and value not in (commands.Command, commands.Answer)
    },
    key=lambda declared: declared.__name__,
)
each = pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.__name__)


def values(kind: Kind, seen: dict[str, Any]) -> st.SearchStrategy[Any]:
    match kind:
        case Unsigned(size_bytes):
            return st.integers(0, (1 << 8 * size_bytes) - 1)
        case Constant(number):
            return st.just(number)
        case Sized(max_bytes):
            return st.binary(max_size=max_bytes)
        case Nested(declared) | SizedOf(declared):
            return structure(declared)
        case ListOf(item, max_items):
            return st.lists(values(item, seen), max_size=max_items).map(tuple)
        case Nothing():
            return st.none()
        case Chosen(selector, arms):
            return values(arms[seen[selector]], seen)
    raise AssertionError(kind)


@st.composite
def structure(draw: st.DrawFn, declared: type[Any]) -> Any:
    fields = fields_of(declared)
    selected = {kind.selector: list(kind.arms) for _, kind in fields if isinstance(kind, Chosen)}
    seen: dict[str, Any] = {}
    for name, kind in fields:
        seen[name] = draw(st.sampled_from(selected[name]) if name in selected else values(kind, seen))
    return declared(**seen)


@each
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_value_comes_back_and_nothing_may_be_missing_or_left_over(declared: type[Any], data: st.DataObject) -> None:
    value = data.draw(structure(declared))
    written = encode(value)
    assert decode(declared, written) == value
    with pytest.raises(Malformed):
        decode(declared, written + b"\0")
    if written:
        with pytest.raises(Malformed):
            decode(declared, written[:-1])


@each
@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=200))
def test_any_bytes_are_a_value_or_malformed(declared: type[Any], noise: bytes) -> None:
    try:
        value = decode(declared, noise)
    except Malformed:
        return
    assert encode(value) == noise
    assert bytes_of(value) == noise


def test_the_bytes_of_a_changed_copy_are_its_own_and_no_longer_those_it_was_read_from() -> None:
    read = decode(structures.PcrSelection, bytes.fromhex("000b03010000"))
    for copy in (dataclasses.replace(read, bank=4), structures.PcrSelection(4, read.selected)):
        assert bytes_of(copy) == encode(copy) == bytes.fromhex("000403010000")
    assert bytes_of(read) == bytes.fromhex("000b03010000")


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_another_value_or_malformed(data: st.DataObject) -> None:
    value = data.draw(structure(commands.CreatePrimaryOut))
    written = bytearray(encode(value))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    try:
        assert decode(commands.CreatePrimaryOut, bytes(written)) != value
    except Malformed:
        pass


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Unsigned(2), 65536),
        (Unsigned(2), -1),
        (Constant(7), 8),
        (Sized(4), bytes(5)),
        (ListOf(Unsigned(1), 2), (1, 2, 3)),
        (Nothing(), 0),
        (Nested(structures.Point), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_bytes_is_refused(kind: Kind, value: object) -> None:
    with pytest.raises(Malformed):
        kind.write(value, {})


def test_lengths_are_bounded_before_anything_is_taken() -> None:
    for kind, text in ((Sized(4), "0005" + "00" * 5), (ListOf(Unsigned(1), 2), "ffffffff")):
        with pytest.raises(Malformed, match="at most"):
            kind.read(Reader(bytes.fromhex(text)), {})


def test_a_selector_nobody_knows_is_malformed() -> None:
    with pytest.raises(Malformed, match="algorithm 0x7777"):
        decode(structures.Scheme, bytes.fromhex("7777"))


def test_what_a_tpm_says_starts_with_its_own_word() -> None:
    with pytest.raises(Malformed, match="want 0xff544347"):
        Constant(structures.GENERATED).read(Reader(bytes.fromhex("ff544348")), {})
