"""In the guest: bcd's own programs over the kernel's device."""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

from bcd.protocol.files import identity_json, node_key
from tests.e2e.tpm.guest_client import Found
from tests.fakes import commands, kernel_tpm
from tests.fakes.commands import Ran
from tests.fakes.node_process import NodeProcess, until
from tests.fakes.plane import Machine, Plane

CONFIG = Path("/run/config.toml")
# Twenty times what a program takes to start on an emulated processor, when nothing else runs.
PATIENCE_S = 120.0


def ran(done: Ran) -> dict[str, object]:
    return {"status": done.status, "out": done.out, "err": done.err}


def the_program_identifies() -> Found:
    before = kernel_tpm.bare()
    done = commands.run("bcd", "tpm", "identify", "--json", "--config", str(CONFIG), timeout_s=PATIENCE_S)
    return ran(done) | {"before": before, "after": kernel_tpm.bare()}


def served(home: Path) -> Plane:
    """The control plane that was made in `home` before the guest started, and lets this TPM in."""
    for path in (home, *home.rglob("*")):
        os.chown(path, 0, 0)
    plane = Plane(home, serve_words=())
    plane.serve()
    return plane


def a_machine_joins_by_its_tpm(plane: Plane) -> Found:
    before = kernel_tpm.bare()
    machine = _machine(plane)
    joined = commands.run(*machine.words("join", "--attestor", "tpm"), timeout_s=PATIENCE_S)
    pair = _pair(machine) if joined.status == 0 else {}
    return ran(joined) | {"before": before, "after": kernel_tpm.bare(), "pair": pair}


def its_node_renews_twice(plane: Plane) -> Found:
    """The operator asks for the renewals, as time alone would make the test one of how fast this machine is; a process
    hears that once in ten minutes, so the second is another's, which loads what the first one left."""
    machine = _machine(plane)
    node, pairs, ends = NodeProcess(machine), [], []
    for renewals in (1, 2):
        node.start()
        said(node, " session up ", 2 * renewals - 1)
        words = ("nodes", "renew-now", "--all", "--dir", str(plane.directory))
        assert commands.run("bcd-controlplane", *words, timeout_s=PATIENCE_S).status == 0
        said(node, " info renewed ", renewals)
        said(node, " session up ", 2 * renewals)
        pairs.append(_pair(machine))
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
        ends.append(node.ended(PATIENCE_S))
    return {"pairs": pairs, "ends": ends, "log": node.text}


def _machine(plane: Plane) -> Machine:
    return Machine(plane, "node", program="bcd")


def said(node: NodeProcess, words: str, times: int) -> None:
    until(lambda: node.text.count(words) >= times, lambda: f"{words!r} not {times} times: {node.text}", PATIENCE_S)


def _pair(machine: Machine) -> dict[str, Any]:
    """Where the node key is, a digest of what its file holds, and of the certificate, and the attestation key's name
    in that."""
    key = (machine.data / "node.key").read_bytes()
    identity = (machine.data / "identity.json").read_bytes()
    where = "TPM" if isinstance(node_key.decode(key), node_key.TpmRecord) else "file"
    leaf = identity_json.decode(identity).leaf
    digests = {"key": hashlib.sha256(key).hexdigest(), "leaf": hashlib.sha256(leaf.der).hexdigest()}
    return {"where": where, "ak": (leaf.ak_name or b"").hex()} | digests
