"""`SysfsHardware` on the kernel that runs the tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bcd.adapters.hardware.ethtool import ask_driver
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.domain.model.claims import Claims, only_real
from tests.contract.ports.hardware_files import run_python


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
