"""A real control plane in a temporary directory, and machines that join it, for tests with real processes."""

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes import commands
from tests.fakes.commands import Ran


@dataclass
class Plane:
    """`home/plane` is its directory, `home/etc` a node's configuration."""

    home: Path
    serve_words: tuple[str, ...] = ("--join", "127.0.0.1:0")
    server: "subprocess.Popen[bytes] | None" = None
    machines: int = 0
    more_config: str = field(default="")

    @property
    def directory(self) -> Path:
        return self.home / "plane"

    @property
    def log(self) -> Path:
        return self.home / "serve.log"

    @property
    def config(self) -> Path:
        return self.home / "etc" / "config.toml"

    def admin(self, *words: str) -> Ran:
        """A command of the operator's; it must succeed."""
        done = commands.run("bcd-controlplane", *words, "--dir", str(self.directory))
        assert done.status == 0, done.err
        return done

    def init(self, *words: str) -> None:
        self.admin("init", "--trust-domain", "example.test", "--host", "127.0.0.1", *words)

    def serve(self) -> None:
        words = commands.command(("bcd-controlplane", "serve", "--dir", str(self.directory), *self.serve_words))
        # Into a file: a server whose log nobody reads would stop at a full pipe.
        with self.log.open("ab") as log:
            self.server = subprocess.Popen(
                words, env=commands.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        assert self.server.stdout is not None
        ready = self.server.stdout.readline()
        if not ready.startswith(b"ready"):
            self.server.communicate(timeout=10)
            raise AssertionError(f"the control plane did not start: {self.log.read_text()}")

    def node_config(self) -> None:
        self.admin("node-config", "--out", str(self.config.parent))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.server is None:
            return
        self.server.send_signal(signal.SIGCONT)
        self.server.send_signal(how)
        self.server.communicate(timeout=20)
        self.server = None

    def token(self, *words: str) -> str:
        return self.admin("token", "create", "--site", "lab", *words).out.strip()

    def json(self, *words: str) -> object:
        return json.loads(self.admin(*words, "--json").out)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The server takes connections and answers nothing."""
        assert self.server is not None
        self.server.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.server.send_signal(signal.SIGCONT)

    def machine(self, name: str = "", program: str = "bcd-fakehw") -> "Machine":
        """A machine of its own; with program `bcd` the one the test runs on, which needs a token with reclaim."""
        self.machines += 1
        return Machine(self, name or f"node-{self.machines}", program)


@dataclass(frozen=True)
class Machine:
    """One machine: its own hardware claims, its own data directory."""

    plane: Plane
    name: str
    program: str = "bcd-fakehw"

    @property
    def data(self) -> Path:
        return self.plane.home / self.name

    @property
    def env(self) -> dict[str, str]:
        path = self.plane.home / f"{self.name}.machine.json"
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        path.write_text(json.dumps({"productUuid": uuid, "boardSerial": f"BRD-{digest[:10]}", "hostname": self.name}))
        return {"BCD_FAKEHW_MACHINE": str(path)}

    def words(self, command: str, *words: str) -> tuple[str, ...]:
        where = ("--config", str(self.plane.config), "--data-dir", str(self.data))
        return (self.program, command, *where, *words)

    def run(
        self,
        command: str,
        *words: str,
        stdin: bytes | int = b"",
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> Ran:
        return commands.run(*self.words(command, *words), stdin=stdin, env=self.env | (env or {}), prefix=prefix)

    def join(self, token: str = "", *words: str) -> Ran:
        return self.run("join", *words, stdin=f"{token}\n".encode() if token else b"")

    def start(
        self, command: str, *words: str, env: dict[str, str] | None = None, prefix: Sequence[str] = ()
    ) -> "subprocess.Popen[bytes]":
        return commands.start(*self.words(command, *words), env=self.env | (env or {}), prefix=prefix)

    def start_join(
        self, token: str, *words: str, env: dict[str, str] | None = None, prefix: Sequence[str] = ()
    ) -> "subprocess.Popen[bytes]":
        """A join under way, with `token` on its standard input."""
        process = self.start("join", *words, env=env, prefix=prefix)
        assert process.stdin is not None
        process.stdin.write(f"{token}\n".encode())
        process.stdin.close()
        process.stdin = None
        return process

    def files(self) -> dict[str, bytes]:
        """Every file in the data directory and what it holds."""
        return {p.name: p.read_bytes() for p in sorted(self.data.iterdir())} if self.data.exists() else {}


@contextmanager
def control_plane(home: Path, *init_words: str) -> Iterator[Plane]:
    """A control plane that serves, and a node's configuration for it."""
    plane = Plane(home)
    plane.init(*init_words)
    plane.serve()
    try:
        plane.node_config()
        yield plane
    finally:
        plane.stop()


def is_root() -> bool:
    return os.geteuid() == 0
