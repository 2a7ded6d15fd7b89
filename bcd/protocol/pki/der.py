"""The parts of a DER value (X.690) as the bytes they are, for what a parser gives back in another encoding."""


class NotDer(ValueError):
    """Not one value of definite length with values in it."""


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
