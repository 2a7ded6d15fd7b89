"""The states of a TPM that a message speaks of, seen by a real `bcd-fakehw tpm identify` or by what uses a key."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bcd.adapters.tpm.client import Key
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.structures import Handle
from tests.fakes import commands, swtpm
from tests.fakes.commands import Ran
from tests.fakes.plane import Machine, Plane
from tests.fakes.swtpm import SwTpm

# Whole answers, of ten bytes: the tag of a TPM 1.2, "send it again", and a chip that failed its self-test.
OLD = bytes.fromhex("00c40000000a0000001e")
RETRY = bytes.fromhex("80010000000a00000922")
FAILURE = bytes.fromhex("80010000000a00000101")
WRONG_PASSWORDS = 5


def identify(plane: Plane, env: Mapping[str, str], prefix: Sequence[str] = ()) -> Ran:
    return commands.run("bcd-fakehw", "tpm", "identify", "--config", str(plane.config), env=env, prefix=prefix)


@contextmanager
def fresh(*, started: bool = True) -> Iterator[SwTpm]:
    # A Unix socket's path has room for 107 bytes, which a test's own directory may not leave.
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home), started=started) as tpm:
        yield tpm


def with_keys(tpm: SwTpm) -> dict[str, str]:
    """The environment in which new node keys go into it."""
    return {**tpm.env, "BCD_FAKEHW_TPM_KEYS": "1"}


def joined(plane: Plane, tpm: SwTpm) -> Machine:
    """A machine that has joined, with its node key in `tpm`."""
    machine = plane.machine()
    done = machine.run("join", stdin=f"{plane.token()}\n".encode(), env=with_keys(tpm))
    assert done.status == 0, done.err
    return machine


def answered(plane: Plane, reply: bytes) -> Ran:
    with tempfile.TemporaryDirectory() as home, swtpm.answering(Path(home) / "tpm", reply) as env:
        return identify(plane, env)


def absent(plane: Plane) -> Ran:
    return identify(plane, {"BCD_FAKEHW_TPM": "none"})


def not_one(plane: Plane) -> Ran:
    """A path by mistake."""
    return identify(plane, {"BCD_FAKEHW_TPM": f"sim:{plane.config}"})


def old(plane: Plane) -> Ran:
    """B36."""
    return answered(plane, OLD)


def forbidden(plane: Plane) -> Ran:
    with fresh() as tpm:
        tpm.home.chmod(0o755)
        Path(tpm.path).chmod(0o600)
        return identify(plane, tpm.env, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])


def busy(plane: Plane) -> Ran:
    """B29."""
    return answered(plane, RETRY)


def not_started(plane: Plane) -> Ran:
    """B40: what a TPM is after a resume without the firmware."""
    with fresh(started=False) as tpm:
        return identify(plane, tpm.env)


def password(plane: Plane) -> Ran:
    """B34."""
    with fresh() as tpm:
        tpm.tool("tpm2_changeauth", "-c", "owner", "secret")
        return identify(plane, tpm.env)


def hierarchy_off(plane: Plane) -> Ran:
    with fresh() as tpm:
        tpm.tool("tpm2_hierarchycontrol", "-C", "p", "shEnable", "clear")
        return identify(plane, tpm.env)


def locked_out(plane: Plane) -> Ran:
    """An index that a wrong password counts for, where the certificate should be."""
    with fresh() as tpm:
        index = "0x01C00002"
        attributes = "ownerwrite|authread|authwrite"
        tpm.tool("tpm2_nvdefine", index, "-C", "o", "-s", "8", "-a", attributes, "-p", "secret")
        (tpm.home / "content").write_bytes(bytes(8))
        tpm.tool("tpm2_nvwrite", index, "-C", "o", "-i", "content")
        for _ in range(WRONG_PASSWORDS):
            tpm.tool("tpm2_nvread", index, "-C", index, "-P", "wrong", check=False)
        return identify(plane, tpm.env)


def full(plane: Plane) -> Ran:
    """B30: three objects of somebody else's."""
    with fresh() as tpm:
        client = tpm.client()
        for number in range(3):
            client.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
        client._link.close()
        return identify(plane, tpm.env)


def failed(plane: Plane) -> Ran:
    return answered(plane, FAILURE)


def key_unavailable(plane: Plane) -> Ran:
    """B40: the node starts where the firmware has not started the TPM."""
    with fresh() as tpm:
        machine = joined(plane, tpm)
    with fresh(started=False) as tpm:
        return machine.run("node", env=with_keys(tpm))


def key_mismatch(plane: Plane) -> Ran:
    with fresh() as tpm:
        machine = joined(plane, tpm)
        tpm.tool("tpm2_clear")
        return machine.run("node", env=with_keys(tpm))


def no_software_tpm(plane: Plane) -> Ran:
    return commands.run("bcd-fakehw", "tpm", "clear", "--state", str(plane.config))
