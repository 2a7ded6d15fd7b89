"""Hardware claims: what a machine says of itself. They are never proof, and alone never merge two machines."""

import re
from dataclasses import dataclass

# Protocol, "Services": each at most 256 printable characters.
MAX_CLAIM = 256
MAX_CLAIMS_OF_A_KIND = 64

# What firmware writes where nobody set a value; two machines may share each of them (decision 24).
PLACEHOLDERS = frozenset(
    {
        "",
        "0",
        "0123456789",
        "123456789",
        "chassis serial number",
        "base board serial number",
        "default string",
        "empty",
        "invalid",
        "n/a",
        "na",
        "none",
        "not available",
        "not applicable",
        "not present",
        "not settable",
        "not specified",
        "null",
        "oem",
        "serial number",
        "system serial number",
        "to be filled by o.e.m.",
        "to be filled by oem",
        "undefined",
        "unknown",
    }
)
# UUIDs that whole product lines were shipped with.
_SHARED_UUIDS = frozenset({"03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True)
class Claims:
    """Empty text or an empty tuple where the machine has no real value. MACs and UUIDs in lower case."""

    product_uuid: str = ""
    product_serial: str = ""
    board_serial: str = ""
    chassis_serial: str = ""
    macs: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    hostname: str = ""
    boot_id: str = ""


def is_placeholder(text: str) -> bool:
    """Whether `text` is what firmware says when nobody gave it a value: all zeros, all f, "Not Settable"…"""
    word = text.strip().lower()
    # One character over and over ("0000000", "xxxx", "........") is a filler whatever it is.
    digits = word.replace("-", "").replace(" ", "")
    return word in PLACEHOLDERS or word in _SHARED_UUIDS or len(set(digits)) <= 1


def real_uuid(text: str) -> str:
    """`text` as a UUID in lower case, or empty when it is none or a placeholder."""
    word = text.strip().lower()
    return word if _UUID.fullmatch(word) and not is_placeholder(word) else ""


def real_serial(text: str) -> str:
    """`text` without surrounding space, or empty when it is a placeholder, too long or not printable."""
    word = text.strip()
    return word if word.isprintable() and len(word) <= MAX_CLAIM and not is_placeholder(word) else ""


def real_mac(text: str) -> str:
    """`text` as a MAC in lower case, or empty when it is none, a group address, zero, or all ones."""
    word = text.strip().lower()
    if not _MAC.fullmatch(word) or len(set(word.replace(":", ""))) == 1:
        return ""
    return "" if int(word[:2], 16) & 1 else word
