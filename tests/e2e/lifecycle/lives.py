"""Real nodes before real control planes: started, waited for by what they log, killed, and judged from outside."""

import base64
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bcd.controlplane.adapters.admin.client import Client
from bcd.controlplane.adapters.files.directory import Directory
from bcd.controlplane.domain import admin
from tests.e2e.lifecycle.gate import Gate
from tests.fakes.ending import seconds_to_end
from tests.fakes.plane import Machine, Plane

PATIENCE_S = 120.0
CALLED_A_COPY = "node.cloned"


class Running:
    """A `bcd-fakehw node` at work; its log is read as it comes."""

    def __init__(
        self, machine: Machine, *, config: Path | None = None, env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:  # fmt: skip
        where = ("--config", str(config)) if config is not None else ()
        self.process = machine.start("node", *where, env=dict(env or {}), prefix=prefix)
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line.decode().rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def wait(self, text: str, times: int = 1, since: int = 0, within_s: float = PATIENCE_S) -> str:
        """The `times`-th line from number `since` on that matches `text`, as soon as it is there."""
        end = time.monotonic() + within_s
        with self._news:
            while True:
                found = [line for line in self.lines[since:] if re.search(text, line)]
                if len(found) >= times:
                    return found[times - 1]
                if self._over or not self._news.wait(end - time.monotonic()):
                    shown = "\n".join(self.lines)
                    when = "before it ended" if self._over else "in time"
                    raise AssertionError(f"no {times} x {text!r} {when}:\n{shown}")

    def count(self, text: str) -> int:
        return sum(re.search(text, line) is not None for line in self.lines)

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def ends(self, within_s: float = PATIENCE_S) -> int:
        """Its exit status, once it ended by itself."""
        status = self.process.wait(timeout=within_s)
        self._reader.join(timeout=10)
        self._close()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.ends()

    def stop(self) -> float:
        """SIGTERM; how long it took, and it took it well."""
        took_s = seconds_to_end(self.process, signal.SIGTERM)
        status = self.ends()
        assert status == 0, f"exit {status}: {self.lines[-5:]}"
        return took_s

    def _close(self) -> None:
        for name in ("stdin", "stdout", "stderr"):
            stream = getattr(self.process, name)
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
            setattr(self.process, name, None)


def ask_renewal(plane: Plane, node: str | None = None) -> None:
    """`bcd-controlplane nodes renew-now`, without a process for it."""
    _admin(plane)(admin.AskRenewal(node, "moved"))


def _admin(plane: Plane) -> Client:
    def nobody(command: object) -> object:
        raise AssertionError("no control plane runs here")

    return Client(Directory(str(plane.directory)), nobody, lambda: None)


def start_plane(home: Path, *init_words: str, grace: str | None = None, host: str | None = None) -> Plane:
    """A control plane that serves; `grace` seconds after its replacement a certificate in use is a copy's."""
    home.mkdir(parents=True, exist_ok=True)
    plane = Plane(home)
    if host is None:
        plane.init(*init_words)
    else:
        plane.admin("init", "--trust-domain", "example.test", "--host", host, *init_words)
    if grace is not None:
        change_settings(plane, "retired_grace", f'"{grace}"')
    return plane


def change_settings(plane: Plane, key: str, value: str) -> None:
    path = plane.directory / "controlplane.toml"
    text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", path.read_text(), flags=re.MULTILINE)
    assert count == 1
    path.write_text(text)


def gateway_of(plane: Plane) -> int:
    """The gateway's port."""
    (port,) = re.findall(r'^gateway = ".*:(\d+)"', plane.config.read_text(), re.MULTILINE)
    return int(port)


@contextmanager
def gate(plane: Plane, home: Path) -> Iterator[tuple[Gate, Path]]:
    """A gate before the plane's gateway, and the configuration of a node that goes through it."""
    port = gateway_of(plane)
    made = Gate(("127.0.0.1", port))
    home.mkdir(parents=True)
    for file in plane.config.parent.iterdir():
        data = file.read_bytes()
        (home / file.name).write_bytes(data.replace(f":{port}".encode(), f":{made.port}".encode()))
    try:
        yield made, home / "config.toml"
    finally:
        made.close()


def joined(plane: Plane, name: str) -> tuple[Machine, str]:
    """A machine that has joined, and its node id."""
    machine = plane.machine(name)
    done = machine.join(plane.token())
    assert done.status == 0, done.err
    return machine, done.out.split()[2]


def judge(plane: Plane, machine: Machine, node: str) -> None:
    """After a node ended: a join puts right what it was ended in and finds it joined, openssl says that key and
    certificate match, and the control plane has called nobody a copy."""
    again = machine.join()
    assert (again.status, again.out.split()[:4]) == (0, ["already", "joined", "as", node]), again
    found = machine.files()
    assert not [name for name in found if name.startswith(".bcd-") or name == "node.key.next"]
    assert public_key_of_leaf(found["identity.json"]) == _openssl("pkey", "-pubout", stdin=found["node.key"])
    assert CALLED_A_COPY not in kinds_of(plane, node)


def identity_files(machine: Machine) -> dict[str, bytes]:
    """What the identity consists of, while a node writes beside it."""
    names = ("identity.json", "node.key", "node.key.next")
    return {name: (machine.data / name).read_bytes() for name in names if (machine.data / name).exists()}


def until_stored(machine: Machine, before: Mapping[str, bytes]) -> None:
    """What a Welcome told is on the disk: a thread of its own writes it, after "session up" is logged."""
    end = time.monotonic() + PATIENCE_S
    while identity_files(machine) == before:
        assert time.monotonic() < end, "what the Welcome told was never stored"
        time.sleep(0.02)


def public_key_of_leaf(identity: bytes) -> bytes:
    return _openssl("x509", "-inform", "DER", "-noout", "-pubkey", stdin=leaf_of(identity))


def leaf_of(identity: bytes) -> bytes:
    return base64.b64decode(json.loads(identity)["chain"][0])


def serial_of(machine: Machine) -> str:
    shown = _openssl(
        "x509", "-inform", "DER", "-noout", "-serial", stdin=leaf_of(identity_files(machine)["identity.json"])
    )
    return shown.decode().strip().removeprefix("serial=").lower().zfill(32)


def kinds_of(plane: Plane, node: str) -> list[str]:
    """What the audit log has of a node, oldest first."""
    events = plane.json("audit", "tail", "-n", "10000")
    assert isinstance(events, list)
    return [event["kind"] for event in events if event["detail"].get("node") == node]


def renewals_of(plane: Plane, node: str) -> int:
    return kinds_of(plane, node).count("node.renewed")


def until_log(plane: Plane, text: str, times: int = 1, within_s: float = PATIENCE_S) -> None:
    """The control plane's log has it."""
    end = time.monotonic() + within_s
    while len(re.findall(text, plane.log.read_text())) < times:
        assert time.monotonic() < end, f"the control plane never said {text!r}"
        time.sleep(0.02)


def _openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def killed(plane: Plane) -> None:
    """Waits until the control plane was killed by somebody."""
    assert plane.server is not None
    assert plane.server.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    plane.server.communicate()
    plane.server = None
