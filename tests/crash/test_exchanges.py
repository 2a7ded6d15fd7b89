"""The durable steps of a join, as a real run makes them, in any order but theirs: each exchange of two neighbours, and
each fsync left out, loses something at some cut. Those that do not stand here with the reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bcd.adapters.fs.local import LocalFs
from tests.crash.directories import BEFORE, previous
from tests.crash.judge import Lost, judge_end, request_of
from tests.crash.memory import SENT, Run, disk_with, judge, judge_told_at_the_end, power_cuts
from tests.crash.recorder import Recorder
from tests.fakes import joining
from tests.fakes.clock import ManualClock
from tests.fakes.disk_changes import Change
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Case:
    """A join from a directory; where a first one was killed, after which step of it."""

    before: dict[str, bytes] | None
    killed_after: tuple[str, ...] = ()


CASES = {
    "no directory": Case(None),
    "all that there may be": Case(BEFORE["all of them"]),
    "killed before its directory was safe": Case(None, ("mkdir", "mkdir")),
    "killed before its request was safe": Case({}, ("rename .bcd-join.pending.* join.pending",)),
}

_PARENTS = "each directory above is made safe on its own, all of them before anything is relied on"
_TEMPORARY = "nobody relies on a temporary file"
_ASKED = "what is set aside is of no use to this machine, whether it is answered or not"
_SIDE_FILES = "the side files may go in any order, as long as they go before their journal"
_UNRELATED = "neither says anything about the other, and both are safe before the identity"
_LATER = "the next fsync of the directory makes it safe, and comes before anything that needs it"
_KEY_KEPT = "until the identity is there the key is safe in join.pending, and the next join writes it anew"
_PROMOTED = "a load makes node.key.next node.key, and a join removes a request that is needed no more"
_DIRECTORY = "fsync directory"
_JOURNAL, _WAL, _SHM, _DB = (
    f"rename journal.db{side} journal.db.n-old-TIME{side}" for side in ("-journal", "-wal", "-shm", "")
)
_ORPHAN = "rename node.key node.key.orphan-TIME"

# (a step, the one that follows it): why they may change places.
HARMLESS = {
    ("fsync parent of /var/lib/bcd", "fsync parent of /var/lib"): _PARENTS,
    ("fsync parent of /var/lib", "fsync parent of /var"): _PARENTS,
    ("fsync parent of /var", _DIRECTORY): _PARENTS,
    (_DIRECTORY, "create .bcd-join.pending.*"): _TEMPORARY,
    (_DIRECTORY, "create .bcd-node.key.next.*"): _TEMPORARY,
    (_DIRECTORY, "create .bcd-identity.json.*"): _TEMPORARY,
    ("Join sent", "create .bcd-node.key.next.*"): _TEMPORARY,
    ("Join sent", _JOURNAL): _ASKED,
    (_DIRECTORY, _WAL): _SIDE_FILES,
    (_DIRECTORY, _SHM): _SIDE_FILES,
    (_JOURNAL, _DIRECTORY): _LATER,
    (_WAL, _DIRECTORY): _LATER,
    (_DB, _DIRECTORY): _LATER,
    (_DIRECTORY, _ORPHAN): _UNRELATED,
    (_ORPHAN, _DIRECTORY): _LATER,
    (_DIRECTORY, "unlink node.key.next"): _UNRELATED,
    ("unlink node.key.next", _DIRECTORY): _LATER,
    ("fsync .bcd-node.key.next.*", "rename .bcd-node.key.next.* node.key.next"): _KEY_KEPT,
    ("rename node.key.next node.key", _DIRECTORY): _PROMOTED,
    (_DIRECTORY, "unlink join.pending"): _PROMOTED,
}
# (the step before, the fsync): why it may be left out.
HARMLESS_FSYNCS = {
    ("", _DIRECTORY): "only a killed join leaves something to be made safe here",
    ("fsync parent of /var/lib", "fsync parent of /var"): "/var was there before",
    ("fsync parent of /var", _DIRECTORY): "there is nothing in it yet",
    (_JOURNAL, _DIRECTORY): _LATER,
    (_WAL, _DIRECTORY): _LATER,
    (_DB, _DIRECTORY): _LATER,
    (_ORPHAN, _DIRECTORY): _LATER,
    ("unlink node.key.next", _DIRECTORY): _LATER,
    ("rename node.key.next node.key", _DIRECTORY): _PROMOTED,
}


@dataclass(frozen=True)
class Recording:
    """`run` is played back on a memory disk; its first `begin` changes were a killed join's and stay as they are."""

    run: Run
    begin: int

    @property
    def steps(self) -> list[str]:
        return [_step(change) for change in self.run.disk.trace]


@cache
def recorded(name: str) -> Recording:
    """A join made by the kernel on a real file system."""
    case = CASES[name]
    with TemporaryDirectory() as scratch:
        root = Path(scratch) / "lib" / "bcd"
        if case.before is not None:
            root.parent.mkdir(0o700)
            root.mkdir(0o700)
            for file, data in case.before.items():
                (root / file).write_bytes(data)
                (root / file).chmod(0o600)
        first = _killed_join(scratch, str(root), list(case.killed_after)) if case.killed_after else []
        recorder = Recorder(scratch, "/var")
        plane = ControlPlane(lambda: recorder.mark(SENT))
        fs = LocalFs(str(root), ManualClock(), syscalls=recorder)
        joined = joining.join(fs, str(root), plane, Credential())(ANY_NODE)
        request = request_of(plane)
        assert request is not None
        judge_end(fs, str(root), joined, request, previous(case.before))
    disk = disk_with(case.before).replay([*first, *recorder.trace])
    return Recording(Run(disk, plane, joined, request, previous(case.before)), len(first))


def _killed_join(scratch: str, path: str, after: list[str]) -> Sequence[Change]:
    def kill(change: Change) -> None:
        if str(change) == after[0]:
            after.pop(0)
            if not after:
                raise Killed

    recorder = Recorder(scratch, "/var", kill)
    fs = LocalFs(path, ManualClock(), syscalls=recorder)
    with pytest.raises(Killed):
        joining.join(fs, path, ControlPlane(), Credential())(ANY_NODE)
    return recorder.trace


def loses(name: str, changes: Sequence[Change]) -> str | None:
    """What a cut of these changes may lose, or None; a change that the system would refuse ends the join there."""
    recording = recorded(name)
    whole = recording.run
    try:
        disk = disk_with(CASES[name].before).replay(changes)
    except OSError as error:
        return f"the system refuses it: {error.strerror}"
    played = replace(whole, disk=disk)
    try:
        for _, found, sent in power_cuts(played, recording.begin):
            judge(played, found, sent)
        judge_told_at_the_end(played)
    except Lost as lost:
        return str(lost)
    return None


def _step(change: Change) -> str:
    """As the lists above have it: no times."""
    return re.sub(r"-\d{8}T\d{6}Z|-\d{10}", "-TIME", str(change))


def _pairs() -> list[tuple[str, int]]:
    runs = {name: recorded(name) for name in CASES}
    return [(name, n) for name, found in runs.items() for n in range(found.begin, len(found.steps) - 1)]


def _fsyncs() -> list[tuple[str, int]]:
    runs = {name: recorded(name) for name in CASES}
    return [
        (name, n) for name, found in runs.items() for n in range(found.begin, len(found.steps)) if _is_fsync(name, n)
    ]


def _is_fsync(name: str, n: int) -> bool:
    return recorded(name).steps[n].startswith("fsync ")


def _pair(case: tuple[str, int]) -> tuple[str, str]:
    name, n = case
    first, second = recorded(name).steps[n : n + 2]
    return first, second


def _fsync(case: tuple[str, int]) -> tuple[str, str]:
    name, n = case
    return recorded(name).steps[n - 1] if n else "", recorded(name).steps[n]


def _id(case: object) -> str | None:
    return f"{case[0]} {case[1]}" if isinstance(case, tuple) else None


@pytest.mark.parametrize("name", CASES)
def test_the_recorded_steps_in_their_own_order_lose_nothing(name: str) -> None:
    """B03: the run that is played back is a run that holds."""
    assert loses(name, recorded(name).run.disk.trace) is None


@pytest.mark.parametrize("case", _pairs(), ids=_id)
def test_two_neighbouring_steps_exchanged_lose_something(case: tuple[str, int]) -> None:
    """B03, B07."""
    name, n = case
    changes = list(recorded(name).run.disk.trace)
    changes[n], changes[n + 1] = changes[n + 1], changes[n]
    _judge_list(loses(name, changes), HARMLESS, _pair(case))


@pytest.mark.parametrize("case", _fsyncs(), ids=_id)
def test_an_fsync_left_out_loses_something(case: tuple[str, int]) -> None:
    """B03."""
    name, n = case
    changes = list(recorded(name).run.disk.trace)
    del changes[n]
    _judge_list(loses(name, changes), HARMLESS_FSYNCS, _fsync(case))


def test_every_reason_is_about_steps_that_a_join_still_has() -> None:
    """A list that no longer fits the code is found, too."""
    assert set(HARMLESS) <= {_pair(case) for case in _pairs()}
    assert set(HARMLESS_FSYNCS) <= {_fsync(case) for case in _fsyncs()}


def _judge_list(lost: str | None, harmless: dict[tuple[str, str], str], steps: tuple[str, str]) -> None:
    if lost is None:
        assert steps in harmless, f"{steps}: nothing is lost, and no reason is given"
    else:
        assert steps not in harmless, f"{steps}: {harmless[steps]}, it is said, but: {lost}"
