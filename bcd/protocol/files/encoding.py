"""What the JSON files of the data directory share: strict UTF-8 JSON objects, base64 and RFC 3339 values."""

import base64
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

# [0-9], since \d also matches the digits of every other script.
_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?Z")
# Our files nest two levels; what a later version adds has room, and no nesting exhausts the stack.
_MAX_DEPTH = 32


class MalformedFile(ValueError):
    """The file is not what its name says; the message completes "<file> …" ("is empty", "has no chain")."""


def json_object(data: bytes) -> dict[str, Any]:
    """The one JSON object in `data`."""
    if not data:
        raise MalformedFile("is empty")
    if not data.strip(b"\x00"):
        # What ext4 leaves of a file whose data never reached the disk.
        raise MalformedFile("holds only zero bytes")
    value = json_value(data)
    if not isinstance(value, dict):
        raise MalformedFile("is not a JSON object")
    return value


def json_value(data: bytes) -> object:
    """The one JSON value in `data`: UTF-8, no name twice, nothing that JSON cannot hold."""
    try:
        value: object = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        _check_writable(value, _MAX_DEPTH)
    except UnicodeDecodeError:
        raise MalformedFile("is not UTF-8") from None
    except (ValueError, RecursionError):
        raise MalformedFile("is not JSON (torn?)") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name twice")
    return value


def _check_writable(value: object, depth: int) -> None:
    # Unknown fields are written again: what Python reads and JSON cannot hold (NaN, half a surrogate pair) would make
    # the next store fail.
    if not depth:
        raise ValueError("nested too deep")
    match value:
        case str():
            value.encode()
        case float() if not math.isfinite(value):
            raise ValueError("not a number")
        case list():
            for item in value:
                _check_writable(item, depth - 1)
        case dict():
            for name, item in value.items():
                name.encode()
                _check_writable(item, depth - 1)


def text(value: dict[str, Any], name: str) -> str:
    """The member `name`, a string that is not empty; MalformedFile otherwise."""
    found = value.get(name)
    if not isinstance(found, str) or not found:
        raise MalformedFile(f"has no {name}")
    return found


def from_base64(found: object, name: str) -> bytes:
    """The bytes of padded standard base64 (RFC 4648, section 4), of which each value has one spelling."""
    try:
        if isinstance(found, str) and found:
            data = base64.b64decode(found, validate=True)
            if to_base64(data) == found:
                return data
    except ValueError:
        pass
    raise MalformedFile(f"has a {name} that is not base64")


def to_base64(data: bytes) -> str:
    """Padded standard base64 (RFC 4648, section 4)."""
    return base64.b64encode(data).decode()


def from_time(found: object, name: str) -> datetime:
    """The instant of an RFC 3339 UTC time; nothing is read in local time."""
    match = _TIME.fullmatch(found) if isinstance(found, str) else None
    try:
        if match:
            micros = int(((match[7] or ".0")[1:] + "000000")[:6])
            year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
            return datetime(year, month, day, hour, minute, second, micros, UTC)
    except ValueError:
        pass
    raise MalformedFile(f"has a {name} that is not an RFC 3339 UTC time")


def to_time(instant: datetime) -> str:
    """RFC 3339 UTC with `Z`; fractions only where there are any."""
    if instant.tzinfo is None:
        raise ValueError("a time without a zone")
    # isoformat, since strftime leaves out a year's leading zeros.
    told = instant.astimezone(UTC).replace(tzinfo=None).isoformat()
    return (told.rstrip("0") if "." in told else told) + "Z"


def to_json(value: dict[str, Any]) -> bytes:
    """UTF-8, members in their order, indented by two spaces, with a newline at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
