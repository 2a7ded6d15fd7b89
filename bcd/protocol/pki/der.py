"""The parts of a DER value (X.690) as the bytes they are, for what a parser gives back in another encoding."""

from dataclasses import dataclass

# An object identifier in use has at most a dozen bytes.
MAX_OID_BYTES = 32


class NotDer(ValueError):
    """Not one value of definite length with values in it."""


@dataclass(frozen=True)
class Value:
    """One value: its tag, what it holds, and all of it with tag and length."""

    tag: int
    content: bytes
    der: bytes


def first(data: bytes) -> Value:
    """The value that `data` begins with; what follows it is not looked at."""
    start, end = _content(data, 0, len(data))
    return Value(data[0], data[start:end], data[:end])


def values(content: bytes) -> tuple[Value, ...]:
    """The values that stand one behind the other in `content`, to its end."""
    found = []
    at = 0
    while at < len(content):
        start, end = _content(content, at, len(content))
        found.append(Value(content[at], content[start:end], content[at:end]))
        at = end
    return tuple(found)


def dotted(content: bytes) -> str:
    """An object identifier's content as the dotted text."""
    if not content or len(content) > MAX_OID_BYTES or content[-1] & 0x80:
        raise NotDer
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    top = min(numbers[0] // 40, 2)
    return ".".join(map(str, (top, numbers[0] - 40 * top, *numbers[1:])))


def children(der: bytes) -> tuple[bytes, ...]:
    """The values inside the constructed value `der`, each with its tag and length."""
    start, end = _content(der, 0, len(der))
    parts = []
    while start < end:
        _, after = _content(der, start, end)
        parts.append(der[start:after])
        start = after
    return tuple(parts)


def _content(der: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the content of the value at `at` begins and ends."""
    # Tags here are of one byte: number 31 announces more.
    if at + 2 > end or der[at] & 0x1F == 0x1F:
        raise NotDer
    start, length = at + 2, der[at + 1]
    if length & 0x80:
        size = length & 0x7F
        start += size
        length = int.from_bytes(der[at + 2 : start])
        if not size:
            raise NotDer
    if start + length > end:
        raise NotDer
    return start, start + length
