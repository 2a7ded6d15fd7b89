"""`.venv` from requirements.lock, made again only when what it was made from has changed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from tools import system_parts

ROOT = Path(__file__).resolve().parent.parent


def fingerprint(root: Path, python: str) -> dict[str, str]:
    """What a .venv depends on. Its scripts name their own place, so a copied tree needs a new one."""
    return {
        "lock": _sha256(root / "requirements.lock"),
        "project": _sha256(root / "pyproject.toml"),
        "python": python,
        "root": str(root),
    }


def needed(wanted: dict[str, str], stamp: dict[str, str]) -> tuple[bool, bool]:
    """(make the whole .venv, install the project into it) to get from what `stamp` says to `wanted`."""
    whole = any(stamp.get(key) != wanted[key] for key in ("lock", "python", "root"))
    return whole, whole or stamp.get("project") != wanted["project"]


def read_stamp(path: Path) -> dict[str, str]:
    """The stamp; empty when there is none or it cannot be read."""
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def main() -> int:
    venv = ROOT / ".venv"
    python = venv / "bin" / "python"
    stamp_path = venv / "stamp.json"
    wanted = fingerprint(ROOT, "{}.{}.{}".format(*sys.version_info[:3]))
    whole, project = needed(wanted, read_stamp(stamp_path) if python.exists() else {})
    if not project:
        return 0
    # No stamp while it is half made: an interrupted run starts over.
    stamp_path.unlink(missing_ok=True)
    if whole:
        if not _can_make_venv():
            return 1
        print(f"make venv: making .venv with Python {wanted['python']}; takes a minute the first time", flush=True)
        if not _run(sys.executable, "-m", "venv", "--clear", str(venv)):
            return _failed("python3 -m venv failed, see above")
        if not _pip(python, "--require-hashes", "-r", str(ROOT / "requirements.lock")):
            return _failed("pip could not install requirements.lock, see above; is the package index reachable?")
    if not _pip(python, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)):
        return _failed("pip could not install the project, see above")
    stamp_path.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    return 0


def _can_make_venv() -> bool:
    # Debian packs ensurepip apart from python3.
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if importlib.util.find_spec("ensurepip") is None and system_parts.can_install():
        system_parts.install([package], "make venv")
        importlib.invalidate_caches()
    if importlib.util.find_spec("ensurepip") is None:
        _failed(f"{sys.executable} cannot make a venv: apt-get install {package}")
        return False
    return True


def _pip(python: Path, *arguments: str) -> bool:
    return _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *arguments)


def _run(*command: str) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def _failed(why: str) -> int:
    print(f"make venv: {why}", file=sys.stderr)
    return 1


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
