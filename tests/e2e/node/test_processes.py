"""How a join runs: which processes there are, and which system calls it makes."""

import os
from pathlib import Path

import pytest

from tests.fakes.outside import calls_in, strace
from tests.fakes.plane import Machine, Plane


@pytest.mark.parametrize("source", ["standard input", "environment"])
def test_nothing_forks(source: str, plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """B60: no fork after gRPC is there, nor before; decision 16: with the token in the environment exactly one more
    execve, of the same process."""
    log = tmp_path / "trace"
    token = plane.token()
    eyes = strace(log, "process")
    env = {"BCD_JOIN_TOKEN": token} if source == "environment" else {}
    stdin = b"" if env else f"{token}\n".encode()
    assert machine.run("join", stdin=stdin, env=env, prefix=eyes).status == 0
    executed, forked = judge(log)
    assert executed == (2 if source == "environment" else 1)
    assert forked == []
    assert any("clone" in call for call in calls_in(log)), "there were threads, and they were looked at"
    assert len({line.split()[0] for line in log.read_text().splitlines() if "execve(" in line}) == 1


def test_a_fork_would_be_seen(tmp_path: Path) -> None:
    """The negative twin."""
    log = tmp_path / "trace"
    os.spawnvp(os.P_WAIT, "strace", [*strace(log, "process"), "sh", "-c", "true & (exec true); wait"])
    executed, forked = judge(log)
    assert (executed, len(forked)) == (2, 2)


def test_a_call_that_another_process_cut_in_two_is_one_call(tmp_path: Path) -> None:
    log = tmp_path / "trace"
    log.write_text(
        '7 execve("/bin/true", ["true"], 0x1 <unfinished ...>\n8 fork() = 9\n7 <... execve resumed>) = 0\n'
        "8 +++ exited with 0 +++\n"
    )
    assert judge(log) == (1, ["fork() = 9"])


def judge(log: Path) -> tuple[int, list[str]]:
    """How many programs were started, and every call that made a process and not a thread."""
    calls = calls_in(log)
    executed = sum(call.startswith("execve(") and call.endswith(" = 0") for call in calls)
    made = [call for call in calls if call.split("(")[0] in ("fork", "vfork", "clone", "clone3")]
    return executed, [call for call in made if "CLONE_THREAD" not in call]
