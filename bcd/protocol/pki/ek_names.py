"""Names in manufacturers' certificates: to find an issuer by, and to show. Read as leniently as what they stand in."""

from dataclasses import dataclass

from bcd.protocol.pki import der
from bcd.protocol.pki.der import Value

_SHORT = {
    "2.5.4.3": "CN",
    "2.5.4.5": "serialNumber",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
}
# BMPString and UniversalString have wide characters; the rest are ASCII, UTF-8, or old texts that only look like it.
_WIDE = {0x1E: "utf-16-be", 0x1C: "utf-32-be"}
# It is shown in a line of a log.
MAX_SHOWN = 200


@dataclass(frozen=True)
class Name:
    """`parts` are the attributes' texts without case and with single spaces (RFC 5280, 7.1), in no order: manufacturers
    sort a name's parts each their own way. `text` is for people, one line of printable characters."""

    parts: frozenset[tuple[str, str]]
    text: str

    def __str__(self) -> str:
        return self.text or "(no name)"


def read(value: Value) -> Name:
    """NotDer when it is no Name."""
    attributes = [_attribute(one) for relative in der.values(value.content) for one in der.values(relative.content)]
    shown = ", ".join(f"{_SHORT.get(oid, oid)}={text}" for oid, text in attributes)
    printable = "".join(character if character.isprintable() else "?" for character in shown)
    return Name(frozenset((oid, " ".join(text.casefold().split())) for oid, text in attributes), printable[:MAX_SHOWN])


def _attribute(value: Value) -> tuple[str, str]:
    parts = der.values(value.content)
    if len(parts) != 2:
        raise der.NotDer
    return der.dotted(parts[0].content), parts[1].content.decode(_WIDE.get(parts[1].tag, "utf-8"), "replace")
