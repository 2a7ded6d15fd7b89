"""`make demo`: a node's life with the real commands, each its own process, and each step checked from outside.

What a step claims is looked at with openssl, file modes, hashes and exit codes, never by asking bcd's own code. With
`--sabotage STEP` one thing is spoiled between a step's commands and its checks; the demo must then fail there, by name
(`tests/e2e/test_demo.py`).
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import stat
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

    def run(self, *words: str, stdin: str = "", env: dict[str, str] | None = None, shown: str = "") -> Ran:
        """The command, shown with what it printed and how it ended. `shown` is how a person would type it."""
        self.say(f"$ {shown or self.short(' '.join(words))}", "1")
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]] if (BIN / words[0]).exists() else list(words),
            input=stdin,
            env=_environment(env),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 2,
            check=False,
        )
        for line in (done.stdout + done.stderr).splitlines():
            self.say(f"  {self.short(line)}")
        if done.returncode:
            self.say(f"  (exit {done.returncode})", "2")
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, stdin: str = "", env: dict[str, str] | None = None, shown: str = "") -> "Process":
        self.say(f"$ {shown or self.short(' '.join(words))} &", "1")
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        process = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(env),
            text=True,
        )
        self.processes.append(process)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    def check(self, holds: bool, claim: str) -> None:
        """Says the claim, or ends the demo where it does not hold."""
        self.say(f"  {'✓' if holds else '✗'} {claim}", "32" if holds else "31")
        if not holds:
            raise StepFailed(claim)


Process = subprocess.Popen[str]


def _environment(extra: dict[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BCD_")}
    return kept | (extra or {})


# ---- looking from outside


def openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def public_of_key(pem: bytes) -> bytes:
    return openssl("pkey", "-pubout", "-outform", "DER", stdin=pem)


def public_of_certificate(pem: bytes) -> bytes:
    return openssl("pkey", "-pubin", "-outform", "DER", stdin=openssl("x509", "-noout", "-pubkey", stdin=pem))


def chain_of(identity: Path) -> list[bytes]:
    """The certificates in identity.json, PEM."""
    chain = json.loads(identity.read_text())["chain"]
    return [openssl("x509", "-inform", "DER", stdin=base64.b64decode(der)) for der in chain]


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


# ---- the story


@dataclass
class Story:
    stage: Stage
    sabotage: str
    token: str = ""
    node: str = ""

    @property
    def plane(self) -> Path:
        return self.stage.home / "control-plane"

    @property
    def config(self) -> Path:
        return self.stage.home / "etc" / "config.toml"

    def data(self, name: str) -> Path:
        return self.stage.home / name

    def machine(self, name: str) -> dict[str, str]:
        """A machine of its own for bcd-fakehw: two nodes on one machine would be one node to the control plane."""
        path = self.stage.home / f"{name}.machine.json"
        digest = hashlib.sha256(name.encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        claims = {"productUuid": uuid, "boardSerial": f"BRD-{digest[:10]}", "hostname": name}
        path.write_text(json.dumps(claims))
        return {"BCD_FAKEHW_MACHINE": str(path)}

    def spoil(self, step: str, how: Callable[[], object]) -> None:
        if self.sabotage == step:
            self.stage.say(f"  (sabotage: {step})", "33")
            how()

    def bcd(self, command: str, name: str, *words: str, stdin: str = "", shown: str = "") -> Ran:
        where = ("--config", str(self.config), "--data-dir", str(self.data(name)))
        shown = shown and f"{shown} | bcd-fakehw {command} --config etc/config.toml --data-dir {name}"
        return self.stage.run("bcd-fakehw", command, *where, *words, stdin=stdin, env=self.machine(name), shown=shown)

    def plane_run(self, *words: str, shown: str = "") -> Ran:
        return self.stage.run("bcd-controlplane", *words, "--dir", str(self.plane), shown=shown)

    # 1
    def control_plane(self) -> None:
        check = self.stage.check
        self.stage.run(
            "bcd-controlplane",
            "init",
            "--dir",
            str(self.plane),
            "--trust-domain",
            "demo.example",
            "--host",
            "127.0.0.1",
        )
        server = self.stage.start("bcd-controlplane", "serve", "--dir", str(self.plane), "--join", "127.0.0.1:0")
        assert server.stdout is not None
        ready = server.stdout.readline()
        self.stage.say(f"  {ready.rstrip()}")
        check(ready.startswith("ready"), "the server says ready")
        self.plane_run("node-config", "--out", str(self.config.parent), "--data-dir", "/var/lib/bcd")
        self.spoil("control plane", lambda: _edit(self.config, r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64))
        secrets = [path for path in self.plane.iterdir() if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
        check(bool(secrets) and {mode(path) for path in secrets} == {"0600"}, "every private key is 0600")
        check(mode(self.plane) == "0700", "and their directory 0700")
        ca = (self.config.parent / "serving-ca.pem").read_bytes()
        pin = "sha256:" + hashlib.sha256(public_of_certificate(ca)).hexdigest()
        check(f'serving_ca_spki_pin = "{pin}"' in self.config.read_text(), "the pin is what openssl computes of the CA")

    # 2
    def join_token(self) -> None:
        check = self.stage.check
        made = self.plane_run("token", "create", "--site", "lab")
        self.token = made.out.strip()
        self.spoil("token", lambda: (self.plane / "notes").write_text(self.token))
        check(made.status == 0 and made.out == self.token + "\n", "nothing but the token is printed")
        check(bool(re.fullmatch(r"bcjt_[a-z2-7]{10}_[A-Za-z0-9_-]{43}", self.token)), "it looks like a token")
        secret = self.token.rsplit("_", 1)[1] if self.token.count("_") == 2 else self.token[16:]
        kept = [path for path in self.plane.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        check(not kept, "its secret is in no file of the control plane: only a hash is kept")

    # 3
    def join(self) -> None:
        check = self.stage.check
        done = self.bcd("join", "node-a", stdin=self.token + "\n", shown="echo $TOKEN")
        data = self.data("node-a")
        self.spoil(
            "join",
            lambda: (data / "node.key").write_bytes(
                openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
            ),
        )
        said = re.fullmatch(
            r"joined as (n-[a-z2-7]{10}) \(site lab, role node\); certificate valid until (\S+)\n", done.out
        )
        check(done.status == 0 and said is not None, "exit 0, and one line says as whom")
        assert said is not None
        self.node = said[1]
        check(mode(data) == "0700", "the data directory is 0700")
        check(
            {p.name: mode(p) for p in data.iterdir()} == {"identity.json": "0600", "node.key": "0600"},
            "two files, 0600",
        )
        leaf, *issuers = chain_of(data / "identity.json")
        key = (data / "node.key").read_bytes()
        check(public_of_key(key) == public_of_certificate(leaf), "openssl: the certificate certifies node.key")
        names = openssl("x509", "-noout", "-subject", "-ext", "subjectAltName,extendedKeyUsage", stdin=leaf).decode()
        check(f"URI:spiffe://demo.example/site/lab/node/{self.node}" in names, "openssl: its SPIFFE ID")
        check(f"CN = {self.node}, OU = bc-role:node" in names, "openssl: its node and its role")
        self._verify(leaf, issuers)

    def _verify(self, leaf: bytes, issuers: list[bytes]) -> None:
        root = next(iter(sorted(self.plane.glob("*root*.pem"))), None)
        self.stage.check(root is not None, "the node root is there")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "leaf").write_bytes(leaf)
            (Path(folder) / "issuers").write_bytes(b"".join(issuers))
            words = ["verify", "-CAfile", str(root), "-untrusted", f"{folder}/issuers", f"{folder}/leaf"]
            done = subprocess.run(["openssl", *words], capture_output=True, check=False)
        self.stage.check(done.returncode == 0, "openssl: the chain leads to the node root")

    # 4
    def already_joined(self) -> None:
        check = self.stage.check
        data = self.data("node-a")
        before = hashes(data)
        done = self.bcd("join", "node-a")
        self.spoil("already joined", lambda: (data / "identity.json").open("a").write("\n"))
        check(
            done.status == 0 and done.out == f"already joined as {self.node} (site lab, role node)\n",
            "exit 0: a join unit may run at every boot",
        )
        check(hashes(data) == before, "no byte on disk changed, and no token was asked for")

    # 5
    def status(self) -> None:
        check = self.stage.check
        self.bcd("status", "node-a")
        identity = self.data("node-a") / "identity.json"
        self.spoil("status", lambda: identity.write_bytes(identity.read_bytes()[:100]))
        done = self.bcd("status", "node-a", "--json")
        check(done.status == 0, "exit 0: a node would start")
        said = json.loads(done.out)
        ends = openssl("x509", "-noout", "-enddate", "-dateopt", "iso_8601", stdin=chain_of(identity)[0]).decode()
        check(said["notAfter"] == ends.strip().removeprefix("notAfter=").replace(" ", "T"), "openssl: the same end")
        check(said["nodeKey"] == "file" and said["nodeId"] == self.node, "the key's place and the node's name")
        done = self.bcd("doctor", "node-a")
        check(
            done.status == 0 and not re.search(r"^(fail|warn) ", done.out, re.MULTILINE), "doctor finds nothing wrong"
        )

    # 6
    def second_use(self) -> None:
        check = self.stage.check
        token = self.token
        if self.sabotage == "second use":
            self.stage.say("  (sabotage: second use)", "33")
            token = self.plane_run("token", "create", "--site", "lab").out.strip()
        done = self.bcd("join", "node-b", stdin=token + "\n", shown="echo $TOKEN")
        check(done.status == 77, "exit 77: refused for good")
        found = re.search(r"refusal id ([0-9a-f]{32})", done.err)
        check(found is not None and done.err.startswith("Join refused"), "the node is told an id, and nothing else")
        assert found is not None
        check(not (self.data("node-b") / "identity.json").exists(), "and has no identity")
        done = self.plane_run("refusals", "show", found[1])
        check("token-used-up" in done.out, "the control plane's operator is told why")

    # 7
    def crash(self) -> None:
        check = self.stage.check
        token = self.plane_run(
            "token", "create", "--site", "lab", shown="TOKEN=$(bcd-controlplane token create --site lab)"
        ).out.strip()
        server, data = self.stage.processes[0], self.data("node-c")
        self.stage.say("  the control plane stops answering; the power goes when the request is on disk", "2")
        server.send_signal(signal.SIGSTOP)
        node = self.stage.start(
            "bcd-fakehw", "join", "--config", str(self.config), "--data-dir", str(data),
            stdin=token + "\n", env=self.machine("node-c"),
            shown="echo $TOKEN | bcd-fakehw join --config etc/config.toml --data-dir node-c",
        )  # fmt: skip
        pending = data / "join.pending"
        _wait(pending.exists, "the request to be on disk")
        node.kill()
        node.wait()
        self.stage.say(f"  kill -9 {node.pid}", "2")
        server.send_signal(signal.SIGCONT)
        key = json.loads(pending.read_text())["key"].encode()
        check(mode(pending) == "0600", "the request is kept, 0600")
        check(token.encode() not in pending.read_bytes(), "and holds the token only sealed")
        self.spoil("crash", pending.unlink)
        done = self.bcd("join", "node-c")
        check(done.status == 0 and done.out.startswith("joined as "), "the next join needs no token")
        check((data / "node.key").read_bytes() == key, "and has the key that was asked for before the crash")
        check(sorted(p.name for p in data.iterdir()) == ["identity.json", "node.key"], "nothing else is left")
        leaf = chain_of(data / "identity.json")[0]
        check(public_of_key(key) == public_of_certificate(leaf), "openssl: the certificate certifies node.key")

    def steps(self) -> list[tuple[str, str, Callable[[], None]]]:
        return [
            ("control plane", "A control plane: keys, a server, a node's configuration", self.control_plane),
            ("token", "A join token, for one machine", self.join_token),
            ("join", "The machine joins", self.join),
            ("already joined", "Joining again changes nothing", self.already_joined),
            ("status", "What is what", self.status),
            ("second use", "A token works once", self.second_use),
            ("crash", "The power goes in the middle of a join", self.crash),
        ]


def _edit(path: Path, pattern: str, new: str) -> None:
    path.write_text(re.sub(pattern, new, path.read_text(), count=1))


def _wait(happened: Callable[[], bool], what: str) -> None:
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


def main() -> int:
    names = [name for name, _, _ in Story(Stage(Path("/")), "").steps()]
    parser = argparse.ArgumentParser(description="A node's life, step by step, checked from outside.")
    parser.add_argument(
        "--sabotage", metavar="STEP", choices=names, default="", help=f"spoil one of: {', '.join(names)}"
    )
    parser.add_argument("--list", action="store_true", help="only name the steps")
    given = parser.parse_args()
    if given.list:
        print("\n".join(names))
        return 0
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    with stage(colour) as built:
        story = Story(built, given.sabotage)
        for number, (name, title, act) in enumerate(story.steps(), 1):
            built.say(f"\n{number}. {title}", "1;36")
            try:
                act()
            except Exception as error:  # whatever it is, the step did not do what it says
                built.say(f"\ndemo failed at step: {name}: {type(error).__name__}: {error}", "31")
                return 1
    print(f"\nEvery step did what it says ({len(names)} steps). Nothing is left running, and no file is left.")
    return 0


if __name__ == "__main__":
    # Ended like Ctrl-C, so that the server goes and the directory with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())
