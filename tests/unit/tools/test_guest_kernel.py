"""Which kernel serves a virtual machine: the newest one whose modules are all there, in an order that loads."""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import guest_kernel

PLAIN = {
    "drivers/virtio/virtio_pci.ko": "virtio-ring",
    "drivers/virtio/virtio_ring.ko": "",
    "net/9p/9pnet.ko": "",
    "net/9p/9pnet_virtio.ko": "9pnet,virtio_ring",
    "fs/9p/9p.ko": "9pnet",
    "fs/overlayfs/overlay.ko": "",
}


def module(depends: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"


def kernel(tree: Path, version: str, modules: Mapping[str, str], builtin: str = "", where: str = "lib/modules") -> Path:
    folder = tree / where / version
    for name, depends in modules.items():
        path = folder / "kernel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = module(depends)
        path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "modules.builtin").write_text(builtin)
    (tree / "boot").mkdir(exist_ok=True)
    image = tree / "boot" / f"vmlinuz-{version}"
    image.write_bytes(b"kernel")
    return image


def order(found: guest_kernel.Kernel | None) -> list[str]:
    assert found is not None
    return [path.name.split(".")[0] for path in found.modules]


def test_each_module_comes_after_what_it_depends_on(tmp_path: Path) -> None:
    kernel(tmp_path, "6.1.0-9-amd64", PLAIN)
    assert order(guest_kernel.in_tree(tmp_path)) == [
        "virtio_ring",
        "virtio_pci",
        "9pnet",
        "9pnet_virtio",
        "9p",
        "overlay",
    ]


def test_the_newest_by_number_is_taken(tmp_path: Path) -> None:
    for version in ("6.1.0-9-amd64", "6.1.0-57-amd64", "5.10.0-99-amd64"):
        kernel(tmp_path, version, PLAIN)
    found = guest_kernel.in_tree(tmp_path)
    assert found is not None
    assert found.image.name == "vmlinuz-6.1.0-57-amd64"
    assert {path.parts[len(tmp_path.parts) + 2] for path in found.modules} == {"6.1.0-57-amd64"}


def test_modules_may_be_compressed_and_lie_under_usr(tmp_path: Path) -> None:
    kernel(tmp_path, "6.12", {f"{name}.xz": depends for name, depends in PLAIN.items()}, where="usr/lib/modules")
    found = guest_kernel.in_tree(tmp_path)
    assert order(found)[0] == "virtio_ring"
    assert found is not None
    assert guest_kernel.read_module(found.modules[0]) == module("")


def test_what_is_built_in_needs_no_module(tmp_path: Path) -> None:
    some = {name: depends for name, depends in PLAIN.items() if "virtio_ring" not in name and "overlay" not in name}
    builtin = "kernel/drivers/virtio/virtio_ring.ko\nkernel/fs/overlayfs/overlay.ko\n"
    kernel(tmp_path, "6.1", some, builtin)
    assert order(guest_kernel.in_tree(tmp_path)) == ["virtio_pci", "9pnet", "9pnet_virtio", "9p"]


@pytest.mark.parametrize("name", PLAIN)
def test_a_kernel_that_lacks_a_module_does_not_serve(name: str, tmp_path: Path) -> None:
    kernel(tmp_path, "6.1", {other: depends for other, depends in PLAIN.items() if other != name})
    assert guest_kernel.in_tree(tmp_path) is None


def test_an_older_one_serves_when_the_newest_does_not(tmp_path: Path) -> None:
    older = kernel(tmp_path, "6.1", PLAIN)
    kernel(tmp_path, "6.2", {})
    found = guest_kernel.in_tree(tmp_path)
    assert found is not None
    assert found.image == older


def test_without_its_modules_a_kernel_does_not_serve(tmp_path: Path) -> None:
    assert guest_kernel.in_tree(tmp_path) is None
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.1").touch()
    assert guest_kernel.in_tree(tmp_path) is None


def test_an_image_that_cannot_be_read_does_not_serve(tmp_path: Path) -> None:
    """As Ubuntu's, by anybody but root: a folder, here, which root cannot read either."""
    image = kernel(tmp_path, "6.1", PLAIN)
    image.unlink()
    image.mkdir()
    assert guest_kernel.in_tree(tmp_path) is None
