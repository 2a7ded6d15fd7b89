"""`MachineFile`: the hardware that bcd-fakehw reads from a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.hardware import machine_file
from bcd.adapters.hardware.machine_file import DEFAULT_MACHINE, MachineFile
from bcd.domain.model.claims import only_real
from bcd.domain.model.failures import FixConfiguration

UUID = "8f2a4c1e-77b0-4d3e-9a51-0c6de5b1f2a3"
BOOT_ID = "1d5e9c72-40aa-4b6f-8f03-b2a9c1d7e6f4"


def test_a_fakehw_machine_is_always_the_same_and_real() -> None:
    assert MachineFile(None).claims() == DEFAULT_MACHINE == only_real(DEFAULT_MACHINE)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"macs": "3c:ec:ef:12:34:56"}', "{path}: macs: want a list of text"),
        (b'{"macs": [1]}', "{path}: macs: want a list of text"),
        (b'{"gpuUuids": null}', "{path}: gpuUuids: want a list of text"),
        (b'{"hostname": 7}', "{path}: hostname: want text"),
        (b'{"hostname": {"a": "b"}}', "{path}: hostname: want text"),
        (b'{"bootId": null}', "{path}: bootId: want text"),
        (b'{"hostname": "a", "hostname": "b"}', "{path}: hostname: there twice"),
        (
            b'{"serial": "a"}',
            "{path}: serial: unknown; there are: productUuid, productSerial, boardSerial, chassisSerial, hostname, "
            "bootId, macs, gpuUuids",
        ),
        (
            b'{"a\\nb": "a"}',
            "{path}: 'a\\nb': unknown; there are: productUuid, productSerial, boardSerial, chassisSerial, hostname, "
            "bootId, macs, gpuUuids",
        ),
        (b'{"hostname": ', "{path}: not a configuration: line 1: Expecting value"),
        (b"", "{path}: not a configuration: line 1: Expecting value"),
        (b"[]", "{path}: not a configuration: not a JSON object"),
        (b'{"hostname": "\xff"}', "{path}: not a configuration: not JSON in UTF-8"),
        (b"[" * 60_000, "{path}: not a configuration: not JSON in UTF-8"),
        (b'{"hostname": ' + b"1" * 5000 + b"}", "{path}: not a configuration: not JSON in UTF-8"),
        (b" " * (machine_file.MAX_FILE_BYTES + 1), "{path}: not a configuration: longer than 65536 bytes"),
    ],
)
def test_a_file_that_is_no_machine_is_one_documented_line(content: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(content)
    with pytest.raises(FixConfiguration) as failure:
        MachineFile(path)
    assert failure.value.text == text.format(path=path)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, os.strerror(errno.ENOENT)),
        (Path.mkdir, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to(path.name), os.strerror(errno.ELOOP)),
    ],
    ids=["absent", "directory", "pipe", "loop"],
)
def test_a_machine_file_that_is_no_file_is_one_documented_line(
    make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "machine.json"
    make(path)
    with pytest.raises(FixConfiguration) as failure:
        MachineFile(path)
    assert failure.value.text == f"{path}: not a configuration: {why}"
