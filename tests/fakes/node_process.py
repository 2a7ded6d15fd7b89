"""`bcd-fakehw node` as a process of its own, and what a test sees of it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import commands
from tests.fakes.plane import Machine

PATIENCE_S = 30.0


def until(what: Callable[[], Any], why: Callable[[], str] | str, patience_s: float = PATIENCE_S) -> Any:
    """The first true answer of `what`, asked again and again; `why` there was none."""
    deadline = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < deadline, why if isinstance(why, str) else why()
        time.sleep(0.05)
    return found


@dataclass
class NodeProcess:
    """Its log goes into a file, which nobody has to read while it runs."""

    machine: Machine
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.machine.plane.home / f"{self.machine.name}.log"

    @property
    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    @property
    def identity(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.machine.data / "identity.json").read_text())
        return found

    @property
    def id(self) -> str:
        found: str = self.identity["nodeId"]
        return found

    def start(self) -> NodeProcess:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                commands.command(self.machine.words("node")),
                env=commands.environment(self.machine.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def up(self, times: int = 1) -> NodeProcess:
        """Waits until its session has come up that many times."""
        until(lambda: self.text.count(" session up ") >= times, lambda: f"no session: {self.text}")
        return self

    def said(self, words: str, patience_s: float = PATIENCE_S) -> None:
        until(lambda: words in self.text, lambda: f"{words!r} not in {self.text}", patience_s)

    def ended(self, patience_s: float = PATIENCE_S) -> int:
        """Its exit status."""
        assert self.process is not None
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running: {self.text}") from None

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
