"""A machine with a software TPM, as its processes and its operator see it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import commands
from tests.fakes.commands import Ran
from tests.fakes.plane import Machine, Plane


@dataclass(frozen=True)
class FittedMachine:
    """`tpm` is the environment that names the TPM; `keys_in_tpm`: node keys go into it, too."""

    machine: Machine
    tpm: dict[str, str]
    keys_in_tpm: bool = True

    @property
    def plane(self) -> Plane:
        return self.machine.plane

    @property
    def env(self) -> dict[str, str]:
        return {**self.tpm, "BCD_FAKEHW_TPM_KEYS": "1"} if self.keys_in_tpm else self.tpm

    def run(self, command: str, *words: str, stdin: bytes | int = b"") -> Ran:
        return self.machine.run(command, *words, stdin=stdin, env=self.env)

    def join(self, *words: str) -> Ran:
        return self.run("join", "--attestor", "tpm", *words)

    def identify(self) -> dict[str, Any]:
        where = ("--config", str(self.plane.config))
        done = commands.run("bcd-fakehw", "tpm", "identify", "--json", *where, env=self.env)
        assert done.status == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found

    def ek(self, kind: str = "rsa-2048") -> str:
        """What an operator names that endorsement key by."""
        [found] = [one["publicKeySha256"] for one in self.identify()["endorsementKeys"] if one["kind"] == kind]
        return str(found)

    def allowed(self, *words: str) -> "FittedMachine":
        self.plane.admin("ek", "allow", self.ek(), "--site", "lab", *words)
        return self

    def joined(self, *words: str) -> "FittedMachine":
        done = self.join(*words)
        assert done.status == 0, done.err
        return self

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").out)
        return found

    @property
    def id(self) -> str:
        found: str = json.loads((self.machine.data / "identity.json").read_text())["nodeId"]
        return found

    def row(self) -> dict[str, Any]:
        """What the control plane lists of its node."""
        rows: Any = self.plane.json("nodes", "list")
        [row] = [row for row in rows if row["id"] == self.id]
        found: dict[str, Any] = row
        return found


@dataclass(frozen=True)
class SimFile:
    """The file of bcd-fakehw's TPM, and what befalls it."""

    path: Path

    @property
    def env(self) -> dict[str, str]:
        return {"BCD_FAKEHW_TPM": f"sim:{self.path}"}

    def change(self, command: str, *words: str) -> None:
        done = commands.run("bcd-fakehw", "tpm", command, "--state", str(self.path), *words)
        assert done.status == 0, done.err


def manufactured(state: Path, authority: Path) -> SimFile:
    """A new one with certificates of the manufacturer in `authority`."""
    made = SimFile(state)
    made.change("manufacture", "--ca", str(authority))
    return made
