"""A command that `tests.fakes.warm` forks does what the same command does that is started."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.node_process import until
from tests.fakes.warm import Warm, warm_for

LIST = ("bcd-controlplane", "token", "list")
FOLLOW = ("bcd-controlplane", "audit", "tail", "--follow")
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A control plane's directory."""
    at = tmp_path_factory.mktemp("warm") / "plane"
    done = commands.run("bcd-controlplane", "init", "--dir", str(at), "--trust-domain", "example.test")
    assert done.status == 0, done.err
    return at


@pytest.fixture(scope="module")
def warm() -> Warm:
    warm_for(LIST, b"", {})
    found = warm_for(LIST, b"", {})
    assert found is not None
    return found


def children(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def started(words: tuple[str, ...], stdin: bytes | int, extra: dict[str, str]) -> tuple[int, bytes, bytes]:
    given: dict[str, object] = {"stdin": stdin} if isinstance(stdin, int) else {"input": stdin}
    done = subprocess.run(
        commands.command(words), env=commands.environment(extra), capture_output=True, check=False, **given
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "extra"),
    [
        (("bcd-controlplane", "token", "list", "--dir", "PLANE", "--json"), b"", {}),
        (("bcd-controlplane", "nodes", "show", "n-aaaaaaaaaa", "--dir", "PLANE"), b"", {}),
        (("bcd-controlplane", "--help"), b"", {}),
        (("bcd-fakehw", "status", "--data-dir", "nowhere", "--config", "CONFIG"), b"", {}),
        (("bcd-fakehw", "tpm", "identify", "--config", "CONFIG"), b"", {"BCD_FAKEHW_TPM": "socket:/nowhere"}),
        (("bcd-fakehw", "tpm", "identify", "--config", "CONFIG"), b"", {}),
        (("bcd-fakehw", "join", "--config", "CONFIG"), b"no token\n", {}),
        (("bcd-fakehw", "join", "--config", "CONFIG"), subprocess.DEVNULL, {}),
        # It starts itself again, without that variable.
        (("bcd-fakehw", "join", "--config", "CONFIG"), b"", {"BCD_JOIN_TOKEN": "no token"}),
        (("bcd", "jion"), b"", {}),
    ],
)
def test_it_ends_and_says_the_same(
    words: tuple[str, ...], stdin: bytes | int, extra: dict[str, str], plane: Path, warm: Warm, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'data_dir = "{tmp_path}/data"\n')
    words = tuple({"PLANE": str(plane), "CONFIG": str(config)}.get(word, word) for word in words)
    cold = started(words, stdin, extra)
    assert warm.run(commands.command(words), stdin, extra, PATIENCE_S) == cold
    assert cold[1] + cold[2] != b""


def holds(process: int) -> list[str]:
    """What its descriptors are; nothing when it is gone."""
    try:
        return sorted(os.readlink(one).split(":")[0] for one in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return []


def test_it_holds_nothing_of_the_process_that_forked_it_and_dies_of_the_same_signals(plane: Path, warm: Warm) -> None:
    words = commands.command((*FOLLOW, "--dir", str(plane)))
    cold = commands.start(*words)
    try:
        assert cold.stdout is not None
        assert cold.stdout.readline() != b""
        expected = holds(cold.pid)
    finally:
        commands.end_all()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(warm.run, words, b"", {}, PATIENCE_S)
        until(lambda: [holds(one) for one in children(warm.process.pid)] == [expected], "the same descriptors")
        [one] = children(warm.process.pid)
        os.kill(one, signal.SIGTERM)
        status, _, _ = done.result()
    assert status == -signal.SIGTERM


def test_it_is_killed_when_it_takes_too_long(plane: Path, warm: Warm) -> None:
    words = commands.command((*FOLLOW, "--dir", str(plane)))
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(warm.run, words, b"", {}, 3.0)
        until(lambda: children(warm.process.pid), "the command")
        [one] = children(warm.process.pid)
        # It does not see that nobody reads any more.
        os.kill(one, signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            done.result()
    until(lambda: children(warm.process.pid) == [], "it to be gone")


def test_the_process_that_forks_ends_with_its_commands_when_nobody_asks_any_more(plane: Path) -> None:
    warm = Warm.start()
    words = commands.command((*FOLLOW, "--dir", str(plane)))
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(warm.run, words, b"", {}, PATIENCE_S)
        until(lambda: children(warm.process.pid), "the command")
        warm.end()
        with pytest.raises(AssertionError, match="the process that forks is gone"):
            done.result()


def test_what_must_be_started_is_not_forked(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of its kind, what others look for in the list of processes, and what Python is told as it starts."""
    assert warm_for(LIST, b"", {}) is warm
    assert warm_for(("bcd-controlplane", "no-such-command"), b"", {}) is None
    assert warm_for(("bcd-controlplane", "no-such-command"), b"", {}) is warm
    for words in (("bcd-fakehw", "node"), ("bcd-controlplane", "serve"), ("openssl", "version")):
        assert [warm_for(words, b"", {}) for _ in range(2)] == [None, None]
    assert warm_for(LIST, b"", {"BCD_JOIN_TOKEN": ""}) is warm
    assert warm_for(LIST, b"", {"PYTHONPATH": "/nowhere"}) is None
    monkeypatch.setenv("LANG", "en_NO.UTF-8")
    other = warm_for(LIST, b"", {})
    assert other is not None
    assert other is not warm
    monkeypatch.undo()
    assert warm_for(LIST, b"", {}) is warm
