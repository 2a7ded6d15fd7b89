"""Real `bcd-fakehw join` processes against a real control plane: killed at each call, or with the answer lost."""

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from tests.crash import strace
from tests.crash.directories import BEFORE
from tests.crash.losing_proxy import LosingProxy
from tests.crash.recorder import Recorder
from tests.fakes import commands, joining
from tests.fakes.clock import ManualClock
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential
from tests.fakes.plane import Machine, Plane, control_plane

# gRPC's threads wake each other with writes of their own, as many as it takes: the one that was meant may be another.
_ROUNDS = 10


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("plane")) as serving:
        yield serving


@pytest.fixture(scope="module")
def token(plane: Plane) -> str:
    """Good for as many machines as these tests have."""
    return plane.token("--uses", "200")


@pytest.mark.parametrize("name", ["no directory", "all of them"])
def test_strace_sees_the_steps_that_were_recorded(plane: Plane, token: str, tmp_path: Path, name: str) -> None:
    """B03, B07: what the exchanges play back is what a real process does, in its order."""
    before = BEFORE[name]
    machine = plane.machine()
    here = tmp_path / machine.name
    for root in (here, machine.data):
        if before is not None:
            root.mkdir(0o700)
            for file, data in before.items():
                (root / file).write_bytes(data)
                (root / file).chmod(0o600)
    recorder = Recorder(str(tmp_path), str(plane.home))
    fs = LocalFs(str(here), ManualClock(), syscalls=recorder)
    joining.join(fs, str(here), ControlPlane(lambda: recorder.mark("connect")), Credential())(ANY_NODE)
    recorded = [_timeless(str(change)) for change in recorder.trace]
    recorded = [step for step in recorded if step != f"fsync parent of {plane.home}"]

    log = tmp_path / "log"
    assert _traced_join(machine, token, strace.words(log)).status == 0
    seen = [_timeless(step) for step in strace.steps(log, machine.data)]
    # A connection may take several attempts (a probe, address families): the first one is what counts.
    first = seen.index("connect")
    assert seen[: first + 1] + [step for step in seen[first:] if step != "connect"] == recorded


def test_every_file_is_made_for_its_owner_alone(plane: Plane, token: str, tmp_path: Path) -> None:
    """B07: 0600 from birth, under a temporary name that nobody else can have made, and moved into place."""
    machine, log = plane.machine(), tmp_path / "log"
    assert _traced_join(machine, token, strace.words(log, calls="openat,mkdir,umask,chmod,fchmod,fchmodat")).status == 0
    made = [line for line in strace.lines(log) if str(machine.data) in line and "O_CREAT" in line]
    assert [re.findall(r'"(\.bcd-[a-z.]+)\.[0-9a-f]{16}"', line)[0] for line in made] == [
        ".bcd-join.pending",
        ".bcd-node.key.next",
        ".bcd-identity.json",
    ]
    for line in made:
        assert "O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600)" in line
    assert any(re.search(rf'mkdir\("{machine.data}", 0700\)', line) for line in strace.lines(log))
    assert not [line for line in strace.lines(log) if "chmod" in line]
    assert {path.name: path.stat().st_mode & 0o7777 for path in machine.data.iterdir()} == {
        "identity.json": 0o600,
        "node.key": 0o600,
    }


@pytest.mark.parametrize(
    ("call", "at"),
    [
        ("mkdir", {"mkdir("}),
        ("openat", {'".bcd-join.pending.', '".bcd-node.key.next.', '".bcd-identity.json.'}),
        ("write", {"/.bcd-join.pending.", "/.bcd-node.key.next.", "/.bcd-identity.json."}),
        ("fsync", {"/.bcd-join.pending.", "/.bcd-node.key.next.", "/.bcd-identity.json."}),
        ("renameat", {'"join.pending"', '"node.key.next")', '"identity.json"', '"node.key")'}),
        ("unlinkat", {'"node.key.next"', '"join.pending"'}),
    ],
)
def test_a_join_killed_at_any_call_goes_on_without_a_token(
    plane: Plane, token: str, tmp_path: Path, call: str, at: set[str]
) -> None:
    """B02, B07: one certificate a machine, and a key that matches it."""
    # What only reads, and what makes the directories above safe, comes first and is left out: nothing is there yet.
    first = {"openat": 6, "fsync": len(plane.home.parents) + 1}.get(call, 1)
    missed, killed, machines = set(at), [], []
    for _ in range(_ROUNDS):
        for number in range(first, first + 40):
            machine, log = plane.machine(), tmp_path / f"log-{number}"
            inject = ["-e", f"inject={call}:signal=SIGKILL:when={number}"]
            only = ["-P", str(machine.data)] if call == "openat" else []
            done = _traced_join(machine, token, strace.words(log, *only, *inject, calls=call))
            if done.status == 0:
                break
            assert done.status == -9, done.err
            machines.append(machine)
            killed.append(strace.killed_at(log))
            _judge_after_kill(machine, token, killed[-1])
        missed = {part for part in at if not any(part in line for line in killed)}
        if not missed:
            break
    assert not missed, f"never killed at {missed}, only at {killed}"
    assert _certificates(plane, machines) == [1] * len(killed)


def test_a_lost_answer_and_a_killed_node_cost_no_second_token(plane: Plane, tmp_path: Path) -> None:
    """B02: the control plane has issued, the node knows nothing of it; the same request gets the same answer."""
    token = plane.token()
    machine = plane.machine()
    (port,) = re.findall(r'^join = "127\.0\.0\.1:(\d+)"', plane.config.read_text(), re.MULTILINE)
    processes: list[subprocess.Popen[bytes]] = []
    proxy = LosingProxy(("127.0.0.1", int(port)), lambda: processes[0].kill())  # noqa: PLW0108 - it is not there yet
    behind = tmp_path / "etc"
    behind.mkdir()
    for file in plane.config.parent.iterdir():
        data = file.read_bytes()
        (behind / file.name).write_bytes(data.replace(f"127.0.0.1:{port}".encode(), f"127.0.0.1:{proxy.port}".encode()))
    try:
        config = ("--config", str(behind / "config.toml"), "--data-dir", str(machine.data))
        processes.append(commands.start("bcd-fakehw", "join", *config, env=machine.env))
        _, err = processes[0].communicate(f"{token}\n".encode(), timeout=30)
    finally:
        proxy.close()
    assert processes[0].returncode == -9, err.decode()
    assert proxy.lost.is_set()
    assert sorted(machine.files()) == ["join.pending"]
    assert _certificates(plane, [machine]) == [1]

    done = machine.join()
    assert done.status == 0, done.err
    assert done.out.startswith("joined as n-")
    _judge_joined(machine)
    assert _certificates(plane, [machine]) == [1]


def _traced_join(machine: Machine, token: str, prefix: list[str]) -> commands.Ran:
    return commands.run(*machine.words("join"), stdin=f"{token}\n".encode(), env=machine.env, prefix=prefix)


def _judge_after_kill(machine: Machine, token: str, where: str) -> None:
    """What has been asked for is answered again without a token; if nothing has, a join begins anew with one."""
    begun = "join.pending" in machine.files() or "identity.json" in machine.files()
    done = machine.join("" if begun else token)
    assert done.status == 0, f"{where}: {done.err}"
    _judge_joined(machine)


def _judge_joined(machine: Machine) -> None:
    assert sorted(machine.files()) == ["identity.json", "node.key"]
    assert _public_key_of_leaf(machine) == _openssl("pkey", "-in", str(machine.data / "node.key"), "-pubout")


def _public_key_of_leaf(machine: Machine) -> bytes:
    leaf = base64.b64decode(json.loads(machine.files()["identity.json"])["chain"][0])
    return _openssl("x509", "-inform", "DER", "-noout", "-pubkey", stdin=leaf)


def _openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def _certificates(plane: Plane, machines: Sequence[Machine]) -> list[int]:
    """How many certificates the control plane has issued to each of these machines, by whatever node it knows it."""
    nodes, events = plane.json("nodes", "list"), plane.json("audit", "tail", "-n", "1000")
    assert isinstance(nodes, list)
    assert isinstance(events, list)
    issued = [event["detail"]["node"] for event in events if event["kind"] == "node.joined"]
    return [sum(issued.count(node["id"]) for node in nodes if node["hostname"] == machine.name) for machine in machines]


def _timeless(step: str) -> str:
    return re.sub(r"node-\d+|-\d{8}T\d{6}Z|-\d{10}", "-TIME", step)
