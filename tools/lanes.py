"""Parts of suites beside each other: one process at a time in a lane, its lines in one piece when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

# One more than the smallest machine that runs this has processors: a good part of what runs waits.
LANES = 3
_LOOK_S = 0.1
# What a test has under way ends within this, or is killed.
_LAST_WORDS_S = 30.0
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Part:
    """What one process runs: a suite, or one file or folder of it. It writes the report; the log holds its lines."""

    suite: str
    name: str
    command: tuple[str, ...]
    report: Path
    log: Path


@dataclass(frozen=True)
class Ended:
    """How a part's process ended: its exit code, and how long it took."""

    part: Part
    code: int
    seconds: float


@dataclass
class _Running:
    part: Part
    process: subprocess.Popen[bytes]
    began_s: float = field(default_factory=time.monotonic)

    def signal(self, number: int) -> None:
        # The processes of its tests hear of it as well, as they do from a terminal.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def ended(self) -> Ended:
        return Ended(self.part, self.process.wait(), time.monotonic() - self.began_s)


def run_alone(root: Path, part: Part) -> Ended:
    """Its lines come as it writes them."""
    print(f"\n--- {part.name}", flush=True)
    began_s = time.monotonic()
    code = subprocess.run(part.command, cwd=root, check=False).returncode
    return Ended(part, code, time.monotonic() - began_s)


def run_beside(root: Path, parts: Sequence[Part], lanes: int = LANES) -> list[Ended]:
    """All of them, `lanes` at a time, begun in their order; in the order of their ends.

    KeyboardInterrupt once a signal asked for an end and every line there is was printed.
    """
    waiting, running, ended = deque(parts), list[_Running](), list[Ended]()
    with _asked_to_stop() as asked:
        while running or waiting:
            while waiting and len(running) < lanes:
                running.append(_begin(root, waiting.popleft()))
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                ended.append(one.ended())
                _show(ended[-1])
            if asked:
                _stop(running, asked)
                raise KeyboardInterrupt
            time.sleep(_LOOK_S)
    return ended


def _begin(root: Path, part: Part) -> _Running:
    print(
        f"--- {part.name} begins; its lines come when it ends, until then in {part.log.relative_to(root)}", flush=True
    )
    with part.log.open("wb") as log:
        # In a session of its own, Ctrl-C reaches it once, from here.
        process = subprocess.Popen(
            part.command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return _Running(part, process)


def _show(ended: Ended) -> None:
    how = "ended" if ended.code == 0 else f"ended with {ended.code}"
    print(f"\n--- {ended.part.name} {how} after {ended.seconds:.0f} s:", flush=True)
    # The bytes as they are: they may be no text of this terminal's.
    with ended.part.log.open("rb") as log:
        shutil.copyfileobj(log, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _stop(running: Sequence[_Running], asked: Sequence[int]) -> None:
    """Ends them as Ctrl-C does, with what they have to say; whoever asks a second time does not want to wait for it."""
    for one in running:
        one.signal(signal.SIGINT)
    until_s = time.monotonic() + _LAST_WORDS_S
    while any(one.process.poll() is None for one in running):
        if len(asked) > 1 or time.monotonic() > until_s:
            for one in running:
                one.signal(signal.SIGKILL)
        time.sleep(_LOOK_S)
    for one in running:
        _show(one.ended())


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """The signals that ask for an end, as they come. An exception could come between a process and its note."""
    asked: list[int] = []
    # What is ignored stays so: nohup means it.
    heard = [number for number in _STOPS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: asked.append(number)) for number in heard}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
