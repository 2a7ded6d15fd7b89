"""How many commands a node with its key in a TPM sends, beside the least that could do: on a chip each takes 50 to
500 ms, and nothing else of bcd's takes as long."""

import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes import swtpm, tpm_proxy
from tests.fakes.plane import Machine, Plane, control_plane
from tests.fakes.tpm_proxy import TpmProxy

# Each key derived once by a process, and flushed at its end or five minutes after the next key took its place. Signed
# are a request by its own key, a renewal besides by the key of before, and each handshake once.
LEAST = {
    "join": Counter(CREATE_PRIMARY=1, SIGN=1, FLUSH_CONTEXT=1),
    "status": Counter[str](),
    "start and handshake": Counter(CREATE_PRIMARY=1, SIGN=1),
    "renewal and handshake": Counter(CREATE_PRIMARY=1, SIGN=3),
    "end": Counter(FLUSH_CONTEXT=2),
}


@dataclass
class Life:
    """What one machine's processes sent, by what they did."""

    proxy: TpmProxy
    machine: Machine
    sent: dict[str, Counter[str]]

    @property
    def env(self) -> dict[str, str]:
        return {**self.proxy.env, "BCD_FAKEHW_TPM_KEYS": "1"}

    def counted(self, what: str) -> None:
        self.sent[what] = self.proxy.counts
        self.proxy.forget()

    def until(self, node: "subprocess.Popen[bytes]", event: bytes) -> None:
        assert node.stderr is not None
        while event not in (line := node.stderr.readline()):
            assert line, "the node ended"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("counted"), "--leaf-lifetime", "20s") as serving:
        yield serving


@pytest.fixture(scope="module")
def sent(plane: Plane) -> Iterator[dict[str, Counter[str]]]:
    # A Unix socket's path has room for 107 bytes.
    with (
        tempfile.TemporaryDirectory() as home,
        swtpm.running(Path(home) / "run") as tpm,
        tpm_proxy.between(tpm.path) as proxy,
    ):
        life = Life(proxy, plane.machine(), {})
        joined = life.machine.run("join", stdin=f"{plane.token()}\n".encode(), env=life.env)
        assert joined.status == 0, joined.err
        life.counted("join")
        assert life.machine.run("status", env=life.env).status == 0
        life.counted("status")
        node = life.machine.start("node", env=life.env)
        life.until(node, b"session up")
        life.counted("start and handshake")
        life.until(node, b"renewed")
        life.until(node, b"session up")
        life.counted("renewal and handshake")
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=20)
        life.counted("end")
        yield life.sent


def test_a_node_with_its_key_in_a_tpm_sends_the_least_commands_there_can_be(sent: dict[str, Counter[str]]) -> None:
    print(f"\n{'':22} {'commands':46} least")
    for what, least in LEAST.items():
        told = " + ".join(f"{number} {name}" for name, number in sorted(sent[what].items())) or "none"
        print(f"{what:22} {told:46} {sum(least.values())}")
    assert sent == LEAST
