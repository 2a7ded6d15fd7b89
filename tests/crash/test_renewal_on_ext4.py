"""The life of a joined node on a real ext4, cut after every system call that changes it: the image is copied while it
is mounted, and the copy is mounted (which replays its journal), loaded, and the node in it renews and says Hello."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.fs.syscalls import OsSyscalls
from tests.crash import mounts, renewals
from tests.crash.judge import Lost
from tests.crash.recorder import Recorder
from tests.crash.renewals import CASES, Before, before, judge_found, leaf_of, life_on, renew, renew_after_hello
from tests.crash.test_join_on_ext4 import NoDirectoryFsync, NoFileFsync
from tests.fakes.controlplane.memory_store import MemoryRecords
from tests.fakes.lives import HELLO_SENT, RENEW_SENT, Life

_DIRECTORY = "lib/bcd"
# Without ext4's own guess that who renames over a file wants its content safe: no other file system promises it.
_PLAIN = ("-o", "loop,commit=300,noauto_da_alloc")


@pytest.mark.parametrize("name", ["renewal by a node with a session", "renewal with the next key", "promotion at load"])
def test_a_power_cut_on_ext4_after_any_system_call_leaves_a_pair_that_renews(scratch: Path, name: str) -> None:
    """B01, B02, B03."""
    cuts, losses = _cut_everywhere(scratch, name, Recorder)
    assert losses == []
    assert cuts > (20 if "renewal" in name else 2)


@pytest.mark.parametrize("calls", [NoFileFsync, NoDirectoryFsync])
def test_the_same_cuts_find_a_forgotten_fsync(scratch: Path, calls: type[Recorder]) -> None:
    """B03: what this harness has not seen to fail proves nothing."""
    _, losses = _cut_everywhere(scratch, "renewal by a node with a session", calls)
    assert losses != []


def _cut_everywhere(
    scratch: Path, name: str, calls: Callable[[str, str, Callable[[object], None]], Recorder]
) -> tuple[int, list[str]]:
    what = before(name)
    image, mount = scratch / "disk", scratch / "mount"
    mounts.make_ext4(image)
    losses: list[str] = []
    with mounts.mounted(mount, *_PLAIN, str(image)):
        root = mount / _DIRECTORY
        root.mkdir(0o700, parents=True)
        for file, data in what.files.items():
            (root / file).write_bytes(data)
            (root / file).chmod(0o600)
        mounts.sync(mount)
        what.plane.restore(what.records)
        sent: list[str] = []

        def judge(change: object) -> None:
            if change in renewals.SENDS:
                sent.append(str(change))
            held = what.plane.snapshot()
            # Once the new pair has been used, the old one is a copy's.
            used = RENEW_SENT in sent and sent[-1] == HELLO_SENT
            for number, doing in enumerate((renew, renew_after_hello)):
                mounts.cut(image, scratch / "cut")
                what.plane.restore(held)
                try:
                    with mounts.ext4(scratch / "cut", scratch / "after"):
                        path = str(scratch / "after" / _DIRECTORY)
                        again = life_on(what, OsSyscalls(), path, 300_000 + 1000 * number, _no)
                        _judge(again, what, _new(held, what) if used else None, doing)
                except Lost as lost:
                    losses.append(f"after {change}: {lost}")
            what.plane.restore(held)

        recorder = calls(str(mount), "/var", judge)
        life = life_on(what, recorder, str(root), 200_000, recorder.mark)
        judge("nothing")
        CASES[name].act(life)
        return len(recorder.trace) + 1, losses


def _judge(life: Life, what: Before, only: bytes | None, doing: Callable[[Life], None]) -> None:
    """`only`: the SHA-256 of the one leaf that may be found."""
    judge_found(life, None, what.identity)
    if only is not None and leaf_of(life).sha256 != only:
        raise Lost("the identity is one that the control plane holds for replaced")
    renewals.judge_restart(life, what, doing)


def _new(held: MemoryRecords, what: Before) -> bytes:
    """The leaf that was issued last."""
    newest = held.certificates.newest(what.identity.node_id)
    assert newest is not None
    return newest.leaf_sha256


def _no(what: str) -> None:
    """Nothing that leaves this machine is of interest."""
