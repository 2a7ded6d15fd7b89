"""A machine with a TPM that nobody here wrote, a proxy before it, and what has to hold whatever happens to them."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.lifecycle.lives import Running, identity_files, leaf_of, public_key_of_leaf
from tests.e2e.tpm.test_commands_sent import PROFILE
from tests.fakes import swtpm, tpm_proxy
from tests.fakes.commands import Ran
from tests.fakes.plane import Machine, Plane
from tests.fakes.swtpm import READY_S, SwTpm
from tests.fakes.tpm_proxy import TpmProxy

RECORD = re.compile(rb"-----BEGIN BCD TPM NODE KEY-----\n[A-Za-z0-9+/]{43}=\n-----END BCD TPM NODE KEY-----\n")
# A dead identity, and a defect of bcd: nothing that a TPM does is either.
NEVER = {1, 70}
MISMATCH = "does not match"
FILE_KEY = "the node key is a file"


@dataclass
class Fitted:
    """`tpm` is seen through `proxy` by every process of `machine`."""

    machine: Machine
    tpm: SwTpm
    proxy: TpmProxy
    config: Path
    # The socket that processes are told of, where it is not the proxy's.
    device: str = ""
    may_mismatch: bool = False
    may_die: bool = False
    _token: str = ""
    _nodes: list[Running] = field(default_factory=list)
    _ended: list[Ran] = field(default_factory=list)

    @property
    def plane(self) -> Plane:
        return self.machine.plane

    @property
    def env(self) -> dict[str, str]:
        return {"BCD_FAKEHW_TPM": f"socket:{self.device or self.proxy.path}", "BCD_FAKEHW_TPM_KEYS": "1"}

    @property
    def files(self) -> dict[str, bytes]:
        return identity_files(self.machine)

    @property
    def pair(self) -> tuple[bytes, bytes]:
        """Leaf and key: what no session changes."""
        return leaf_of(self.files["identity.json"]), self.files["node.key"]

    @property
    def key_is_record(self) -> bool:
        return RECORD.fullmatch(self.files["node.key"]) is not None

    @property
    def id(self) -> str:
        found: str = json.loads(self.files["identity.json"])["nodeId"]
        return found

    def run(self, command: str, *words: str, stdin: bytes = b"") -> Ran:
        done = self.machine.run(command, "--config", str(self.config), *words, stdin=stdin, env=self.env)
        # To doctor 1 means that something is wrong.
        if command != "doctor":
            self._ended.append(done)
        return done

    def join(self, *words: str) -> Ran:
        """With a token that is good for many joins as the same node."""
        self._token = self._token or self.plane.token("--allow-reclaim", "--uses", "50")
        return self.run("join", *words, stdin=f"{self._token}\n".encode())

    def join_anew(self) -> Ran:
        """As the same node, whatever identity there was."""
        return self.join("--reset", "--yes")

    def joined(self) -> "Fitted":
        done = self.join()
        assert done.status == 0, done.err
        assert self.key_is_record, done.err
        return self

    def node(self) -> Running:
        running = Running(self.machine, config=self.config, env=self.env)
        self._nodes.append(running)
        return running

    def up(self) -> Running:
        """A node that runs and has a session."""
        running = self.node()
        running.wait("session up")
        return running

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").out)
        return found

    def doctor(self) -> dict[str, tuple[str, str]]:
        """Level and message of each check."""
        return {one["check"]: (one["level"], one["message"]) for one in json.loads(self.run("doctor", "--json").out)}

    def counts(self) -> "Counter[str]":
        """What was sent since the last call, by name."""
        counts = self.proxy.counts
        self.proxy.forget()
        return counts

    def lose_power(self, *, started: bool = True) -> None:
        """Off without TPM2_Shutdown, and on again; `started` by the firmware."""
        words = ["swtpm_ioctl", "--unix", f"{self.tpm.path}.ctrl", "-i"]
        subprocess.run(words, check=True, capture_output=True, timeout=READY_S)
        if started:
            self.start_tpm()

    def start_tpm(self) -> None:
        assert self.tpm.raw(swtpm.STARTUP)[6:10] == bytes(4)

    def judge(self) -> None:
        """What holds after every trouble."""
        assert set(self.proxy.codes) <= set(PROFILE.values())
        for running in self._nodes:
            assert running.process.returncode not in NEVER - ({1} if self.may_die else set()), running.lines
            assert self.may_mismatch or not running.count(MISMATCH), running.lines
            assert not running.count("internal error|Traceback"), running.lines
        for done in self._ended:
            assert done.status not in NEVER, done
            assert self.may_mismatch or MISMATCH not in done.err, done.err
            assert "Traceback" not in done.err


@contextmanager
def fitted(
    plane: Plane, place: Path, *, wait_s: float = 30.0, may_mismatch: bool = False, may_die: bool = False
) -> Iterator[Fitted]:
    """A machine of its own in a directory of its own. What the TPM keeps is afterwards what it was before."""
    config = place / "etc" / "config.toml"
    config.parent.mkdir(parents=True)
    for file in plane.config.parent.iterdir():
        (config.parent / file.name).write_bytes(file.read_bytes())
    with config.open("a") as more:
        more.write(f"\n[tpm]\nwait_s = {wait_s}\n")
    with swtpm.running(place / "t") as tpm, tpm_proxy.between(tpm.path) as proxy:
        one = Fitted(plane.machine(place.name), tpm, proxy, config, may_mismatch=may_mismatch, may_die=may_die)
        before = tpm.kept()
        yield one
        proxy.clear()
        assert tpm.kept() == before
        one.judge()


def leaf_key(files: dict[str, bytes]) -> bytes:
    """By openssl."""
    return public_key_of_leaf(files["identity.json"])
