"""Where the demo plays: a temporary directory, commands that are shown while they run, claims that are checked."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BIN = Path(sys.executable).parent
# The longest a step waits for something that takes milliseconds on any machine.
PATIENCE_S = 30.0
# Of a line that was picked out.
CUT = 63


class StepFailed(Exception):
    """What the step claimed is not so."""


@dataclass(frozen=True)
class Ran:
    """A finished command."""

    status: int
    out: str
    err: str


@dataclass
class Stage:
    """The temporary directory, and what is told of it."""

    home: Path
    step: str = ""
    colour: bool = False
    processes: list["subprocess.Popen[str]"] = field(default_factory=list)

    def say(self, text: str, style: str = "") -> None:
        print(f"\033[{style}m{text}\033[0m" if self.colour and style else text, flush=True)

    def short(self, text: str) -> str:
        return text.replace(f"{self.home}/", "").replace(str(self.home), ".").replace(f"{BIN}/", "")

    def run(
        self, *words: str, stdin: str = "", env: dict[str, str] | None = None, shown: str = "", only: str = ""
    ) -> Ran:
        """The command, shown with what it printed and how it ended. `shown` is how a person would type it; `only` shows
        lines that hold it, and not all of them."""
        picked = f" | grep {only} | cut -c-{CUT}" if only else ""
        self.say(f"$ {shown or self.short(' '.join(words))}{picked}", "1")
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]] if (BIN / words[0]).exists() else list(words),
            input=stdin,
            env=environment(env),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 2,
            check=False,
        )
        for line in (done.stdout + done.stderr).splitlines():
            if only in line:
                self.say(f"  {self.short(line[:CUT] if only else line)}")
        if done.returncode:
            self.say(f"  (exit {done.returncode})", "2")
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, stdin: str = "", env: dict[str, str] | None = None, shown: str = "") -> "Process":
        self.say(f"$ {shown or self.short(' '.join(words))} &", "1")
        log = (self.home / f"log-{len(self.processes)}").open("w")
        process = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]] if (BIN / words[0]).exists() else list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(env),
            text=True,
        )
        log.close()
        self.processes.append(process)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    def follow(self, process: "Process") -> "Log":
        """What a started process writes on standard error, shown as it comes."""
        return Log(self, process, self.home / f"log-{self.processes.index(process)}")

    def check(self, holds: bool, claim: str) -> None:
        """Says the claim, or ends the demo where it does not hold."""
        self.say(f"  {'✓' if holds else '✗'} {claim}", "32" if holds else "31")
        if not holds:
            raise StepFailed(claim)


Process = subprocess.Popen[str]


@dataclass
class Log:
    """A process' standard error, read on from where it was read before."""

    stage: Stage
    process: Process
    path: Path
    seen: int = 0

    def wait(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """The next line that holds `text`; every line up to it is shown. StepFailed when it does not come."""
        until = time.monotonic() + patience_s
        while True:
            ended = self.process.poll() is not None
            whole = self.path.read_text()
            while "\n" in whole[self.seen :]:
                line = whole[self.seen : whole.index("\n", self.seen)]
                self.seen += len(line) + 1
                self.stage.say(f"  {self.stage.short(line)}", "2")
                if text in line:
                    return line
            if ended:
                raise StepFailed(f"the process ended without saying: {text}")
            if time.monotonic() > until:
                raise StepFailed(f"waited {patience_s:.0f} s for: {text}")
            time.sleep(0.05)


def environment(extra: dict[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BCD_")}
    return kept | (extra or {})


def wait(happened: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > until:
            raise StepFailed(f"waited {PATIENCE_S:.0f} s for {what}")
        time.sleep(0.02)


@contextmanager
def stage(colour: bool) -> Iterator[Stage]:
    home = Path(tempfile.mkdtemp(prefix="bcd-demo-"))
    built = Stage(home, colour=colour)
    try:
        yield built
    finally:
        for process in built.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(home)
