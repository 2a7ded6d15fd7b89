"""A join on a real ext4, cut after every system call that changes it: the image is copied while it is mounted, and the
copy is mounted (which replays its journal), loaded and joined to the end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from tests.crash import mounts
from tests.crash.directories import BEFORE, previous
from tests.crash.judge import Lost, judge_end, judge_load, request_of, second_join
from tests.crash.recorder import Recorder
from tests.fakes import joining
from tests.fakes.clock import ManualClock
from tests.fakes.disk_changes import Change
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential

_DIRECTORY = "lib/bcd"


class NoFileFsync(Recorder):
    """Forgets to make a file's content safe."""

    def sync(self, descriptor: int) -> None:
        if self._names[descriptor][1]:
            super().sync(descriptor)


class NoDirectoryFsync(Recorder):
    """Forgets to make a name safe."""

    def sync(self, descriptor: int) -> None:
        if not self._names[descriptor][1]:
            super().sync(descriptor)


@pytest.mark.parametrize("name", ["no directory", "all of them"])
def test_a_power_cut_on_ext4_after_any_system_call_loses_nothing(scratch: Path, name: str) -> None:
    """B02, B03, B06."""
    cuts, losses = _cut_everywhere(scratch, BEFORE[name], Recorder)
    assert losses == []
    assert cuts > 20


@pytest.mark.parametrize("calls", [NoFileFsync, NoDirectoryFsync])
def test_the_same_cuts_find_a_forgotten_fsync(scratch: Path, calls: type[Recorder]) -> None:
    """B03: what this harness has not seen to fail proves nothing."""
    _, losses = _cut_everywhere(scratch, BEFORE["no directory"], calls)
    assert losses != []


def _cut_everywhere(
    scratch: Path, before: dict[str, bytes] | None, calls: Callable[[str, str, Callable[[Change], None]], Recorder]
) -> tuple[int, list[str]]:
    """Joins on ext4 in `scratch`; the number of cuts, and what was lost at which of them."""
    image, mount = scratch / "disk", scratch / "mount"
    mounts.make_ext4(image)
    losses: list[str] = []
    with mounts.ext4(image, mount):
        root = mount / _DIRECTORY
        if before is not None:
            root.mkdir(0o700, parents=True)
            for file, data in before.items():
                (root / file).write_bytes(data)
                (root / file).chmod(0o600)
        mounts.sync(mount)

        def judge(change: object) -> None:
            try:
                _judge(mounts.cut(image, scratch / "cut"), scratch / "after", before, plane)
            except Lost as lost:
                losses.append(f"after {change}: {lost}")

        recorder = calls(str(mount), "/var", judge)
        plane = ControlPlane(lambda: judge("Join sent"))
        fs = LocalFs(str(root), ManualClock(), syscalls=recorder)
        judge("nothing")
        joined = joining.join(fs, str(root), plane, Credential())(ANY_NODE)
        judge_end(fs, str(root), joined, request_of(plane), previous(before))
        return len(recorder.trace) + 1, losses


def _judge(copy: Path, at: Path, before: dict[str, bytes] | None, plane: ControlPlane) -> None:
    sent = request_of(plane)
    found_plane = ControlPlane()
    found_plane.issued = dict(plane.issued)
    with mounts.ext4(copy, at):
        path = str(at / _DIRECTORY)
        fs = LocalFs(path, ManualClock())
        judge_load(fs, path, sent)
        second_join(fs, path, found_plane, sent, previous(before))
