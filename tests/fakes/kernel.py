"""A Linux kernel with a TPM in a virtual machine, which runs one of our programs over the files of this machine.

The processor is emulated, the TPM is a software TPM of this boot alone, the guest sees this machine's files as they
are and changes a copy of them in memory. It has no network but its own loopback."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.commands import Ran
from tools import guest_kernel

REPOSITORY = Path(__file__).resolve().parents[2]
QEMU = "qemu-system-x86_64"
# From the emulator's start to the first process, and from its last to the end, on a machine that has others to do.
BOOT_S = 180.0
READY_S = 30.0
_MEMORY_MIB = 1024
# In the initial file system, which holds busybox, the modules and this. Whatever fails ends init, and that the machine.
_INIT = """#!/bin/busybox sh
set -e
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
for module in {modules}; do insmod /modules/$module; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro machine /machine
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none result /result
mount -t tmpfs changes /changes
mkdir /changes/upper /changes/work
mount -t overlay -o lowerdir=/machine,upperdir=/changes/upper,workdir=/changes/work overlay /root
mount -t devtmpfs dev /root/dev
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t tmpfs run /root/run
ifconfig lo 127.0.0.1 up
status=0
chroot /root {command} </dev/null >/result/out 2>/result/err || status=$?
echo $status >/result/status
poweroff -f
"""
_FOLDERS = ("bin", "modules", "dev", "proc", "machine", "result", "changes", "root")


def missing() -> str:
    """Why no guest can be booted here; empty when one can."""
    if platform.machine() != "x86_64":
        return f"the guest runs this machine's own programs, and is an x86-64: this is {platform.machine()}"
    for part, package in ((QEMU, "qemu-system-x86"), ("busybox", "busybox-static"), ("swtpm", "swtpm")):
        if shutil.which(part) is None:
            return f"{part} is missing: apt-get install {package}"
    return "" if guest_kernel.found() else f"no kernel: make test takes one, or {guest_kernel.INSTALL_LINE}"


@dataclass(frozen=True)
class Booted:
    """How the program in the guest ended, and what the guest's console showed."""

    ran: Ran
    console: str


def boot(home: Path, state: Path, words: Sequence[str], *, bound_s: float, tpm: str = "tpm-tis") -> Booted:
    """Runs `words` as root in the repository's folder of a guest whose TPM has a copy of `state`.

    `home` is a new folder whose path is short enough for a socket's. AssertionError if the guest does not end in time;
    a program that runs longer than `bound_s` ends with 124."""
    kernel = guest_kernel.found()
    assert kernel is not None, missing()
    result = home / "result"
    result.mkdir(parents=True)
    initial = _initial(home, kernel, _bounded(words, bound_s))
    console = home / "console"
    with _tpm(home, state) as channel:
        machine = [
            *(QEMU, "-accel", "tcg", "-machine", "q35", "-cpu", "max", "-m", str(_MEMORY_MIB)),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", f"file:{console}"),
            *("-kernel", str(kernel.image), "-initrd", str(initial)),
            # A panic is a restart at once, which -no-reboot makes the end.
            *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
            *("-chardev", f"socket,id=tpm,path={channel}", "-tpmdev", "emulator,id=tpm0,chardev=tpm"),
            *("-device", f"{tpm},tpmdev=tpm0"),
            *_share("machine", Path("/"), "readonly=on,multidevs=remap"),
            *_share("result", result, "multidevs=remap"),
        ]
        with (home / "qemu").open("wb") as said:
            process = subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            process.wait(timeout=bound_s + BOOT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
    shown = _text(console)
    status = _text(result / "status").strip()
    if not status:
        raise AssertionError(f"the guest did not end well\n{_text(home / 'qemu')}\n{shown}\n{_text(result / 'err')}")
    return Booted(Ran(int(status), _text(result / "out"), _text(result / "err")), shown)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _bounded(words: Sequence[str], bound_s: float) -> str:
    """The command line that ends in time, with nothing of this process's environment."""
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    clean = ("/usr/bin/env", "-i", "-C", str(REPOSITORY), f"PATH={path}", "HOME=/root", "LANG=C.UTF-8")
    return shlex.join([*clean, "timeout", "-k", "5", str(int(bound_s)), *words])


def _share(tag: str, path: Path, more: str) -> tuple[str, ...]:
    shared = f"local,id={tag},path={path},security_model=none,{more}"
    return ("-fsdev", shared, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}")


def _initial(home: Path, kernel: guest_kernel.Kernel, command: str) -> Path:
    """The initial file system, a cpio archive."""
    tree = home / "initial"
    for folder in _FOLDERS:
        (tree / folder).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, tree / "bin" / "busybox")
    # None, for a busybox that is linked statically.
    linked = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False)
    for library in re.findall(r"/\S+", linked.stdout):
        (tree / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, tree / library.lstrip("/"))
    names = [path.name.removesuffix(".xz") for path in kernel.modules]
    for name, path in zip(names, kernel.modules, strict=True):
        (tree / "modules" / name).write_bytes(guest_kernel.read_module(path))
    init = tree / "init"
    init.write_text(_INIT.format(modules=" ".join(names), command=command))
    init.chmod(0o755)
    entries = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    packed = subprocess.run(
        [busybox, "cpio", "-o", "-H", "newc"], cwd=tree, input=entries.encode(), capture_output=True, check=True
    )
    archive = home / "initial.cpio"
    archive.write_bytes(packed.stdout)
    return archive


@contextmanager
def _tpm(home: Path, state: Path) -> Iterator[Path]:
    """A software TPM that the emulator starts, stops and ends."""
    own = home / "tpm"
    shutil.copytree(state, own)
    channel = home / "tpm.ctrl"
    process = subprocess.Popen(
        ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={own}", "--ctrl", f"type=unixio,path={channel}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
    )
    pause = threading.Event()
    try:
        for _ in range(int(READY_S / 0.02)):
            if channel.exists():
                break
            assert process.poll() is None, "swtpm ended"
            pause.wait(0.02)
        yield channel
    finally:
        process.terminate()
        process.wait(timeout=READY_S)
