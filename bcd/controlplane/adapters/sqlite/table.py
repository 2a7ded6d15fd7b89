"""A table that holds one kind of frozen dataclass: a column a field, by the field's type."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from bcd.domain.model.claims import Claims

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Cell = int | str | bytes | None


class Table(Generic[T]):
    """`key` are the columns that name a row."""

    def __init__(self, name: str, kind: type[T], key: tuple[str, ...]) -> None:
        hints = get_type_hints(kind)
        self._name = name
        self._kind = kind
        self.columns = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
        self._read = tuple(_reader(hints[column]) for column in self.columns)
        marks = ", ".join("?" for _ in self.columns)
        changes = ", ".join(f"{c} = excluded.{c}" for c in self.columns if c not in key)
        self._insert = f"INSERT INTO {name} ({', '.join(self.columns)}) VALUES ({marks})"  # noqa: S608 - our own names
        self._put = f"{self._insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        self._select = f"SELECT {', '.join(self.columns)} FROM {name}"  # noqa: S608

    def put(self, connection: sqlite3.Connection, row: T) -> None:
        connection.execute(self._put, self._cells(row))

    def add(self, connection: sqlite3.Connection, row: T) -> None:
        connection.execute(self._insert, self._cells(row))

    def one(self, connection: sqlite3.Connection, where: str, *values: Cell) -> T | None:
        found = self.many(connection, where, *values)
        return found[0] if found else None

    def many(self, connection: sqlite3.Connection, rest: str, *values: Cell) -> Sequence[T]:
        rows = connection.execute(f"{self._select} {rest}", values)
        return [self._kind(*(read(cell) for read, cell in zip(self._read, row, strict=True))) for row in rows]

    def _cells(self, row: T) -> tuple[Cell, ...]:
        return tuple(to_cell(getattr(row, column)) for column in self.columns)


def to_cell(value: object) -> Cell:
    match value:
        case None | bytes():
            return value
        case Enum():
            return str(value.value)
        case bool() | int():
            return int(value)
        case str():
            return value
        case datetime():
            return (value - _EPOCH) // _MICROSECOND
        case Claims():
            return json.dumps(asdict(value))
        case tuple():
            return json.dumps([item.hex() for item in value])
    raise TypeError(f"no column holds a {type(value).__name__}")


def from_micros(cell: int) -> datetime:
    return _EPOCH + cell * _MICROSECOND


def _reader(hint: Any) -> Callable[[Any], Any]:
    if get_origin(hint) is UnionType:
        (inner,) = [arg for arg in get_args(hint) if arg is not NoneType]
        read = _reader(inner)
        return lambda cell: None if cell is None else read(cell)
    if get_origin(hint) is tuple:
        return lambda cell: tuple(bytes.fromhex(item) for item in json.loads(cell))
    if hint is datetime:
        return from_micros
    if hint is Claims:
        return _claims
    if hint is bool:
        return bool
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return lambda cell: cell


def _claims(cell: str) -> Claims:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(cell).items()}
    return Claims(**values)
