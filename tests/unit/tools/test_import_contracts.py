"""Each import contract finds the violation it is there for, in a tree with nothing but the rooms."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

NODE_ROOMS = [
    "adapters/fs",
    "adapters/grpc",
    "adapters/hardware",
    "adapters/tpmsim",
    "app",
    "cli",
    "domain/lifecycle",
    "domain/model",
]
NODE_ROOMS += ["ports", "protocol/pb", "wiring"]
CONTROLPLANE_ROOMS = [f"controlplane/{room}" for room in ("adapters", "app", "cli", "domain", "ports", "wiring")]
MODULES = ["entry", "ports/clock", "ports/entropy", "ports/keys", "protocol/pb/join_pb2"]
MODULES += ["adapters/hardware/machine_file", "wiring/container", "wiring/fakehw"]

ALLOWED = [
    ("entry", "bcd.cli, bcd.controlplane.cli"),
    ("cli", "bcd.wiring, bcd.adapters.fs, bcd.app"),
    ("wiring.fakehw", "bcd.wiring.container, bcd.adapters.tpmsim, dependency_injector.providers"),
    ("wiring", "dependency_injector.containers"),
    ("app", "bcd.domain.lifecycle"),
    ("domain.lifecycle", "bcd.ports.keys, bcd.protocol"),
    ("protocol", "bcd.domain.model, bcd.protocol.pb.join_pb2"),
    ("adapters.grpc", "bcd.protocol.pb.join_pb2, bcd.ports.keys"),
    ("domain.model", "datetime, dataclasses, hashlib"),
    ("controlplane.app", "bcd.domain.model, bcd.protocol, bcd.ports.clock, bcd.ports.entropy"),
    ("controlplane.adapters", "bcd.protocol.pb.join_pb2"),
    ("controlplane.wiring", "dependency_injector.containers, bcd.controlplane.adapters"),
]

FORBIDDEN = [
    *(
        (importer, imported, "Imports point one way, and the node never imports the control plane")
        for importer, imported in [
            ("wiring", "bcd.cli"),
            ("adapters.fs", "bcd.wiring"),
            ("app", "bcd.adapters.fs"),
            ("adapters.fs", "bcd.app"),
            ("domain.lifecycle", "bcd.app"),
            ("ports.clock", "bcd.domain.lifecycle"),
            ("ports.clock", "bcd.protocol"),
            ("protocol", "bcd.ports.clock"),
            ("domain.model", "bcd.ports.clock"),
            ("app", "bcd.controlplane"),
            ("protocol", "bcd.controlplane.domain"),
            ("cli", "bcd.entry"),
        ]
    ),
    *(
        (importer, imported, "Imports point one way in the control plane")
        for importer, imported in [
            ("controlplane.app", "bcd.controlplane.wiring"),
            ("controlplane.app", "bcd.controlplane.adapters"),
            ("controlplane.domain", "bcd.controlplane.app"),
        ]
    ),
    *(
        ("controlplane.app", imported, "The control plane uses only domain.model, protocol and the ports clock")
        for imported in [
            "bcd.ports.keys",
            "bcd.domain.lifecycle",
            "bcd.adapters.fs",
            "bcd.app",
            "bcd.cli",
            "bcd.wiring",
        ]
    ),
    ("adapters.grpc", "bcd.adapters.fs", "Adapters are independent of each other"),
    ("app", "dependency_injector.providers", "dependency_injector only in the wirings"),
    ("controlplane.app", "dependency_injector.providers", "dependency_injector only in the wirings"),
    ("app", "bcd.protocol.pb.join_pb2", "Generated messages only in protocol"),
    ("adapters.fs", "bcd.protocol.pb.join_pb2", "Generated messages only in protocol"),
    ("controlplane.app", "bcd.protocol.pb.join_pb2", "Generated messages only in protocol"),
    *(
        ("domain.model", imported, "domain.model is values and rules")
        for imported in ["os.path", "socket", "time", "random", "subprocess", "cryptography.x509", "google.protobuf"]
    ),
    ("wiring.container", "bcd.wiring.fakehw", "wiring.container never reaches the fake hardware"),
    ("wiring.container", "bcd.adapters.hardware.machine_file", "wiring.container never reaches the fake hardware"),
    ("wiring.container", "bcd.adapters.tpmsim", "wiring.container never reaches the fake hardware"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for room in NODE_ROOMS + CONTROLPLANE_ROOMS:
        (tmp_path / "bcd" / room).mkdir(parents=True)
    for folder in [tmp_path / "bcd", *(tmp_path / "bcd").rglob("*")]:
        (folder / "__init__.py").touch()
    for module in MODULES:
        (tmp_path / "bcd" / f"{module}.py").touch()
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def _plant(tree: Path, importer: str, imported: str) -> None:
    path = tree / "bcd" / importer.replace(".", "/")
    with (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).open("a", encoding="utf-8") as module:
        module.write(f"import {imported}\n")


def _broken_contracts(tree: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "import importlinter.cli as c; c.lint_imports_command()", "--no-logo", "--no-cache"],
        cwd=tree,
        # Wide enough that no contract's name is broken over two lines.
        env={**os.environ, "COLUMNS": "400", "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    assert (done.returncode != 0) == (" 0 broken" not in done.stdout)
    return re.findall(r"^(.+) BROKEN", done.stdout, flags=re.MULTILINE)


def test_what_the_architecture_allows_breaks_no_contract(tree: Path) -> None:
    for importer, imported in ALLOWED:
        _plant(tree, importer, imported)
    assert _broken_contracts(tree) == []


@pytest.mark.parametrize(("importer", "imported", "contract"), FORBIDDEN)
def test_a_planted_violation_is_found(tree: Path, importer: str, imported: str, contract: str) -> None:
    _plant(tree, importer, imported)
    assert [name for name in _broken_contracts(tree) if name.startswith(contract)]


def test_a_rule_that_reaches_the_clock_through_a_detour_is_found(tree: Path) -> None:
    _plant(tree, "domain.model", "bcd.detour")
    (tree / "bcd" / "detour.py").write_text("import time\n", encoding="utf-8")
    assert [name for name in _broken_contracts(tree) if name.startswith("domain.model is values and rules")]
