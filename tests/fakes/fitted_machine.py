"""A machine with a software TPM, as its processes and its operator see it."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bcd.adapters.tpm.client import Key
from bcd.domain.model.datadir import PENDING
from bcd.domain.model.identity import Leaf
from bcd.protocol.files import identity_json, join_pending
from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.structures import Handle
from tests.fakes import commands, swtpm, tpm_proxy
from tests.fakes.commands import Ran
from tests.fakes.plane import Machine, Plane
from tests.fakes.swtpm import SwTpm
from tests.fakes.tpm_proxy import TpmProxy


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

    def start_join(self) -> "subprocess.Popen[bytes]":
        return self.machine.start("join", "--attestor", "tpm", env=self.env)

    @property
    def pending_csr(self) -> bytes:
        """The request of a join that is under way, DER."""
        return join_pending.decode((self.machine.data / PENDING).read_bytes()).csr

    @property
    def leaf(self) -> Leaf:
        return identity_json.decode((self.machine.data / "identity.json").read_bytes()).leaf

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
        return self.leaf.spiffe_id.node

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


@dataclass(frozen=True)
class OnSwTpm:
    """A machine whose processes see `tpm`, which nobody here wrote, through `proxy`."""

    fitted: FittedMachine
    tpm: SwTpm
    proxy: TpmProxy

    @property
    def ak_name(self) -> bytes:
        client = self.tpm.client()
        try:
            return names.name(client.load(Key(Handle.ENDORSEMENT, templates.AK)).public)
        finally:
            client.close()

    def disk_of(self, other: "OnSwTpm") -> "OnSwTpm":
        """That machine's disk, and what it says of itself, with this TPM."""
        return replace(self, fitted=replace(self.fitted, machine=other.fitted.machine))


@contextmanager
def on_swtpm(
    plane: Plane, state: Path | None = None, *, claims_of: Machine | None = None, keys_in_tpm: bool = True
) -> Iterator[OnSwTpm]:
    """A machine of its own with a TPM of its own, or with a copy of `state`. `claims_of`: it says of itself what that
    machine says."""
    # A Unix socket's path has room for 107 bytes, which a test's own directory may not leave.
    with (
        tempfile.TemporaryDirectory() as home,
        swtpm.running(Path(home) / "t", state) as tpm,
        tpm_proxy.between(tpm.path) as proxy,
    ):
        machine = plane.machine()
        if claims_of is not None:
            machine = SameClaims(plane, machine.name, machine.program, claims_of)
        yield OnSwTpm(FittedMachine(machine, proxy.env, keys_in_tpm), tpm, proxy)


@dataclass(frozen=True)
class SameClaims(Machine):
    """A machine that says of itself what another says."""

    other: Machine | None = None

    @property
    def env(self) -> dict[str, str]:
        assert self.other is not None
        return self.other.env
