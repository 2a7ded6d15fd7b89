"""What the tests of `Hardware` share: files that stand for the kernel's, and a Python that starts afresh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


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
