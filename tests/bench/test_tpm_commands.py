"""How many commands a node with its key in a TPM sends, beside the least that could do: on a chip each takes 50 to
500 ms, and nothing else of bcd's takes as long."""

import json
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes import commands, swtpm, tpm_proxy
from tests.fakes.plane import Machine, Plane, control_plane
from tests.fakes.tpm_proxy import TpmProxy

# Each key derived once by a process, and flushed at its end or five minutes after the next key took its place. Signed
# are a request by its own key, a renewal besides by the key of before, and each handshake once.
BY_TOKEN = {
    "join": Counter(CREATE_PRIMARY=1, SIGN=1, FLUSH_CONTEXT=1),
    "status": Counter[str](),
    "start and handshake": Counter(CREATE_PRIMARY=1, SIGN=1),
    "renewal and handshake": Counter(CREATE_PRIMARY=1, SIGN=3),
    "end": Counter(FLUSH_CONTEXT=2),
}
# Besides, for a join by TPM: an endorsement key, its certificate and a secret that it opens; the attestation key, its
# quote with the PCRs, its word for the node key: 12, and a flush of each key. Four more, and a flush, for what the
# evidence tells: the ECC endorsement key and whether it has a certificate, as the operator may have listed or denied
# that one; whether there is a chain; which PCR banks there are.
BY_TPM = BY_TOKEN | {
    "join": Counter(
        CREATE_PRIMARY=3,
        SIGN=1,
        NV_READ_PUBLIC=3,
        NV_READ=1,
        READ_PUBLIC=1,
        PCR_READ=2,
        START_AUTH_SESSION=1,
        POLICY_SECRET=1,
        ACTIVATE_CREDENTIAL=1,
        QUOTE=1,
        CERTIFY=1,
        FLUSH_CONTEXT=3,
    ),
    "renewal and handshake": Counter(CREATE_PRIMARY=2, SIGN=3, CERTIFY=1, FLUSH_CONTEXT=1),
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


def lived(plane: Plane, state: Path | None, home: Path, *attestor: str) -> dict[str, Counter[str]]:
    """What one machine sent, from its join to its end after a renewal; with `attestor`, joined by that and no token."""
    with swtpm.running(home / "run", state) as tpm, tpm_proxy.between(tpm.path) as proxy:
        life = Life(proxy, plane.machine(), {})
        if attestor:
            words = ("--config", str(plane.config), "--json")
            found = json.loads(commands.run("bcd-fakehw", "tpm", "identify", *words, env=life.env).out)
            digest = found["endorsementKeys"][0]["publicKeySha256"].removeprefix("sha256:")
            plane.admin("ek", "allow", digest, "--site", "lab", "--node-id", "rack-7")
            proxy.forget()
        token = b"" if attestor else f"{plane.token()}\n".encode()
        joined = life.machine.run("join", *attestor, stdin=token, env=life.env)
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
        return life.sent


@pytest.fixture
def home() -> Iterator[Path]:
    # A Unix socket's path has room for 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def told(sent: dict[str, Counter[str]], least: dict[str, Counter[str]]) -> str:
    lines = [f"{'':22} sent  bound"]
    for what, counts in least.items():
        names = ", ".join(f"{number} {name}" for name, number in sorted(sent[what].items()))
        lines.append(f"{what:22} {sum(sent[what].values()):4} {sum(counts.values()):6}  {names}")
    return "\n".join(lines)


def test_a_node_with_its_key_in_a_tpm_sends_the_least_commands_there_can_be(plane: Plane, home: Path) -> None:
    sent = lived(plane, None, home)
    print(f"\njoined by a token\n{told(sent, BY_TOKEN)}")
    assert sent == BY_TOKEN


def test_a_node_that_joined_by_its_tpm_sends_no_more_than_that_takes(plane: Plane, home: Path) -> None:
    swtpm.manufacture(home / "made", "--create-ek-cert")
    sent = lived(plane, home / "made", home, "--attestor", "tpm")
    print(f"\njoined by the TPM\n{told(sent, BY_TPM)}")
    assert all(sent[what] <= BY_TPM[what] for what in ("join", "start and handshake", "renewal and handshake"))
