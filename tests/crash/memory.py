"""A join on the memory disk, and its cuts."""

from collections.abc import Iterator
from dataclasses import dataclass

from bcd.adapters.fs.local import LocalFs
from bcd.domain.lifecycle.join import Joined
from tests.crash.directories import PATH, previous
from tests.crash.judge import Previous, judge_end, judge_load, judge_told, request_of, second_join
from tests.fakes import joining
from tests.fakes.clock import ManualClock
from tests.fakes.disk_changes import Mark
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential
from tests.fakes.memory_disk import File, Folder, MemoryDisk

SENT = "Join sent"


def local(disk: MemoryDisk) -> LocalFs:
    return LocalFs(PATH, ManualClock(), syscalls=disk)


def disk_with(before: dict[str, bytes] | None) -> MemoryDisk:
    disk = MemoryDisk()
    if before is not None:
        disk.plant(PATH, Folder.of({name: File(data) for name, data in before.items()}))
    else:
        disk.plant("/var", Folder(mode=0o755))
    return disk


@dataclass
class Run:
    """One join, from the first change of the disk to the last. The trace may have begun before it."""

    disk: MemoryDisk
    plane: ControlPlane
    joined: Joined
    request: bytes
    previous: Previous

    @property
    def cuts(self) -> range:
        return range(len(self.disk.trace) + 1)

    def sent_at(self, cut: int) -> bytes | None:
        """The request, if it had left the machine before change `cut`."""
        return self.request if Mark(SENT) in self.disk.trace[:cut] else None


def run(before: dict[str, bytes] | None) -> Run:
    disk = disk_with(before)
    plane = ControlPlane(lambda: disk.mark(SENT))
    fs = local(disk)
    joined = joining.join(fs, PATH, plane, Credential())(ANY_NODE)
    request = request_of(plane)
    assert request is not None
    judge_end(fs, PATH, joined, request, previous(before))
    return Run(disk, plane, joined, request, previous(before))


def plane_after(run: Run, sent: bytes | None, disk: MemoryDisk) -> ControlPlane:
    """The control plane as it is found after the cut: it has answered the request if that was sent."""
    plane = ControlPlane(lambda: disk.mark(SENT))
    if sent is not None:
        plane.issued = dict(run.plane.issued)
    return plane


def judge(run: Run, disk: MemoryDisk, sent: bytes | None) -> Run:
    """Judges a disk found after a cut, and the join that follows; the second join as a run of its own."""
    fs = local(disk)
    judge_load(fs, PATH, sent)
    plane = plane_after(run, sent, disk)
    joined = second_join(fs, PATH, plane, sent, run.previous)
    request = sent if sent is not None else request_of(plane)
    assert request is not None
    return Run(disk, plane, joined, request, run.previous)


def judge_told_at_the_end(run: Run) -> None:
    """What the join has said to be done is done, whatever the disk has not yet written."""
    for found in run.disk.states_at(len(run.disk.trace)):
        judge_told(local(found), PATH, run.joined, run.previous)


def power_cuts(run: Run, first: int = 0) -> Iterator[tuple[int, MemoryDisk, bytes | None]]:
    """Every cut from `first` on, with every disk that may be found; a disk that was met before, in the same situation,
    is left out."""
    met = set()
    for cut in run.cuts[first:]:
        sent = run.sent_at(cut)
        for image in run.disk.images_at(cut):
            if (image, sent) not in met:
                met.add((image, sent))
                assert isinstance(image, Folder)
                yield cut, MemoryDisk(image), sent
