"""A disk that is full, or read-only, while a node runs on it."""

import re
from pathlib import Path

from bcd.domain.lifecycle.renew import ROOM_BYTES
from tests.crash import mounts
from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import Running, ask_renewal, identity_files, joined, judge, leaf_of

_PAGE = 4096


@in_background
def test_a_full_disk_at_a_renewal_keeps_the_old_pair_until_there_is_room(stage: Stage) -> None:
    """B08: told with its path, no temporary file, the session goes on, and the renewal comes when there is space."""
    plane = stage.asked()
    machine = plane.machine("full")
    with mounts.tmpfs(machine.data, "64k"):
        machine, node = joined(plane, "full")
        running = Running(machine)
        running.wait("session up")
        before = leaf_of(identity_files(machine)["identity.json"])
        ballast = _fill(machine.data)
        ask_renewal(plane, node)
        told = running.wait("renewal failed.*No space left on device")
        # The journal's own file comes and goes beside it.
        free = re.search(rf"{machine.data}/identity.json \((\d+) bytes free\)", told)
        assert free is not None and int(free[1]) < ROOM_BYTES, told
        assert leaf_of(identity_files(machine)["identity.json"]) == before
        assert sorted(path.name for path in machine.data.glob("*[!l]") if "journal" not in path.name) == [
            "ballast",
            "identity.json",
            "node.key",
        ]
        assert running.count("session ended") == 0, running.lines
        ballast.unlink()
        running.wait(" renewed ")
        running.wait("session up", times=2)
        assert running.count("session ended") == 0, running.lines
        running.stop()
        judge(plane, machine, node)


@in_background
def test_a_disk_that_is_read_only_for_a_while(stage: Stage) -> None:
    """B10: the session with the current certificate keeps running, and the renewal comes when it may write."""
    plane = stage.asked()
    machine = plane.machine("read-only-data")
    with mounts.tmpfs(machine.data, "64k"):
        machine, node = joined(plane, "read-only-data")
        mounts.read_only(machine.data)
        ask_renewal(plane, node)
        running = Running(machine)
        running.wait("session up")
        told = running.wait("renewal failed.*read-only file system")
        assert str(machine.data) in told
        mounts.writable(machine.data)
        running.wait(" renewed ")
        running.wait("session up", times=2)
        assert running.count("session ended") == 0, running.lines
        running.stop()
        judge(plane, machine, node)


@in_background
def test_a_disk_that_turns_read_only_under_a_node(stage: Stage) -> None:
    """B10: as ext4 does when its device fails; after a repair the node renews as if nothing had been."""
    plane = stage.asked()
    machine = plane.machine("aborted-data")
    image = stage.place("aborted-image") / "disk"
    mounts.make_ext4(image)
    with mounts.ext4(image, machine.data):
        (machine.data / "lost+found").rmdir()
        machine.data.chmod(0o700)
        machine, node = joined(plane, "aborted-data")
        running = Running(machine)
        running.wait("session up")
        mounts.sync(machine.data)
        _abort(machine.data)
        ask_renewal(plane, node)
        running.wait("renewal failed.*(read-only file system|Input/output error)")
        assert running.count("session ended") == 0, running.lines
        assert running.stop() < 1.0
    with mounts.ext4(image, machine.data):
        running = Running(machine)
        running.wait("session up")
        running.wait(" renewed ")
        running.wait("session up", times=2)
        running.stop()
        judge(plane, machine, node)


def _abort(at: Path) -> None:
    mounts._run("mount", "-o", "remount,abort", str(at))


def _fill(directory: Path) -> Path:
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(_PAGE))
        except OSError:
            pass
    return ballast
