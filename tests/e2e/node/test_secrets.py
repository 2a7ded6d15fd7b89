"""The join token, and the node's key, are nowhere but where they must be."""

import base64
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.outside import (
    AS_NOBODY,
    NOBODY,
    descendants,
    ended,
    line_with,
    mode,
    open_folder,
    processes_with,
    until,
    where,
)
from tests.fakes.plane import Machine, Plane, control_plane


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def plane(home: Path) -> Iterator[Plane]:
    with control_plane(home) as running:
        yield running


def start(machine: Machine, token: str, *words: str, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[bytes]":
    """A join with its token in the environment, and every temporary file of it in a directory we can search."""
    temp = machine.plane.home / "tmp"
    temp.mkdir(exist_ok=True, mode=0o777)
    env = machine.env | {"BCD_JOIN_TOKEN": token, "TMPDIR": str(temp)}
    return commands.start(*machine.words("join", *words), env=env, prefix=prefix)


def is_under_way(machine: Machine, process: "subprocess.Popen[bytes]") -> None:
    until((machine.data / "join.pending").exists, "the request to be on disk", process)


@pytest.mark.parametrize("log", [("debug", "json"), ("debug", "text")], ids="-".join)
def test_a_token_from_the_environment_is_found_nowhere(log: tuple[str, str], plane: Plane, home: Path) -> None:
    """B53; issue 2: `/proc/<pid>/{environ,cmdline}`, logs at every level, temp files: a canary token is found nowhere.

    Looked for while nobody answers, while a person is waited for, and afterwards."""
    machine = plane.machine()
    token = plane.token("--require-approval")
    secret = token.split("_", 2)[2].encode()
    with plane.held():
        process = start(machine, token, "--log-level", log[0], "--log-format", log[1])
        is_under_way(machine, process)
        assert processes_with(secret) == []
        assert where(secret, [home]) == []
    said: list[str] = []
    line_with("waiting for approval", process, said)
    assert processes_with(secret) == []
    assert (Path(f"/proc/{process.pid}/environ")).read_bytes().count(b"BCD_JOIN_TOKEN") == 0
    assert descendants(process.pid) == set()
    (asked,) = [one for one in plane.json("approvals", "list") if one["state"] == "pending"]  # type: ignore[attr-defined]
    plane.admin("approvals", "approve", asked["id"])
    status, out, err = ended(process)
    assert (status, out[:12]) == (0, "joined as n-")
    for text in (*said, out, err):
        assert secret.decode() not in text
    assert where(secret, [home]) == []


def test_the_search_finds_what_is_there(plane: Plane, home: Path) -> None:
    """The negative twin of the test above: a token in an environment, an argument, a file, in base64 in a file."""
    secret = b"Planted-Canary_Planted-Canary_Planted-Canar"
    process = commands.start("sleep", "60", env={"BCD_JOIN_TOKEN": secret.decode()})
    other = commands.start("sh", "-c", "read line", secret.decode())
    until(lambda: len(processes_with(secret)) == 2, "both processes to be there")
    for one in (process, other):
        one.kill()
        one.communicate()
    planted = home / "planted"
    planted.mkdir()
    (planted / "plain").write_bytes(b"before " + secret + b" after")
    (planted / "encoded").write_bytes(base64.b64encode(b"x" + secret + b"y"))
    assert where(secret, [home]) == [str(planted / "encoded"), str(planted / "plain")]
    for path in planted.iterdir():
        path.unlink()


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGABRT, signal.SIGQUIT], ids=lambda how: how.name)
def test_a_crash_leaves_no_core(how: signal.Signals, plane: Plane, tmp_path: Path) -> None:
    """Issue 2, decision 16: not with unlimited cores either. The negative twin is a process that dies the same way."""
    unlimited = ("prlimit", "--core=unlimited:unlimited", "env", "-C", str(tmp_path))
    machine = plane.machine()
    with plane.held():
        process = start(machine, plane_token := "x" * 40, prefix=unlimited)
        is_under_way(machine, process)
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        process.send_signal(how)
        status, out, err = ended(process)
    assert (status, out, err) == (-how, "", "")
    assert plane_token not in limits
    assert [line.split()[4:6] for line in limits.splitlines() if "core file" in line] == [["0", "0"]]
    assert list(tmp_path.iterdir()) == []

    other = commands.start("sleep", "60", prefix=unlimited)
    until(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n", "the other to be there")
    other.send_signal(how)
    other.communicate()
    if not Path("/proc/sys/kernel/core_pattern").read_text().startswith(("|", "/")):
        assert [path.name.split(".")[0] for path in tmp_path.iterdir()] == ["core"]


def test_nobody_of_the_same_user_can_look_into_a_join(plane: Plane, home: Path) -> None:
    """Decision 16: not dumpable, so /proc/<pid> is root's and no debugger attaches, also for bcd-fakehw's own user. The
    negative twin is another process of that user."""
    machine = plane.machine()
    machine.data.mkdir(mode=0o700)
    os.chown(machine.data, NOBODY, NOBODY)

    def looks(path: str) -> int:
        return subprocess.run([*AS_NOBODY, "head", "-c1", path], capture_output=True, check=False).returncode

    def attaches(pid: int) -> bool:
        words = [*AS_NOBODY, "gdb", "--batch", "-nx", "-p", str(pid), "-ex", "info proc cmdline"]
        said = subprocess.run(words, capture_output=True, check=False, env={"HOME": str(home), "PATH": os.defpath})
        return b"Operation not permitted" not in said.stderr and b"ptrace:" not in said.stderr

    with plane.held():
        # By standard input: in a test the interpreter may lie where this user cannot start it a second time.
        process = machine.start_join("x" * 40, prefix=AS_NOBODY)
        is_under_way(machine, process)
        assert Path(f"/proc/{process.pid}/environ").stat().st_uid == 0
        for name in ("environ", "mem", "maps"):
            assert looks(f"/proc/{process.pid}/{name}") != 0
        assert not attaches(process.pid)
        process.kill()
        process.communicate()

    other = commands.start("sleep", "60", prefix=AS_NOBODY)
    until(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n", "the other to be there")
    assert Path(f"/proc/{other.pid}/environ").stat().st_uid == NOBODY
    assert looks(f"/proc/{other.pid}/environ") == 0
    assert looks(f"/proc/{other.pid}/maps") == 0
    assert attaches(other.pid)
    other.kill()
    other.communicate()


def test_the_private_key_is_in_one_file_and_nowhere_else(plane: Plane, home: Path) -> None:
    """Specification, "What the identity is": node.key, 0600; until then join.pending, 0600 (decision 8)."""
    machine = plane.machine()
    token = plane.token()
    with plane.held():
        process = start(machine, token)
        is_under_way(machine, process)
        pending = machine.data / "join.pending"
        key = pending.read_text().split('"key": "')[1].split("\\n")[1].encode()
        assert (mode(pending), where(key, [home])) == ("0600", [str(pending)])
        process.kill()
        process.communicate()
    assert machine.join().status == 0
    node_key = machine.data / "node.key"
    assert (mode(node_key), where(key, [home])) == ("0600", [str(node_key)])
