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
# Five times what a renewal takes on an emulated processor.
PATIENCE_S = 60.0


def ran(done: Ran) -> dict[str, object]:
    return {"status": done.status, "out": done.out, "err": done.err}


def the_program_identifies() -> Found:
    before = kernel_tpm.bare()
    done = commands.run("bcd", "tpm", "identify", "--json", "--config", str(CONFIG))
    return ran(done) | {"before": before, "after": kernel_tpm.bare()}


def a_node_joins_and_renews_twice(home: Path) -> Found:
    """At the control plane that was made in `home` before the guest started, with the token beside it: once when the
    operator asks, once when it is time."""
    for path in (home, *home.rglob("*")):
        os.chown(path, 0, 0)
    plane = Plane(home, serve_words=())
    plane.serve()
    try:
        machine = plane.machine("node", program="bcd")
        joined = machine.join((home / "token").read_text())
        if joined.status != 0:
            return {"joined": ran(joined)}
        pairs = [_pair(machine)]
        node = NodeProcess(machine).start()
        until(lambda: " session up " in node.text, lambda: node.text, PATIENCE_S)
        plane.admin("nodes", "renew-now", "--all")
        for _ in range(2):
            until(lambda: node.text.count(" info renewed ") == len(pairs), lambda: node.text, PATIENCE_S)
            pairs.append(_pair(machine))
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
        status = node.ended()
    finally:
        plane.stop()
    return {"joined": ran(joined), "pairs": pairs, "status": status, "log": node.text}


def _pair(machine: Machine) -> dict[str, Any]:
    """Where the node key is, a digest of what its file holds, and of the certificate."""
    key = (machine.data / "node.key").read_bytes()
    identity = (machine.data / "identity.json").read_bytes()
    where = "TPM" if isinstance(node_key.decode(key), node_key.TpmRecord) else "file"
    leaf = identity_json.decode(identity).chain[0]
    return {"where": where, "key": hashlib.sha256(key).hexdigest(), "leaf": hashlib.sha256(leaf).hexdigest()}
