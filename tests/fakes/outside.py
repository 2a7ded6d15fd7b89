"""Looking at real processes and files from outside: openssl, /proc, hashes, and what a descriptor still holds."""

import base64
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes import traces

PATIENCE_S = 30.0
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def until(happened: Callable[[], bool], what: str, by: "subprocess.Popen[bytes] | None" = None) -> None:
    """Returns as soon as `happened`; for what tells nobody that it has (a file that appears). `by` is to do it."""
    end = time.monotonic() + PATIENCE_S
    while not happened():
        if by is not None and by.poll() is not None:
            raise AssertionError(f"the process ended before {what}: {by.communicate()}")
        assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.005)


def line_with(text: str, process: "subprocess.Popen[bytes]", seen: list[str] | None = None) -> str:
    """The next line on the process's standard error that holds `text`; `seen` gets every line on the way to it."""
    assert process.stderr is not None
    seen = [] if seen is None else seen
    while line := process.stderr.readline():
        seen.append(line.decode())
        if text in seen[-1]:
            return seen[-1]
    raise AssertionError(f"the process ended without saying {text!r}: {seen}")


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str, str]:
    """The exit status of a process that is to end now, and what it wrote since."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.lstat().st_mode):04o}"


def tree(folder: Path) -> dict[str, tuple[str, int, str]]:
    """Mode, owner and hash of everything in `folder`, by name."""
    return {path.name: (mode(path), path.lstat().st_uid, _hash(path)) for path in sorted(folder.iterdir())}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary directory that other users can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="bcd-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections, and that nobody else is given meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def clock_of(when: str) -> dict[str, str]:
    """The environment of a process whose clock shows `when` (UTC) as it starts. The faketime command itself would stay
    between us and the process, and take the signals meant for it."""
    shown = subprocess.run(["faketime", "-f", f"@{when}", "env"], capture_output=True, check=True, text=True).stdout
    found = dict(line.split("=", 1) for line in shown.splitlines() if line.startswith(("LD_PRELOAD=", "FAKETIME=")))
    return found | {"TZ": "UTC"}


# ---- openssl


def openssl(*words: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def text_of(certificate: bytes) -> str:
    """Every field of a certificate, DER, in openssl's words."""
    return openssl("x509", "-inform", "DER", "-noout", "-text", stdin=certificate).decode()


def pin_of(public_key: bytes) -> str:
    """As docs/protocol.md computes it, from a PEM public key."""
    der = openssl("pkey", "-pubin", "-outform", "DER", stdin=public_key)
    return "sha256:" + openssl("dgst", "-sha256", "-r", stdin=der).decode().split()[0]


def public_of_certificate(certificate: bytes, form: str = "DER") -> bytes:
    return openssl("x509", "-inform", form, "-noout", "-pubkey", stdin=certificate)


def public_of_key(pem: bytes) -> bytes:
    return openssl("pkey", "-pubout", stdin=pem)


def chain_in(data: Path) -> list[bytes]:
    """The chain in identity.json, DER."""
    return [base64.b64decode(one) for one in json.loads((data / "identity.json").read_text())["chain"]]


def instant(certificate: bytes, which: str) -> float:
    """`-startdate` or `-enddate` as Unix time."""
    shown = openssl("x509", "-inform", "DER", "-noout", which, stdin=certificate).decode().split("=")[1]
    return float(subprocess.run(["date", "-ud", shown, "+%s"], capture_output=True, check=True).stdout)


# ---- looking for a secret


def needles(secret: bytes) -> list[bytes]:
    """`secret` as it is, and in base64 at each of the three places a byte can have in it."""
    found = [secret, secret.hex().encode()]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret)
        # Without the characters at both ends that depend on what stands beside it.
        found.append(encoded[4 if before else 0 : -4])
    return found


def where(secret: bytes, folders: Iterable[Path]) -> list[str]:
    """The files below `folders` that hold `secret`, or whose name does."""
    assert len(secret) >= 16, "too short to be found by chance"
    wanted = needles(secret)
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            holds = path.is_file() and any(needle in path.read_bytes() for needle in wanted)
            if holds or secret.decode() in path.name:
                found.append(str(path))
    return found


def processes_with(secret: bytes) -> list[str]:
    """The files of /proc, environ and cmdline of every thread of every process, that hold `secret`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        for name in ("environ", "cmdline"):
            try:
                if secret in (path / name).read_bytes():
                    found.append(f"{path}/{name}")
            except OSError:
                # It ended meanwhile.
                continue
    return found


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


# ---- strace


def strace(log: Path, *calls: str) -> tuple[str, ...]:
    return ("strace", "-f", "-qq", "-s", "400", "-e", f"trace={','.join(calls)}", "-o", str(log))


def calls_in(log: Path) -> list[str]:
    """The system calls of a trace, each whole and without its process id."""
    return [re.sub(r"^\d+ +", "", line) for line in traces.calls(log)[0]]


def left_in(pipe: int) -> bytes:
    """What nobody has read out of a pipe whose writer is closed."""
    return os.read(pipe, 1 << 16)
