"""The port `Hardware`: one contract over both adapters, and each adapter against what only it can meet."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bcd.adapters.hardware import machine_file, reading
from bcd.adapters.hardware.ethtool import ask_driver
from bcd.adapters.hardware.machine_file import DEFAULT_MACHINE, MachineFile
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.domain.model.claims import MAX_CLAIMS_OF_A_KIND, Claims, only_real
from bcd.domain.model.failures import FixConfiguration
from bcd.ports.hardware import Hardware

REPOSITORY = Path(__file__).parents[3]
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


def fake_device(root: Path, name: str, **files: str) -> Path:
    """A network device without a device below it."""
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    for file, text in ({"type": "1", "addr_assign_type": "0"} | files).items():
        (folder / file).write_text(f"{text}\n", encoding="utf-8")
    return folder


def fake_port(root: Path, name: str, **files: str) -> Path:
    """A network device with one."""
    folder = fake_device(root, name, **files)
    below = root / "sys/devices" / name
    below.mkdir(parents=True)
    (folder / "device").symlink_to(below)
    return folder


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


# --- SysfsHardware on files that stand for a kernel


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


# --- SysfsHardware on the kernel that runs the tests


def run_python(program: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [
            *before,
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n{program}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: apt-get install {package}")


def unshared(*namespaces: str, trying: tuple[str, ...]) -> tuple[str, ...]:
    """The start of a command in namespaces of its own. Skips only when somebody not root is refused them."""
    need("unshare", "util-linux")
    command = ("unshare", *namespaces, *(() if os.geteuid() == 0 else ("--user", "--map-root-user")))
    tried = subprocess.run([*command, *trying], capture_output=True, text=True, timeout=60, check=False)
    if os.geteuid() != 0 and tried.returncode != 0:
        pytest.skip(f"namespaces need root here: {tried.stderr.strip()}")
    return command


def test_the_hostname_and_the_boot_id_are_the_kernels() -> None:
    claims = SysfsHardware().claims()
    assert claims.hostname in (os.uname().nodename, "")
    assert claims.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()


def test_b50_the_macs_are_those_that_ip_calls_permanent() -> None:
    """Field report B50, on the devices of this machine: `ip` asks by another way, netlink."""
    need("ip", "iproute2")
    links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True, timeout=60).stdout)
    macs = tuple(
        link.get("permaddr", link["address"])
        for link in links
        if link["link_type"] == "ether" and (Path("/sys/class/net") / link["ifname"] / "device").exists()
    )
    assert SysfsHardware().claims().macs == only_real(Claims(macs=macs)).macs


def test_the_driver_is_asked_by_ioctl_and_a_device_that_is_not_there_is_no_failure() -> None:
    assert ask_driver("lo") == "00:00:00:00:00:00"
    assert ask_driver("absent") == ""
    assert ask_driver("much-too-long-for-a-device") == ""


def test_b50_real_virtual_devices_claim_nothing() -> None:
    """Field report B50: a bridge with two ports, veth, and of bond, macvlan and dummy what this kernel has, made in a
    network namespace of their own. All have an address, up and running, and none is a machine's."""
    need("ip", "iproute2")
    unshare = unshared("--net", "--mount", trying=("mount", "-t", "sysfs", "sysfs", "/sys"))
    program = """
import json, os, subprocess
from bcd.adapters.hardware.ethtool import ask_driver
from bcd.adapters.hardware.sysfs import SysfsHardware

def ip(*arguments, may_lack=False):
    done = subprocess.run(["ip", "link", *arguments], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 or (may_lack and "Unknown device type" in done.stderr), done.stderr
    return done.returncode == 0

ip("add", "veth0", "type", "veth", "peer", "name", "veth1")
ip("add", "br0", "type", "bridge")
ip("set", "veth0", "master", "br0")
ip("set", "br0", "up")
ip("add", "macvlan0", "link", "veth1", "type", "macvlan", may_lack=True)
ip("add", "dummy0", "type", "dummy", may_lack=True)
if ip("add", "bond0", "type", "bond", may_lack=True):
    for number in range(2):
        ip("add", f"port{number}", "type", "veth", "peer", "name", f"far{number}")
        ip("set", f"port{number}", "master", "bond0")
subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
names = sorted(os.listdir("/sys/class/net"))
print(json.dumps({"names": names, "macs": SysfsHardware().claims().macs, "drivers": [ask_driver(n) for n in names]}))
"""
    seen = json.loads(run_python(program, before=unshare).stdout)
    assert {"br0", "veth0", "veth1"} <= set(seen["names"])
    # The kernel itself answered for each, and knows no permanent address of any.
    assert set(seen["drivers"]) <= {"00:00:00:00:00:00", ""}
    assert "00:00:00:00:00:00" in seen["drivers"]
    assert seen["macs"] == []


def test_b51_a_renamed_host_changes_the_hostname_alone() -> None:
    """Field report B51, by the kernel's own name of the host, in a namespace of its own."""
    program = """
import json, socket
from dataclasses import astuple, replace
from bcd.adapters.hardware.sysfs import SysfsHardware
before = SysfsHardware().claims()
socket.sethostname("renamed-b51")
after = SysfsHardware().claims()
print(json.dumps([after.hostname, astuple(after) == astuple(replace(before, hostname="renamed-b51"))]))
"""
    unshare = unshared("--uts", trying=("true",))
    assert json.loads(run_python(program, before=unshare).stdout) == ["renamed-b51", True]


PROCESS = re.compile(r"\b(fork|vfork|clone|clone3|execve|execveat)\((.*)")


def started_processes(program: str, tmp_path: Path) -> list[str]:
    """The calls that made another process or program, threads not counted, after Python itself was started."""
    log = tmp_path / "strace.log"
    run_python(program, before=("strace", "-f", "-e", "trace=process", "-o", str(log)))
    calls = [found for line in log.read_text("utf-8").splitlines() if (found := PROCESS.search(line))]
    assert calls[0][1] == "execve"
    return [call[0] for call in calls[1:] if "CLONE_THREAD" not in call[2]]


def test_b60_asking_for_claims_starts_no_process(tmp_path: Path) -> None:
    """Field report B60: a fork in a process with live gRPC channels hangs, so there is none."""
    need("strace", "strace")
    ask = "from bcd.adapters.hardware.sysfs import SysfsHardware\nassert SysfsHardware().claims().boot_id\n"
    assert started_processes(ask, tmp_path) == []
    # The same eyes see a fork, and pass over a thread.
    assert len(started_processes("import os\npid = os.fork()\npid and os.waitpid(pid, 0)\n", tmp_path)) == 1
    thread = "import threading\nthread = threading.Thread(target=print)\nthread.start()\nthread.join()\n"
    assert started_processes(thread, tmp_path) == []


# --- MachineFile


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
