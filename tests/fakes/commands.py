"""Running the real commands, each as its own process, and what a test asks of a finished one."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.fakes import warm

BIN = Path(sys.executable).parent
# Commands take well under a second; a test that waits longer than this has found a hang.
TIMEOUT_S = 60.0
# What `start` started, for `end_all`.
_started: "list[subprocess.Popen[bytes]]" = []


@dataclass(frozen=True)
class Ran:
    """A finished process: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def last_error(self) -> str:
        """The last line on standard error: a failure is one line, after whatever was logged."""
        lines = self.err.splitlines()
        return lines[-1] if lines else ""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anything bcd reads, and `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BCD_")}
    return kept | dict(extra or {})


def command(words: Sequence[str]) -> list[str]:
    """`words` with the first one found among the installed console scripts."""
    script = BIN / words[0]
    return [str(script) if script.exists() else words[0], *words[1:]]


def run(
    *words: str,
    stdin: bytes | int = b"",
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    prefix: Sequence[str] = (),
) -> Ran:
    """Runs one of our commands to its end. `stdin` is bytes, or a descriptor; `prefix` runs it under something."""
    forks = None if prefix else warm.warm_for(words, stdin, env or {})
    if forks is not None:
        status, out, err = forks.run(command(words), stdin, env or {}, timeout_s)
        return Ran(status, out.decode(), err.decode())
    given: dict[str, object] = {"stdin": stdin} if isinstance(stdin, int) else {"input": stdin}
    done = subprocess.run(
        [*prefix, *command(words)],
        env=environment(env),
        capture_output=True,
        timeout=timeout_s,
        check=False,
        **given,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*words: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
    """Starts one of our commands with its three streams in pipes."""
    process = subprocess.Popen(
        [*prefix, *command(words)],
        env=environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _started.append(process)
    return process


def end_all() -> None:
    """Ends what `start` started and a failed test left behind."""
    while _started:
        process = _started.pop()
        # All of it: a prefix may have made a child that holds the pipes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None and process.stdin.closed:
            # communicate would flush what a test has closed.
            process.stdin = None
        process.communicate(timeout=TIMEOUT_S)
