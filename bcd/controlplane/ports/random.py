"""Port: key-grade randomness, for ids, serial numbers and token secrets."""

from typing import Protocol


class Random(Protocol):
    def bytes(self, count: int) -> bytes:
        """`count` bytes from the operating system's generator."""
        ...
