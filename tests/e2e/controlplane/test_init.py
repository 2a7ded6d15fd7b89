"""What `init` leaves on the disk, however it ends."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.plane import Plane

# Runs the real command in a process of its own for each moment: killed at its n-th rename, before or after it happens
# (the moments at which a file comes to be), and then once more to its end.
DRIVER = """
import json, os, signal, sys
from bcd.controlplane.adapters.files import initialize
from bcd.controlplane.cli import init
from bcd.controlplane.cli.main import main

def in_process(folder, dies_at, after):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        done, rename = 0, os.rename
        def counted(*args, **kwargs):
            nonlocal done
            done += 1
            if done == dies_at and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(*args, **kwargs)
            if done == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
        os.rename = counted
        os._exit(main(["init", "--dir", folder, "--trust-domain", "example.test"]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def contents(folder):
    return {name: open(f"{folder}/{name}", "rb").read().hex() for name in os.listdir(folder)}

told = []
for dies_at, after in [*((n, False) for n in range(1, 11)), (9, True)]:
    folder = f"{sys.argv[1]}/{dies_at}-{after}"
    killed = in_process(folder, dies_at, after)
    left = contents(folder)
    told.append([dies_at, after, killed, left, in_process(folder, 0, False), contents(folder)])
print(json.dumps(told))
"""
# Five keys, three certificates, the configuration; the store makes its own file.
RENAMES = 9


def files(directory: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


def openssl(*words: str) -> str:
    return subprocess.run(["openssl", *words], capture_output=True, text=True, check=True).stdout


def test_the_directory_and_its_keys_are_the_owners_alone(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"issuing-ca.key", "join-signing.key", "join-encryption.key", "serving-ca.key", "store.db"} <= set(modes)


def test_a_file_is_private_from_birth_and_durable_before_the_next(tmp_path: Path) -> None:
    """Under the loosest umask, every file that is opened for writing has its mode from the call that creates it."""
    trace = tmp_path / "trace"
    done = commands.run(
        "bcd-controlplane",
        *("init", "--dir", str(tmp_path / "d"), "--trust-domain", "example.test"),
        prefix=(
            "sh",
            "-c",
            'umask 0; exec "$@"',
            "sh",
            "strace",
            "-qq",
            "-o",
            str(trace),
            "-y",
            "-e",
            "trace=openat,mkdir,fsync,rename,renameat,renameat2",
        ),
    )
    assert done.status == 0, done.err
    lines = trace.read_text().splitlines()
    assert any(f'mkdir("{tmp_path}/d", 0700)' in line for line in lines)
    # Each file is on the disk before it has its name, and its name before anything else happens.
    for number, line in enumerate(lines):
        if "rename" in line:
            assert re.search(r"fsync\(\d+<[^>]*/\.cp-", lines[number - 1]), lines[number - 1]
            assert re.search(rf"fsync\(\d+<{tmp_path}/d>\)", lines[number + 1]), lines[number + 1]
    assert sum("rename" in line for line in lines) == RENAMES
    created: dict[str, str] = {}
    for line in lines:
        if (opened := re.search(r'"([^"]+)", \S*O_CREAT\S*, (0\d+)\)', line)) and not opened[1].startswith("/dev/"):
            # SQLite names a mode for a file that is there already; only the call that makes it counts.
            created.setdefault(opened[1].rpartition("/")[2], opened[2])
    assert len(created) > RENAMES
    assert set(created.values()) == {"0600"}, created


def test_a_second_init_changes_nothing(fresh: Plane) -> None:
    before = files(fresh.directory)
    done = commands.run("bcd-controlplane", "init", "--dir", str(fresh.directory), "--trust-domain", "other.test")
    assert done.status == 77
    assert files(fresh.directory) == before


def test_killed_at_any_file_the_next_init_goes_on_with_the_keys_there_are(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], capture_output=True, text=True, check=True)
    moments = json.loads(done.stdout)
    # There is no tenth file; and after the ninth nothing is left to do.
    assert [killed for *_, killed, _, _, _ in moments] == [-signal.SIGKILL] * RENAMES + [0, -signal.SIGKILL]
    for dies_at, after, _, left, again, now in moments:
        # Once the configuration is there, all is: the next init has nothing to go on with.
        whole = dies_at > RENAMES or (dies_at == RENAMES and after)
        assert again == (77 if whole else 0), (dies_at, after)
        kept = {name: data for name, data in left.items() if name.endswith((".key", ".pem")) and name[0] != "."}
        assert len(kept) == min(dies_at - (not after), RENAMES - 1)
        assert kept.items() <= now.items(), (dies_at, after)
        assert not [name for name in now if name.startswith(".")]
    last = tmp_path / f"{RENAMES}-False"
    assert commands.run("bcd-controlplane", "token", "list", "--dir", str(last)).status == 0


def test_the_authorities_are_what_they_should_be_to_openssl(made: Path) -> None:
    root, issuing, serving = (str(made / f"{name}.pem") for name in ("node-root-ca", "issuing-ca", "serving-ca"))
    assert "OK" in openssl("verify", "-x509_strict", "-CAfile", root, issuing)
    assert "OK" in openssl("verify", "-x509_strict", "-CAfile", serving, serving)
    for unrelated, anchor in ((serving, root), (issuing, serving)):
        done = subprocess.run(["openssl", "verify", "-CAfile", anchor, unrelated], capture_output=True, check=False)
        assert done.returncode != 0
    text = openssl("x509", "-in", issuing, "-noout", "-text")
    assert "CA:TRUE, pathlen:0" in text
    assert "ecdsa-with-SHA256" in text
    assert "NIST CURVE: P-256" in text


def test_json_says_what_was_made(tmp_path: Path) -> None:
    done = commands.run(
        *("bcd-controlplane", "init", "--dir", str(tmp_path / "d"), "--trust-domain", "example.test"),
        *("--host", "plane.example", "--host", "2001:DB8::1", "--leaf-lifetime", "30m", "--json"),
    )
    assert json.loads(done.out) == {
        "dir": str(tmp_path / "d"),
        "trustDomain": "example.test",
        "hosts": ["plane.example", "2001:db8::1"],
        "leafLifetime": "30m",
    }


@pytest.mark.parametrize(
    "words",
    [
        ("--trust-domain", "Example"),
        ("--trust-domain", "example.test", "--host", "a b"),
        ("--trust-domain", "example.test", "--leaf-lifetime", "19s"),
        ("--trust-domain", "example.test", "--leaf-lifetime", "25h"),
        ("--trust-domain", "example.test", "--leaf-lifetime", "tomorrow"),
        (),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_and_nothing_is_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = commands.run("bcd-controlplane", "init", "--dir", str(tmp_path / "d"), *words)
    assert done.status == 2
    assert done.err.startswith("bcd-controlplane init: ")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "d").exists()
