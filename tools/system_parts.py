"""The programs that tests need from the system, and how a machine gets them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Debian keeps mkfs.ext4 and losetup where only root's PATH looks.
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Part:
    program: str
    package: str
    # Where a library lies that brings no program.
    file: str = ""

    def install_line(self) -> str:
        return f"{self.program}: apt-get install {self.package}"


PARTS = (
    Part("openssl", "openssl"),
    Part("strace", "strace"),
    Part("mkfs.ext4", "e2fsprogs"),
    Part("losetup", "mount"),
    Part("mount", "mount"),
    Part("unshare", "util-linux"),
    Part("setpriv", "util-linux"),
    Part("sqlite3", "sqlite3"),
    Part("faketime", "faketime"),
    Part("gdb", "gdb"),
    Part("gcore", "gdb"),
    Part("ip", "iproute2"),
    Part("swtpm", "swtpm"),
    Part("swtpm_setup", "swtpm-tools"),
    Part("tpm2_createprimary", "tpm2-tools"),
    Part("tpm2_pytss", "python3-tpm2-pytss", "/usr/lib/python3/dist-packages/tpm2_pytss/__init__.py"),
    Part("qemu-system-x86_64", "qemu-system-x86"),
    Part("busybox", "busybox-static"),
)


def search_path(path: str) -> str:
    """PATH as the suites get it: `path` and the system's own directories behind it."""
    have = path.split(os.pathsep) if path else []
    return os.pathsep.join([*have, *(entry for entry in SBIN if entry not in have)])


def missing(parts: Iterable[Part], path: str) -> list[Part]:
    return [part for part in parts if not _is_there(part, path)]


def _is_there(part: Part, path: str) -> bool:
    return Path(part.file).exists() if part.file else shutil.which(part.program, path=path) is not None


def is_debian(os_release: str) -> bool:
    """Whether the text of /etc/os-release is Debian's or that of something made from it."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").strip("\"'").split()]
    return "debian" in [name.strip("\"'") for name in names]


def can_install() -> bool:
    try:
        os_release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return False
    return os.geteuid() == 0 and is_debian(os_release) and shutil.which("apt-get") is not None


def install(packages: Iterable[str], who: str) -> None:
    """apt-get install, said in one line. What it could not install stays missing; the caller looks again."""
    wanted = sorted(set(packages))
    print(f"{who}: installing system packages (root on Debian): {' '.join(wanted)}", flush=True)
    _apt_get("update", who)
    # All at once is quicker; one by one, a package this release does not know keeps no other away.
    if not _apt_get("install", who, *wanted) and len(wanted) > 1:
        for package in wanted:
            _apt_get("install", who, package)


def _apt_get(verb: str, who: str, *packages: str) -> bool:
    flags = ["-y", "--no-install-recommends"] if verb == "install" else []
    done = subprocess.run(
        ["apt-get", "-qq", verb, *flags, *packages],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"{who}: apt-get {' '.join([verb, *packages])} failed:\n{done.stdout.strip()}", flush=True)
    return done.returncode == 0
