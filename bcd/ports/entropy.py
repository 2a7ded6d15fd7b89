"""Port: randomness that is not key material (backoff, names)."""

from typing import Protocol


class Entropy(Protocol):
    def fraction(self) -> float:
        """Uniform in [0, 1), from the operating system's generator."""
        ...
