"""Pins: SHA-256 over a key's DER SubjectPublicKeyInfo, as `openssl pkey -pubin -outform DER | openssl dgst -sha256`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

_PIN = re.compile(r"sha256:[0-9a-f]{64}")


class MalformedPin(ValueError):
    """A text that is not a pin."""


@dataclass(frozen=True)
class Pin:
    """`sha256:` and 64 lower-case hexadecimal digits."""

    text: str

    def __post_init__(self) -> None:
        if not _PIN.fullmatch(self.text):
            raise MalformedPin("want sha256: and 64 lower-case hexadecimal digits")

    @staticmethod
    def of(spki: bytes) -> "Pin":
        """The pin of a key given as SubjectPublicKeyInfo, DER."""
        return Pin(f"sha256:{sha256(spki).hexdigest()}")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Pins:
    """One or more pins for one thing; more than one while a key is rotated. Any of them matches."""

    pins: tuple[Pin, ...]

    def __post_init__(self) -> None:
        if not self.pins:
            raise MalformedPin("an empty list pins nothing")

    @staticmethod
    def parse(texts: Iterable[str]) -> "Pins":
        return Pins(tuple(Pin(text) for text in texts))

    def match(self, spki: bytes) -> bool:
        return Pin.of(spki) in self.pins

    def __str__(self) -> str:
        return ", ".join(pin.text for pin in self.pins)
