"""`SysfsHardware` on files that stand for a kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.hardware import reading
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.domain.model.claims import Claims
from tests.contract.ports.hardware_files import fake_device, fake_port, run_python


def test_b50_ports_of_a_bond_claim_their_own_addresses_and_virtual_devices_none(tmp_path: Path) -> None:
    """Field report B50. While in a bond both ports show the bond's address; their drivers know their own."""
    bond = "3c:ec:ef:00:00:01"
    fake_port(tmp_path, "eth0", address=bond, addr_assign_type="0")
    fake_port(tmp_path, "eth1", address=bond, addr_assign_type="3")
    fake_device(tmp_path, "bond0", address=bond)
    fake_device(tmp_path, "br0", address="3c:ec:ef:00:00:0b")
    fake_device(tmp_path, "veth0", address="3c:ec:ef:00:00:0c")
    fake_device(tmp_path, "docker0", address="02:42:ac:11:00:01")
    fake_device(tmp_path, "lo", address="00:00:00:00:00:00", type="772")
    fake_port(tmp_path, "ib0", type="32")
    function = fake_port(tmp_path, "eth0v0")
    (function / "device/physfn").symlink_to(tmp_path / "sys/devices/eth0")
    (tmp_path / "sys/class/net/bonding_masters").write_text("bond0\n", encoding="utf-8")
    permanent = {
        "eth0": "3c:ec:ef:00:00:01",
        "eth1": "3c:ec:ef:00:00:02",
        "bond0": "3c:ec:ef:00:00:0a",
        "br0": "3c:ec:ef:00:00:0b",
        "veth0": "00:00:00:00:00:00",
        "ib0": "3c:ec:ef:00:00:0d",
        "eth0v0": "3c:ec:ef:00:00:0e",
    }
    claims = SysfsHardware(tmp_path, lambda device: permanent.get(device, "")).claims()
    assert claims == Claims(macs=("3c:ec:ef:00:00:01", "3c:ec:ef:00:00:02"))


@pytest.mark.parametrize("answer", ["", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"])
@pytest.mark.parametrize(
    ("files", "macs"),
    [
        ({}, ("3c:ec:ef:00:00:01",)),
        ({"addr_assign_type": "1"}, ()),
        ({"addr_assign_type": "2"}, ()),
        ({"addr_assign_type": "3"}, ()),
        ({"addr_assign_type": ""}, ()),
        ({"type": "32"}, ()),
        ({"type": "801"}, ()),
        ({"address": "ff:ff:ff:ff:ff:ff"}, ()),
    ],
)
def test_b50_without_the_drivers_word_an_address_counts_only_while_nobody_has_set_it(
    answer: str, files: dict[str, str], macs: tuple[str, ...], tmp_path: Path
) -> None:
    fake_port(tmp_path, "eth0", **({"address": "3c:ec:ef:00:00:01"} | files))
    assert SysfsHardware(tmp_path, lambda device: answer).claims().macs == macs


def test_another_root_is_never_asked_of_this_kernels_drivers(tmp_path: Path) -> None:
    for name in os.listdir("/sys/class/net"):
        if (Path("/sys/class/net") / name).is_dir():
            fake_port(tmp_path, name, address="3c:ec:ef:00:00:01", addr_assign_type="3")
    assert SysfsHardware(tmp_path).claims().macs == ()


def test_a_root_without_anything_claims_nothing(tmp_path: Path) -> None:
    assert SysfsHardware(tmp_path / "absent").claims() == Claims()
    assert SysfsHardware("no\0name").claims() == Claims()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _endless_file(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"PF2ABCDE\n")
        file.truncate(1 << 30)


@pytest.mark.parametrize(
    "make",
    [
        _pipe,
        _endless_device,
        _endless_file,
        Path.mkdir,
        lambda path: path.symlink_to("absent"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.write_bytes(b"PF2\xff"),
        lambda path: path.write_bytes(b"PF2ABCDE".ljust(reading.MAX_FILE_BYTES + 1) + b"and more"),
    ],
    ids=["pipe", "device", "endless", "directory", "dangling", "loop", "not-utf8", "long"],
)
def test_what_cannot_be_read_is_left_out_and_nothing_else(make: Callable[[Path], None], tmp_path: Path) -> None:
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    make(dmi / "product_serial")
    (dmi / "board_serial").write_text("B-77-1\n", encoding="utf-8")
    assert SysfsHardware(tmp_path).claims() == Claims(board_serial="B-77-1")


def test_a_file_that_only_root_may_read_is_left_out_for_another(tmp_path: Path) -> None:
    """As /sys/class/dmi/id/product_uuid is, with mode 0400. Run as root, the test reads as somebody else."""
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "board_serial").write_text("B-77-1\n", encoding="utf-8")
    (dmi / "board_serial").chmod(0)
    (dmi / "chassis_serial").write_text("C-77-1\n", encoding="utf-8")
    tmp_path.chmod(0o755)
    program = (
        "import os, sys\n"
        "from bcd.adapters.hardware.sysfs import SysfsHardware\n"
        "os.chdir(sys.argv[1])\n"
        "os.geteuid() == 0 and os.setuid(65534)\n"
        "print(SysfsHardware('.').claims().board_serial, SysfsHardware('.').claims().chassis_serial)\n"
    )
    assert run_python(program, str(tmp_path)).stdout == " C-77-1\n"


def test_what_is_no_regular_file_is_not_even_opened(tmp_path: Path) -> None:
    """Opening a device rewinds a tape, resets a serial line, starts a watchdog."""
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    os.mkfifo(dmi / "product_serial")
    (dmi / "board_serial").write_text("B-77-1\n", encoding="utf-8")
    program = (
        "import os\n"
        "from bcd.adapters.hardware.sysfs import SysfsHardware\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, arguments: event == 'open' and opened.append(arguments[0]))\n"
        "SysfsHardware(sys.argv[1]).claims()\n"
        "print(*(os.path.basename(path) for path in opened))\n"
    )
    assert run_python(program, str(tmp_path)).stdout == "board_serial\n"
