"""The port `Hardware`: one contract over both adapters, and over wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bcd.adapters.hardware.machine_file import MachineFile
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.domain.model.claims import MAX_CLAIMS_OF_A_KIND, Claims, only_real
from bcd.ports.hardware import Hardware
from tests.contract.ports.hardware_files import fake_port

UUID = "8f2a4c1e-77b0-4d3e-9a51-0c6de5b1f2a3"
BOOT_ID = "1d5e9c72-40aa-4b6f-8f03-b2a9c1d7e6f4"
MACHINE = Claims(
    product_uuid=UUID,
    product_serial="PF2ABCDE",
    board_serial="/7XK3PQ2/CNPE10039/",
    chassis_serial="C-77-1",
    macs=("02:fc:00:00:00:01", "3c:ec:ef:12:34:56"),
    gpu_uuids=(f"gpu-{BOOT_ID}", f"gpu-{UUID}"),
    hostname="rack-7.example",
    boot_id=BOOT_ID,
)

# --- The contract. A `Build` makes the implementation under test of a machine that holds these raw values.

Build = Callable[[Claims], Hardware]


class HardwareContract:
    """Every public function is a check that any implementation of the port passes."""

    @staticmethod
    def real_values_are_claimed(build: Build) -> None:
        assert build(MACHINE).claims() == MACHINE

    @staticmethod
    def a_machine_without_values_claims_nothing(build: Build) -> None:
        assert build(Claims()).claims() == Claims()

    @staticmethod
    def placeholders_are_left_out(build: Build) -> None:
        raw = Claims(
            product_uuid="03000200-0400-0500-0006-000700080009",
            product_serial="To Be Filled By O.E.M.",
            board_serial="Default string",
            chassis_serial="0000000",
            gpu_uuids=("GPU-????????-????-????-????-????????????",),
            hostname="(none)",
            boot_id="Not Settable",
        )
        assert build(raw).claims() == Claims()

    @staticmethod
    def b50_only_real_macs_are_claimed(build: Build) -> None:
        macs = ("ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "3c:ec:ef:12:34:56", "01:00:5e:00:00:01")
        assert build(Claims(macs=macs)).claims() == Claims(macs=("3c:ec:ef:12:34:56",))

    @staticmethod
    def b50_several_values_are_sorted_unique_and_in_lower_case(build: Build) -> None:
        raw = Claims(
            macs=("3C:EC:EF:12:34:57", "3c:ec:ef:12:34:56", "3c:ec:ef:12:34:57"),
            gpu_uuids=(f"GPU-{UUID.upper()}", f"GPU-{BOOT_ID}", f"GPU-{UUID}"),
        )
        claims = build(raw).claims()
        assert claims.macs == ("3c:ec:ef:12:34:56", "3c:ec:ef:12:34:57")
        assert claims.gpu_uuids == (f"gpu-{BOOT_ID}", f"gpu-{UUID}")

    @staticmethod
    def at_most_64_of_a_kind_are_claimed(build: Build) -> None:
        macs = tuple(f"3c:ec:ef:00:{number:02x}:01" for number in range(MAX_CLAIMS_OF_A_KIND + 6))
        gpus = tuple(f"gpu-{number:08x}{UUID[8:]}" for number in range(MAX_CLAIMS_OF_A_KIND + 6))
        claims = build(Claims(macs=macs, gpu_uuids=gpus)).claims()
        assert claims.macs == macs[:MAX_CLAIMS_OF_A_KIND]
        assert claims.gpu_uuids == gpus[:MAX_CLAIMS_OF_A_KIND]

    @staticmethod
    def what_does_not_fit_is_left_out_whole(build: Build) -> None:
        raw = Claims(product_serial="AB" * 128 + "C", board_serial="A\x1b[31mB", chassis_serial="AB" * 128)
        assert build(raw).claims() == Claims(chassis_serial="AB" * 128)

    @staticmethod
    def b51_a_new_hostname_changes_the_hostname_alone(build: Build) -> None:
        before = build(MACHINE).claims()
        after = build(replace(MACHINE, hostname="rack-8")).claims()
        assert before != after
        assert after == replace(before, hostname="rack-8")

    @staticmethod
    def asking_again_gives_the_same(build: Build) -> None:
        hardware = build(MACHINE)
        assert hardware.claims() == hardware.claims()


CHECKS = {name: check for name, check in vars(HardwareContract).items() if not name.startswith("_")}


def sysfs_of(folder: Path) -> Build:
    """The files of such a machine; its drivers know the MACs."""

    def build(raw: Claims) -> Hardware:
        root = folder / str(len(list(folder.iterdir())))
        files = {
            "sys/class/dmi/id/product_uuid": raw.product_uuid,
            "sys/class/dmi/id/product_serial": raw.product_serial,
            "sys/class/dmi/id/board_serial": raw.board_serial,
            "sys/class/dmi/id/chassis_serial": raw.chassis_serial,
            "proc/sys/kernel/hostname": raw.hostname,
            "proc/sys/kernel/random/boot_id": raw.boot_id,
        }
        for number, gpu in enumerate(raw.gpu_uuids):
            files[f"proc/driver/nvidia/gpus/0000:{number:02x}:00.0/information"] = (
                f"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 34\nGPU UUID: \t {gpu}\nVideo BIOS: \t 96.00.30.00.01"
            )
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{text}\n", encoding="utf-8")
        permanent = {f"eth{number}": mac for number, mac in enumerate(raw.macs)}
        for port in permanent:
            fake_port(root, port, address="00:00:00:00:00:00")
        return SysfsHardware(root, permanent.__getitem__)

    return build


def machine_file_of(folder: Path) -> Build:
    def build(raw: Claims) -> Hardware:
        path = folder / f"{len(list(folder.iterdir()))}.json"
        fields = {
            "productUuid": raw.product_uuid,
            "productSerial": raw.product_serial,
            "boardSerial": raw.board_serial,
            "chassisSerial": raw.chassis_serial,
            "macs": raw.macs,
            "gpuUuids": raw.gpu_uuids,
            "hostname": raw.hostname,
            "bootId": raw.boot_id,
        }
        path.write_text(json.dumps({key: value for key, value in fields.items() if value}), encoding="utf-8")
        return MachineFile(path)

    return build


@pytest.mark.parametrize("adapter", [sysfs_of, machine_file_of])
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_every_adapter_meets_the_contract(
    check: Callable[[Build], None], adapter: Callable[[Path], Build], tmp_path: Path
) -> None:
    check(adapter(tmp_path))


class Wrong:
    """Claims `change` of what it should."""

    def __init__(self, change: Callable[[Claims], Claims], raw: Claims) -> None:
        self._change = change
        self._raw = raw

    def claims(self) -> Claims:
        return self._change(self._raw)


@pytest.mark.parametrize(
    ("change", "caught_by"),
    [
        (lambda raw: raw, "placeholders_are_left_out"),
        (lambda raw: raw, "what_does_not_fit_is_left_out_whole"),
        (lambda raw: Claims(), "real_values_are_claimed"),
        (lambda raw: replace(only_real(raw), hostname="rack-7.example"), "a_machine_without_values_claims_nothing"),
        (lambda raw: replace(only_real(raw), macs=raw.macs), "b50_only_real_macs_are_claimed"),
        (
            lambda raw: replace(only_real(raw), macs=only_real(raw).macs[::-1]),
            "b50_several_values_are_sorted_unique_and_in_lower_case",
        ),
        (lambda raw: replace(only_real(raw), gpu_uuids=raw.gpu_uuids), "at_most_64_of_a_kind_are_claimed"),
        (
            lambda raw: replace(only_real(raw), chassis_serial=raw.hostname),
            "b51_a_new_hostname_changes_the_hostname_alone",
        ),
        (
            lambda raw: replace(only_real(raw), boot_id=Path("/proc/sys/kernel/random/uuid").read_text("utf-8")),
            "asking_again_gives_the_same",
        ),
    ],
)
def test_a_wrong_implementation_fails_the_contract(change: Callable[[Claims], Claims], caught_by: str) -> None:
    failed = set()
    for name, check in CHECKS.items():
        try:
            check(lambda raw: Wrong(change, raw))
        except AssertionError:
            failed.add(name)
    assert caught_by in failed
