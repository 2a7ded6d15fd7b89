"""Hardware claims: what a machine says of itself. They are never proof, and alone never merge two machines."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Protocol, "Services": each at most 256 printable characters.
MAX_CLAIM = 256
MAX_CLAIMS_OF_A_KIND = 64

# What firmware writes where nobody set a value; two machines may share each of them (decision 24). Lower case, letters
# and digits only, because vendors agree on nothing else: "Default_string", "To Be Filled By O.E.M.", "(null string)".
PLACEHOLDERS = frozenset(
    {
        "baseboardserialnumber",
        "boardserialnumber",
        "chassisserialnumber",
        "defaultstring",
        "empty",
        "eval",
        "invalid",
        "mb1234567890",
        "na",
        "none",
        "notapplicable",
        "notavailable",
        "notpresent",
        "notsettable",
        "notspecified",
        "null",
        "nullstring",
        "oem",
        "serialnumber",
        "sn1234567890",
        "standard",
        "sys1234567890",
        "systemserialnumber",
        "tobefilledbyoem",
        "type2boardserialnumber",
        "undefined",
        "unknow",
        "unknown",
    }
)
# "123456789", "0123456789", "1234567890": somebody counted.
_COUNTED = "01234567890123456789"
# UUIDs that whole product lines were shipped with.
_SHARED_UUIDS = frozenset(
    {
        "03000200-0400-0500-0006-000700080009",  # AMI's default
        "00020003-0004-0005-0006-000700080009",  # the same, as a kernel shows it for SMBIOS older than 2.6
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "03020100-0504-0706-0809-0a0b0c0d0e0f",
        "07090201-0103-0301-0807-060504030201",
        "11111111-2222-3333-4444-555555555555",
        "12345678-1234-5678-90ab-cddeefaabbcc",
        "4c4c4544-0000-2010-8020-80c04f202020",  # Dell: seven spaces for a service tag
        "deadbeef-dead-beef-dead-beefdeadbeef",
    }
)
# The host's end of every guest's interface under Xen: the same on all of them.
_SHARED_MACS = frozenset({"fe:ff:ff:ff:ff:ff"})
# What a machine that nobody named is called, by the kernel and by installers.
_NO_HOSTNAMES = frozenset({"(none)", "localhost", "localhost.localdomain"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_GPU = "gpu-"


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


def only_real(raw: Claims) -> Claims:
    """`raw` without everything that is no real value; MACs and GPU UUIDs sorted, unique, at most 64 of each."""
    return Claims(
        product_uuid=real_uuid(raw.product_uuid),
        product_serial=real_serial(raw.product_serial),
        board_serial=real_serial(raw.board_serial),
        chassis_serial=real_serial(raw.chassis_serial),
        macs=_real_ones(real_mac, raw.macs),
        gpu_uuids=_real_ones(real_gpu_uuid, raw.gpu_uuids),
        hostname=real_hostname(raw.hostname),
        boot_id=real_uuid(raw.boot_id),
    )


def is_placeholder(text: str) -> bool:
    """Whether `text` is what firmware says when nobody gave it a value: all zeros, all f, "Not Settable"…"""
    word = "".join(character for character in text.lower() if character.isalnum())
    # One character over and over ("0000000", "xxxx"), or none at all ("........"), is a filler whatever it is.
    return word in PLACEHOLDERS or len(set(word)) <= 1 or word in _COUNTED or _is_shared_uuid(text.strip().lower())


def is_mac(text: str) -> bool:
    """Whether `text` is a MAC in lower case, whatever it is worth."""
    return _MAC.fullmatch(text) is not None


def is_gpu_uuid(text: str) -> bool:
    """Whether `text` is `gpu-` and a UUID in lower case, whatever it is worth."""
    return text.startswith(_GPU) and _UUID.fullmatch(text.removeprefix(_GPU)) is not None


def real_uuid(text: str) -> str:
    """`text` as a UUID in lower case, or empty when it is none or a placeholder."""
    word = text.strip().lower()
    return word if _UUID.fullmatch(word) and not is_placeholder(word) else ""


def real_gpu_uuid(text: str) -> str:
    """`text` as a GPU UUID in lower case, `gpu-` before the UUID; or empty when it is none or a placeholder.

    The driver says `GPU-????????-????-????-????-????????????` until it has started the device.
    """
    uuid = real_uuid(text.strip().lower().removeprefix(_GPU))
    return _GPU + uuid if uuid else ""


def real_serial(text: str) -> str:
    """`text` without surrounding space, or empty when it is a placeholder, too long or not printable."""
    word = text.strip()
    return word if _fits(word) and not is_placeholder(word) else ""


def real_mac(text: str) -> str:
    """`text` as a MAC in lower case, or empty when it is none, a group address, zero, all ones, or one many share."""
    word = text.strip().lower()
    if not _MAC.fullmatch(word) or len(set(word.replace(":", ""))) == 1 or word in _SHARED_MACS:
        return ""
    return "" if int(word[:2], 16) & 1 else word


def real_hostname(text: str) -> str:
    """`text` without surrounding space, or empty when nobody named the machine. `empty` or `unknown` may be a name."""
    word = text.strip()
    return word if _fits(word) and word.lower() not in _NO_HOSTNAMES else ""


def _real_ones(real: Callable[[str], str], texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({real(text) for text in texts} - {""})[:MAX_CLAIMS_OF_A_KIND])


def _fits(word: str) -> bool:
    return word.isprintable() and len(word) <= MAX_CLAIM


def _is_shared_uuid(word: str) -> bool:
    # One byte over and over is a filler too: fefefefe-fefe-…
    digits = word.replace("-", "")
    return word in _SHARED_UUIDS or (_UUID.fullmatch(word) is not None and digits == digits[:2] * 16)
