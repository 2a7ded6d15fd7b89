"""One codec for structures that are declared field by field (TPM 2.0 Library, Part 2: big-endian, no padding).

A `Structure` has in each field's annotation the kind it has on the wire. Decoding is total and strict: any bytes give a
value or `Malformed`, every length is bounded, nothing may be left over.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from struct import Struct, error
from typing import Any, Protocol, TypeVar, get_type_hints

T = TypeVar("T")


class Malformed(ValueError):
    """Bytes that are no such structure, or a value that has no such bytes."""


class Reader:
    """Bytes, taken from the front."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size_bytes: int) -> bytes:
        end = self._at + size_bytes
        if end > len(self._data):
            raise self.short(end)
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def short(self, wanted: int) -> Malformed:
        """The error of who wanted so many bytes from the start."""
        return Malformed(f"ends after {len(self._data)} bytes, wants {wanted}")

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def end(self) -> None:
        if self._at != len(self._data):
            raise Malformed(f"{len(self._data) - self._at} bytes left over")


class Kind(Protocol):
    """How one field stands on the wire. `seen` is the fields before it, by name."""

    def write(self, value: Any, seen: Mapping[str, Any]) -> bytes: ...

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> Any: ...


@dataclass(frozen=True)
class Unsigned:
    size_bytes: int
    layout: Struct = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Struct({1: ">B", 2: ">H", 4: ">I", 8: ">Q"}[self.size_bytes]))

    def write(self, value: int, _seen: Mapping[str, Any]) -> bytes:
        try:
            return self.layout.pack(value)
        except error:
            raise Malformed(f"{value} does not fit {self.size_bytes} bytes") from None

    def read(self, reader: Reader, _seen: Mapping[str, Any]) -> int:
        at = reader._at
        try:
            number: int = self.layout.unpack_from(reader._data, at)[0]
        except error:
            raise reader.short(at + self.size_bytes) from None
        reader._at = at + self.size_bytes
        return number


U8, U16, U32, U64 = Unsigned(1), Unsigned(2), Unsigned(4), Unsigned(8)


@dataclass(frozen=True)
class Constant:
    """A field of four bytes that only ever has one value."""

    number: int

    def write(self, value: int, seen: Mapping[str, Any]) -> bytes:
        if value != self.number:
            raise Malformed(f"0x{value:x}, want 0x{self.number:x}")
        return U32.write(value, seen)

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> int:
        value = U32.read(reader, seen)
        if value != self.number:
            raise Malformed(f"0x{value:x}, want 0x{self.number:x}")
        return value


@dataclass(frozen=True)
class Sized:
    """TPM2B_*: a length, and at most so many bytes."""

    max_bytes: int
    length: Unsigned = U16

    def write(self, value: bytes, _seen: Mapping[str, Any]) -> bytes:
        if len(value) > self.max_bytes:
            raise Malformed(f"{len(value)} bytes, at most {self.max_bytes}")
        return self.length.layout.pack(len(value)) + value

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> bytes:
        size_bytes = self.length.read(reader, seen)
        if size_bytes > self.max_bytes:
            raise Malformed(f"{size_bytes} bytes, at most {self.max_bytes}")
        return reader.take(size_bytes)


@dataclass(frozen=True)
class Nested:
    """A structure in place."""

    declared: type[Any]

    def write(self, value: Any, _seen: Mapping[str, Any]) -> bytes:
        return _encoded(self.declared, value)

    def read(self, reader: Reader, _seen: Mapping[str, Any]) -> Any:
        return read(self.declared, reader)


@dataclass(frozen=True)
class SizedOf:
    """TPM2B_ of a structure: its length, and it alone."""

    declared: type[Any]

    def write(self, value: Any, seen: Mapping[str, Any]) -> bytes:
        inner = _encoded(self.declared, value)
        return U16.write(len(inner), seen) + inner

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> Any:
        return decode(self.declared, reader.take(U16.read(reader, seen)))


@dataclass(frozen=True)
class ListOf:
    """TPML_*: a count, and at most so many."""

    item: Kind
    max_items: int

    def write(self, value: tuple[Any, ...], seen: Mapping[str, Any]) -> bytes:
        if len(value) > self.max_items:
            raise Malformed(f"{len(value)} items, at most {self.max_items}")
        return U32.write(len(value), seen) + b"".join(self.item.write(one, seen) for one in value)

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> tuple[Any, ...]:
        count = U32.read(reader, seen)
        if count > self.max_items:
            raise Malformed(f"{count} items, at most {self.max_items}")
        return tuple(self.item.read(reader, seen) for _ in range(count))


@dataclass(frozen=True)
class Nothing:
    """The empty arm of a union: None, and no bytes."""

    def write(self, value: None, _seen: Mapping[str, Any]) -> bytes:
        if value is not None:
            raise Malformed("a value where there is none")
        return b""

    def read(self, _reader: Reader, _seen: Mapping[str, Any]) -> None:
        return None


@dataclass(frozen=True)
class Chosen:
    """TPMU_*: what the field `selector`, earlier in the same structure, says."""

    selector: str
    arms: Mapping[int, Kind]

    def write(self, value: Any, seen: Mapping[str, Any]) -> bytes:
        arm = self.arms.get(seen[self.selector])
        if arm is None:
            raise self._unknown(seen)
        return arm.write(value, seen)

    def read(self, reader: Reader, seen: Mapping[str, Any]) -> Any:
        arm = self.arms.get(seen[self.selector])
        if arm is None:
            raise self._unknown(seen)
        return arm.read(reader, seen)

    def _unknown(self, seen: Mapping[str, Any]) -> Malformed:
        return Malformed(f"{self.selector} 0x{seen[self.selector]:x} is none of this structure")


Write = Callable[[Any, Mapping[str, Any]], bytes]
Read = Callable[[Reader, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class _Declaration:
    """A declared structure, its annotations resolved: doing that takes longer than all the rest of a command."""

    fields: tuple[tuple[str, Kind], ...]
    writes: tuple[tuple[str, Write], ...]
    reads: tuple[tuple[str, Read], ...]


_declarations: dict[type[Any], _Declaration] = {}


def _resolved(declared: type[Any]) -> _Declaration:
    hints = get_type_hints(declared, include_extras=True)
    fields = tuple((field.name, hints[field.name].__metadata__[0]) for field in dataclasses.fields(declared))
    writes = tuple((name, kind.write) for name, kind in fields)
    found = _declarations[declared] = _Declaration(fields, writes, tuple((name, kind.read) for name, kind in fields))
    return found


def fields_of(declared: type[Any]) -> tuple[tuple[str, Kind], ...]:
    """The names and kinds of a declared structure, in its order."""
    return (_declarations.get(declared) or _resolved(declared)).fields


def encode(value: Any) -> bytes:
    """The bytes of a declared structure."""
    declaration = _declarations.get(type(value)) or _resolved(type(value))
    fields = vars(value)
    return b"".join([write(fields[name], fields) for name, write in declaration.writes])


def _encoded(declared: type[Any], value: Any) -> bytes:
    if not isinstance(value, declared):
        raise Malformed(f"no {declared.__name__}")
    return encode(value)


def read(declared: type[T], reader: Reader) -> T:
    """The structure at the front of `reader`."""
    declaration = _declarations.get(declared) or _resolved(declared)
    value = object.__new__(declared)
    # What declared(**fields) would come to; nobody has it before it is whole.
    fields = vars(value)
    for name, read_field in declaration.reads:
        fields[name] = read_field(reader, fields)
    return value


def decode(declared: type[T], data: bytes) -> T:
    """The structure that all of `data` is."""
    reader = Reader(data)
    value = read(declared, reader)
    reader.end()
    object.__setattr__(value, "bytes_read", data)
    return value


def bytes_of(value: Any) -> bytes:
    """What `value` was decoded from; else its encoding, which would be the same: nothing has two forms."""
    return getattr(value, "bytes_read", None) or encode(value)
