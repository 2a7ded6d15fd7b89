"""Reading a declared structure as a TPM does: in its order, and ending at the first field that does not pass, with the
code that says why (Part 4, "Unmarshaling")."""

from collections.abc import Mapping
from typing import Any, TypeVar

from bcd.adapters.tpmsim.answers import Unfit
from bcd.adapters.tpmsim.fields import FIELDS, Check, Kept
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.wire import (
    Chosen,
    Kind,
    ListOf,
    Malformed,
    Nested,
    Nothing,
    Reader,
    Sized,
    SizedOf,
    Unsigned,
    fields_of,
)

T = TypeVar("T")

_NONE: Kept = {}


def read(declared: type[T], reader: Reader, kept: Kept = _NONE) -> T:
    """The structure at the front; Unfit with the code of its first fault. `kept` narrows what its fields may be where
    it stands."""
    values: dict[str, Any] = {}
    for name, kind in fields_of(declared):
        check = kept.get(name, FIELDS.get((declared, name)))
        values[name] = _read(kind, reader, values, check)
    return declared(**values)


def parameter(declared: type[Any], name: str, kind: Kind, reader: Reader) -> Any:
    """One parameter of a command."""
    return _read(kind, reader, {}, FIELDS.get((declared, name)))


def _read(kind: Kind, reader: Reader, seen: Mapping[str, Any], check: Check) -> Any:
    kept = check if isinstance(check, dict) else _NONE
    match kind:
        case Nested():
            return read(kind.declared, reader, kept)
        case Chosen():
            arm = kind.arms.get(seen[kind.selector], Nothing())
            return _read(arm, reader, seen, check)
        case SizedOf():
            return _sized(kind, reader, kept)
        case ListOf():
            count = unsigned(reader, 4)
            if callable(check):
                check(count)
            return tuple(_read(kind.item, reader, seen, check) for _ in range(count))
        case Sized():
            size_bytes = unsigned(reader, kind.length.size_bytes)
            if callable(check):
                check(size_bytes)
            elif size_bytes > kind.max_bytes:
                raise Unfit(Rc.SIZE)
            return take(reader, size_bytes)
        case Unsigned():
            value = unsigned(reader, kind.size_bytes)
            if callable(check):
                check(value)
            return value
    return kind.read(reader, seen)


def _sized(kind: SizedOf, reader: Reader, kept: Kept) -> Any:
    size_bytes = unsigned(reader, 2)
    if size_bytes == 0:
        raise Unfit(Rc.SIZE)
    before = reader.left
    value = read(kind.declared, reader, kept)
    if before - reader.left != size_bytes:
        raise Unfit(Rc.SIZE)
    return value


def unsigned(reader: Reader, size_bytes: int) -> int:
    return int.from_bytes(take(reader, size_bytes))


def take(reader: Reader, size_bytes: int) -> bytes:
    try:
        return reader.take(size_bytes)
    except Malformed:
        raise Unfit(Rc.INSUFFICIENT) from None
