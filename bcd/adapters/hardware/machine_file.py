"""A machine described by a JSON file, for bcd-fakehw (decision 22)."""

import json
import os
import stat

from bcd.domain.model.claims import Claims, only_real
from bcd.domain.model.failures import FixConfiguration, Message

# 64 MACs, 64 GPUs and six texts of 256 characters are well under it.
MAX_FILE_BYTES = 65_536
# The part of an unknown field's name that a message shows.
_MAX_SHOWN = 64

# bcd-fakehw's machine when no file is named. Always the same, so two nodes with it are one machine to a control plane,
# which refuses the second a plain token: give each its file. The MAC is of the range for documentation (RFC 7042).
DEFAULT_MACHINE = Claims(
    product_uuid="b0c0ffee-0000-4000-8000-00000fa4e001",
    product_serial="FAKEHW-PRODUCT-1",
    board_serial="FAKEHW-BOARD-1",
    chassis_serial="FAKEHW-CHASSIS-1",
    macs=("00:00:5e:00:53:01",),
    gpu_uuids=(),
    hostname="fakehw",
    boot_id="b0c0ffee-0000-4000-8000-00000fa4eb00",
)

_TEXTS = ("productUuid", "productSerial", "boardSerial", "chassisSerial", "hostname", "bootId")
_LISTS = ("macs", "gpuUuids")


class MachineFile:
    """`Hardware` as the file at `path` says, every field optional; `DEFAULT_MACHINE` for None.

    The file is UTF-8 JSON: {"productUuid", "productSerial", "boardSerial", "chassisSerial", "hostname", "bootId": text,
    "macs", "gpuUuids": lists of text}. It is read once, here: FixConfiguration when it is not that. Values that a real
    machine would not claim are left out, as on a real machine.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._claims = DEFAULT_MACHINE if path is None else _load(os.fspath(path))

    def claims(self) -> Claims:
        return self._claims


def _load(path: str) -> Claims:
    try:
        fields = json.loads(_read(path), object_pairs_hook=_Fields)
    except json.JSONDecodeError as error:
        raise _syntax(path, f"line {error.lineno}: {error.msg}") from None
    # UnicodeDecodeError and a number of thousands of digits; brackets a thousand deep.
    except (ValueError, RecursionError):
        raise _syntax(path, "not JSON in UTF-8") from None
    if not isinstance(fields, _Fields):
        raise _syntax(path, "not a JSON object")
    texts: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    for key, value in fields.pairs:
        if key in texts or key in lists:
            raise _key(path, key, "there twice")
        if key in _TEXTS:
            texts[key] = _text(path, key, value)
        elif key in _LISTS:
            lists[key] = _texts(path, key, value)
        else:
            raise _key(path, key, f"unknown; there are: {', '.join((*_TEXTS, *_LISTS))}")
    return only_real(
        Claims(
            product_uuid=texts.get("productUuid", ""),
            product_serial=texts.get("productSerial", ""),
            board_serial=texts.get("boardSerial", ""),
            chassis_serial=texts.get("chassisSerial", ""),
            macs=lists.get("macs", ()),
            gpu_uuids=lists.get("gpuUuids", ()),
            hostname=texts.get("hostname", ""),
            boot_id=texts.get("bootId", ""),
        )
    )


class _Fields:
    """A JSON object as it stands in the file; a dict would keep the last of two fields of one name."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs


def _text(path: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise _key(path, key, "want text")
    return value


def _texts(path: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _key(path, key, "want a list of text")
    return tuple(value)


def _read(path: str) -> str:
    """The whole file. Never waits: a pipe with nobody at its other end is refused like any other non-file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _syntax(path, "not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _syntax(path, os.strerror(error.errno or 0)) from None
    if len(content) > MAX_FILE_BYTES:
        raise _syntax(path, f"longer than {MAX_FILE_BYTES} bytes")
    return content.decode("utf-8")


def _syntax(path: str, why: str) -> FixConfiguration:
    return FixConfiguration(Message.CONFIG_SYNTAX, path=path, why=why)


def _key(path: str, key: str, why: str) -> FixConfiguration:
    # One line, whatever the file calls its fields.
    shown = key if key.isprintable() and len(key) <= _MAX_SHOWN else ascii(key[:_MAX_SHOWN])
    return FixConfiguration(Message.CONFIG_KEY, path=path, key=shown, why=why)
