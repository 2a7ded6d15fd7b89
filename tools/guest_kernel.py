"""The Linux kernel that tests boot in a virtual machine, and how this machine gets one without installing it."""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Taken out of Debian's package: a tenth of what an installed one needs, and no boot loader hears of it.
FOLDER = ROOT / ".guest-kernel"
PACKAGE = "linux-image-amd64"
INSTALL_LINE = f"a kernel for a virtual machine: apt-get install {PACKAGE}"
# What such a guest needs beyond a TPM's drivers, which Debian builds in: its files come over 9p, changes go to memory.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_PARTS = re.compile(
    r"(usr/)?(boot/vmlinuz-[^/]+|lib/modules/[^/]+/"
    r"(modules\.builtin|kernel/(drivers/virtio|net/9p|fs/(9p|netfs|fscache|overlayfs))/.*))"
)
_APT_S = 600


@dataclass(frozen=True)
class Kernel:
    image: Path
    # In the order in which they can be loaded.
    modules: tuple[Path, ...]


def found() -> Kernel | None:
    """A kernel that serves: the one `fetch` took, or one that is installed."""
    return in_tree(FOLDER) or in_tree(Path("/"))


def in_tree(tree: Path) -> Kernel | None:
    """The newest kernel below `tree`/boot whose modules are there, if it can be read."""
    for image in sorted(tree.glob("boot/vmlinuz-*"), key=_by_number, reverse=True):
        version = image.name.removeprefix("vmlinuz-")
        for folder in (tree / "lib/modules" / version, tree / "usr/lib/modules" / version):
            modules = _in_order(folder)
            if modules and _readable(image):
                return Kernel(image, modules)
    return None


def read_module(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def fetch(folder: Path, who: str) -> bool:
    """Takes the kernel out of Debian's package into `folder`, said in one line; whether it is there now."""
    print(f"{who}: taking a kernel for a guest out of {PACKAGE} (about 100 MB to load, 10 to keep)", flush=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as scratch:
        place = Path(scratch)
        # apt's own user writes the file.
        place.chmod(0o755)
        package = _download(place)
        if (
            package is None
            and subprocess.run(["apt-get", "-qq", "update"], check=False, timeout=_APT_S).returncode == 0
        ):
            package = _download(place)
        if package is None:
            print(f"{who}: apt-get download {PACKAGE} failed", flush=True)
            return False
        tree = place / "tree"
        _take_parts(package, tree)
        if in_tree(tree) is None:
            print(f"{who}: {package.name} has no kernel that serves", flush=True)
            return False
        shutil.rmtree(folder, ignore_errors=True)
        tree.rename(folder)
    return True


def _download(place: Path) -> Path | None:
    """The package with the files, which the one without a version depends on."""
    depends = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True, check=False)
    name = re.search(r"Depends: (linux-image-\S+)", depends.stdout)
    if name is None:
        return None
    subprocess.run(["apt-get", "-qq", "download", name[1]], cwd=place, capture_output=True, check=False, timeout=_APT_S)
    return next(place.glob("*.deb"), None)


def _take_parts(package: Path, tree: Path) -> None:
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for member in archive:
            name = member.name.removeprefix("./")
            content = archive.extractfile(member) if member.isfile() and _PARTS.fullmatch(name) else None
            if content is not None:
                target = tree / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def _in_order(folder: Path) -> tuple[Path, ...]:
    """`MODULES` and what they depend on, each after what it depends on; empty when one is missing."""
    try:
        builtin = {_name(Path(line)) for line in (folder / "modules.builtin").read_text(encoding="ascii").split()}
    except OSError:
        return ()
    there = {_name(path): path for path in folder.glob("kernel/**/*.ko*") if path.suffix in (".ko", ".xz")}
    order: list[Path] = []

    def add(name: str) -> bool:
        if name in builtin:
            return True
        path = there.get(name)
        if path is None:
            return False
        if path not in order:
            if not all(add(needed) for needed in _depends(read_module(path))):
                return False
            order.append(path)
        return True

    return tuple(order) if all(add(name) for name in MODULES) else ()


def _depends(module: bytes) -> Iterator[str]:
    said = re.search(rb"\0depends=([^\0]*)\0", module)
    if said is not None and said[1]:
        yield from said[1].decode("ascii").replace("-", "_").split(",")


def _name(path: Path) -> str:
    return path.name.split(".")[0].replace("-", "_")


def _by_number(image: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", image.name)]


def _readable(path: Path) -> bool:
    try:
        with path.open("rb"):
            return True
    except OSError:
        return False
