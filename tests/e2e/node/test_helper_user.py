"""`[helper]`: the identity belongs to the user the node runs as, and root keeps a record (decisions 11 and 12)."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from tests.fakes.outside import AS_NOBODY, NOBODY, calls_in, chain_in, pin_of, strace, tree
from tests.fakes.plane import Machine, Plane


@pytest.fixture
def helped(plane: Plane) -> "Helped":
    """`bcd` on this machine, its node to run as nobody."""
    machine = plane.machine(program="bcd")
    shutil.copytree(plane.config.parent, etc := plane.home / f"etc-{machine.name}")
    record = plane.home / f"record-{machine.name}"
    with (etc / "config.toml").open("a") as config:
        config.write(f'\n[helper]\nuser = "nobody"\nrecord_dir = "{record}"\n')
    return Helped(machine, etc / "config.toml", record)


class Helped:
    def __init__(self, machine: Machine, config: Path, record: Path) -> None:
        self.machine = machine
        self.config = config
        self.record = record
        self.data = machine.data

    def join(self, prefix: Sequence[str] = ()) -> "tuple[int, str, str]":
        token = self.machine.plane.token("--allow-reclaim")
        config = ("--config", str(self.config))
        done = self.machine.run("join", *config, stdin=f"{token}\n".encode(), prefix=prefix)
        return done.status, done.out, done.err

    def run(self, command: str, prefix: Sequence[str] = ()) -> "tuple[int, str, str]":
        done = self.machine.run(command, "--config", str(self.config), prefix=prefix)
        return done.status, done.out, done.err


def test_a_directory_that_is_roots_is_handed_over_with_its_files(helped: Helped) -> None:
    """Decision 11: who may not enter it can read none of them. Made by hand, or by a restored backup."""
    helped.data.mkdir(mode=0o700)
    assert helped.join()[0] == 0
    assert helped.data.stat().st_uid == NOBODY
    assert helped.run("status", prefix=AS_NOBODY)[0] == 0
    os.chown(helped.data, 0, 0)
    status, _, err = helped.run("status")
    assert status == 78
    assert err == f"the data directory {helped.data} belongs to root, want nobody: chown nobody {helped.data}\n"
    assert helped.run("join")[0] == 0
    assert helped.data.stat().st_uid == NOBODY


def test_the_files_belong_to_the_node_from_birth_and_the_record_to_root(helped: Helped, tmp_path: Path) -> None:
    """Specification, "What the join does", 5 and 7; decisions 2 and 12: owner set before the rename; the record before
    the identity."""
    log = tmp_path / "trace"
    eyes = strace(log, "fchown", "lchown", "chown", "fchownat", "rename", "renameat", "renameat2", "fsync", "openat")
    status, out, err = helped.join(prefix=eyes)
    assert (status, out[:12], err) == (0, "joined as n-", "")
    assert tree(helped.data).keys() == {"identity.json", "node.key"}
    assert {found[:2] for found in tree(helped.data).values()} == {("0600", NOBODY)}
    assert (helped.data.stat().st_uid, oct(helped.data.stat().st_mode)[-3:]) == (NOBODY, "700")
    assert tree(helped.record).keys() == {"join-response.pb"}
    assert tree(helped.record)["join-response.pb"][:2] == ("0600", 0)
    assert (helped.record.stat().st_uid, oct(helped.record.stat().st_mode)[-3:]) == (0, "700")

    calls = calls_in(log)
    named = [
        (number, found[1], found[2])
        for number, call in enumerate(calls)
        if (found := re.match(r'rename\w*\(.*"(\.bcd-[^"]*)", .*"([^"]+)"', call))
    ]
    names = [name for _, _, name in named]
    assert names == ["join.pending", "join-response.pb", "node.key.next", "identity.json"]
    for number, temporary, name in named:
        (born,) = [at for at, call in enumerate(calls[:number]) if f'"{temporary}"' in call and "O_CREAT" in call]
        assert "O_EXCL" in calls[born]
        assert "O_NOFOLLOW" in calls[born]
        assert calls[born].split(") = ")[0].endswith(", 0600")
        between = calls[born:number]
        given_away = [call for call in between if call.startswith("fchown(")]
        assert [f", {NOBODY}, " in call for call in given_away] == ([] if name == "join-response.pb" else [True])
        assert any(call.startswith("fsync(") for call in between)
    assert not any(call.startswith(("chown(", "fchownat(")) for call in calls), "never by a path that could be a link"


def test_the_record_is_the_answer_as_signed(helped: Helped) -> None:
    """Specification, "What the join does", 5: "the verified `JoinResponse` is written as signed"."""
    assert helped.join()[0] == 0
    statement = pb.SignedStatement.FromString((helped.record / "join-response.pb").read_bytes())
    key = serialization.load_der_public_key(statement.signer_spki)
    assert isinstance(key, ec.EllipticCurvePublicKey)
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert f'join_signing_key_pin = "{pin_of(pem)}"' in helped.config.read_text()
    r, s = statement.signature[:32], statement.signature[32:]
    signature = utils.encode_dss_signature(int.from_bytes(r), int.from_bytes(s))
    signed = b"bc-statement-v1\0join-response\0" + statement.payload
    key.verify(signature, signed, ec.ECDSA(hashes.SHA256()))
    answer = pb.JoinResponse.FromString(statement.payload)
    assert list(answer.chain) == chain_in(helped.data)


def test_no_record_no_identity(helped: Helped) -> None:
    """Specification, "What the join does", 5: "A failed record fails the join and leaves no identity"."""
    helped.record.write_text("in the way")
    status, out, err = helped.join()
    line = (
        f"not a directory: {helped.record} (a file, or a symbolic link): "
        "name the directory itself in config.toml, or move this out of the way\n"
    )
    assert (status, out, err) == (78, "", line)
    assert tree(helped.data).keys() == {"join.pending"}
    helped.record.unlink()
    status, out, _ = helped.run("join")
    assert (status, out[:12]) == (0, "joined as n-"), "the same join goes on"
    assert tree(helped.record).keys() == {"join-response.pb"}


@pytest.mark.parametrize("mount", ["read-only", "full"])
def test_a_record_that_cannot_be_written_is_told(mount: str, helped: Helped) -> None:
    """The same on a disk that is read-only or full; the path is in the message."""
    helped.record.mkdir(mode=0o700)
    options = "ro" if mount == "read-only" else "size=4k,nr_inodes=1"
    script = f'mount -t tmpfs -o {options} none {helped.record} && exec "$@"'
    status, out, err = helped.join(prefix=("unshare", "--mount", "sh", "-c", script, "sh"))
    assert (status, out, len(err.splitlines())) == (75, "", 1)
    if mount == "read-only":
        assert err == f"read-only file system: {helped.record}: remount it writable, then run it again\n"
    else:
        full = rf"No space left on device: {helped.record}/\S+ \(\d+ bytes free\): make room, then run it again\n"
        assert re.fullmatch(full, err)
    assert tree(helped.data).keys() == {"join.pending"}
    assert helped.run("join")[0] == 0


def test_what_a_restored_backup_gave_to_root_is_told_and_joined_back(helped: Helped) -> None:
    """B13: no fallback to re-join; `join` run by root repairs the hand-over."""
    assert helped.join()[0] == 0
    before = tree(helped.data)
    assert helped.run("status")[0] == 0
    assert helped.run("status", AS_NOBODY)[0] == 0, "the node's user can read its identity"
    for name in ("node.key", "identity.json"):
        path = helped.data / name
        os.chown(path, 0, 0)
        said = f"{name}: owner root, want nobody: chown nobody {path}\n"
        status, _, err = helped.run("status")
        assert (status, err) == (78, said)
        status, out, _ = helped.run("doctor")
        command = said.strip().rpartition(": ")[2]
        assert (status, f"{name}: owner root, want nobody ({command})" in out) == (1, True)
        status, _, err = helped.run("status", AS_NOBODY)
        assert (status, err) == (77, f"permission denied: {path}: run it as root\n")
        status, out, err = helped.run("join")
        assert (status, out[:14]) == (0, "already joined")
        assert err.endswith(f"info handed over to the node's user file={name}\n")
        assert tree(helped.data) == before
        os.chown(path, 0, 0)
        subprocess.run(command.split(), check=True)
        assert helped.run("status")[0] == 0


def test_a_link_in_place_of_the_key_changes_nothing_behind_it(helped: Helped, tmp_path: Path) -> None:
    """Specification, "What the join does", 7: "a name swapped for a symlink changes only the link"."""
    assert helped.join()[0] == 0
    target = tmp_path / "shadow"
    target.write_bytes((helped.data / "node.key").read_bytes())
    target.chmod(0o600)
    (helped.data / "node.key").unlink()
    (helped.data / "node.key").symlink_to(target)
    line = f"{helped.data}/node.key is not a regular file: move it out of the way, then run it again\n"
    status, out, err = helped.run("join")
    assert (status, out, err) == (78, "", line)
    assert (target.stat().st_uid, (helped.data / "node.key").lstat().st_uid) == (0, 0)


def test_without_a_helper_there_is_no_record(plane: Plane) -> None:
    """The negative twin of the record: `[helper]` alone asks for one."""
    machine = plane.machine(program="bcd")
    assert machine.join(plane.token("--allow-reclaim")).status == 0
    assert {uid for _, uid, _ in tree(machine.data).values()} == {0}
    assert not list(plane.home.glob(f"record-{machine.name}"))
