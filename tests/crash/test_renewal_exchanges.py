"""The durable steps of a renewal, a load, a Welcome and a reset, as real runs make them, in any order but theirs: each
exchange of two neighbours, and each fsync left out, loses something at some cut, or stands here with the reason."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.crash import renewals, resets
from tests.crash.directories import PATH
from tests.crash.recorder import Recorder
from tests.crash.renewals import CASES, Run, before, life_on, losses, renew, renew_after_hello, replayed
from tests.fakes.disk_changes import Change
from tests.fakes.lives import HELLO_SENT, RENEW_SENT, Life


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Recorded:
    """`begin`: its first changes were a killed node's and stay as they are; `loses` plays changes back and judges."""

    changes: tuple[Change, ...]
    begin: int
    loses: Callable[[Sequence[Change]], str | None]

    @property
    def steps(self) -> list[str]:
        """As the lists below have it: without times, and with what came before where it is not the first phase."""
        phase, steps = "", []
        for change in self.changes:
            step = re.sub(r"-\d{8}T\d{6}Z|-\d{10}", "-TIME", str(change))
            if change in renewals.SENDS:
                phase = {HELLO_SENT: "Welcome: ", RENEW_SENT: "answer: "}[step]
                steps.append(step)
            else:
                steps.append(phase + step)
        return steps


RENEWALS = ("renewal", "renewal by a node with a session", "renewal with the next key", "promotion at load",
            "removal at load", "welcome")  # fmt: skip
KILLED = "a node that was killed before its identity was safe"
NAMES = (*RENEWALS, KILLED, *resets.CASES)

_D = "fsync directory"
_NEXT = "rename .bcd-node.key.next.* node.key.next"
_ASIDE = [
    "rename node.key.next node.key.next.reset-TIME",
    "rename node.key node.key.reset-TIME.1",
    "rename join.pending join.pending.reset-TIME",
    "rename journal.db-journal journal.db.reset-TIME.1-journal",
    "rename journal.db-wal journal.db.reset-TIME.1-wal",
    "rename journal.db-shm journal.db.reset-TIME.1-shm",
]

_TEMPORARY = "nobody relies on a temporary file"
_NOTHING_YET = "only a killed process leaves something to be made safe here"
_LATER = "the next fsync of the directory makes it safe, and comes before anything that needs it"
_AGAIN = "this key is written once more after the answer; without an answer another one is made"
_ASKS_ANEW = "a request whose key is lost is followed by one for another key; that this one is safe is its own test"
_LAST = "every file is safe under a name that a load finds it by"
_TOLD_AGAIN = "what a Welcome tells is told by the next one"
_MATCHES = "a load knows which of the two keys is the certificate's"
_ANY_ORDER = "these may go in any order, as long as the journal comes after its side files and the identity after all"

# (a step, the one that follows it), or with the run in front: why they may change places.
HARMLESS: dict[tuple[str, ...], str] = {
    (_D, _D): _NOTHING_YET,
    (_D, "create .bcd-node.key.next.*"): _TEMPORARY,
    ("write .bcd-node.key.next.*", "fsync .bcd-node.key.next.*"): _AGAIN,
    ("fsync .bcd-node.key.next.*", _NEXT): _AGAIN,
    (_NEXT, _D): _AGAIN,
    (_D, "Renew sent"): _ASKS_ANEW,
    ("Renew sent", "answer: create .bcd-node.key.next.*"): _TEMPORARY,
    ("answer: fsync .bcd-node.key.next.*", f"answer: {_NEXT}"): _AGAIN,
    (f"answer: {_NEXT}", f"answer: {_D}"): _LATER,
    (f"answer: {_D}", "answer: create .bcd-identity.json.*"): _TEMPORARY,
    ("answer: rename node.key.next node.key", f"answer: {_D}"): _LAST,
    (f"answer: {_D}", "Hello sent"): _LAST,
    ("Hello sent", f"Welcome: {_D}"): _NOTHING_YET,
    (_D, "Hello sent"): _NOTHING_YET,
    (f"Welcome: {_D}", "Welcome: create .bcd-identity.json.*"): _TEMPORARY,
    ("Welcome: rename .bcd-identity.json.* identity.json", f"Welcome: {_D}"): _TOLD_AGAIN,
    (f"Welcome: {_D}", f"Welcome: {_D}"): _NOTHING_YET,
    (f"Welcome: {_D}", "Welcome: create .bcd-node.key.next.*"): _TEMPORARY,
    ("Welcome: write .bcd-node.key.next.*", "Welcome: fsync .bcd-node.key.next.*"): _AGAIN,
    ("Welcome: fsync .bcd-node.key.next.*", f"Welcome: {_NEXT}"): _AGAIN,
    (f"Welcome: {_NEXT}", f"Welcome: {_D}"): _AGAIN,
    (f"Welcome: {_D}", "Renew sent"): _ASKS_ANEW,
    (_D, "rename node.key.next node.key"): _NOTHING_YET,
    ("promotion at load", "rename node.key.next node.key", _D): _MATCHES,
    (_D, "unlink node.key.next"): _NOTHING_YET,
    ("unlink node.key.next", _D): _MATCHES,
    (_D, "rename node.key node.key.reset-TIME"): _NOTHING_YET,
    **{(_D, step): _ANY_ORDER for step in _ASIDE},
    **{(step, _D): _LATER for step in _ASIDE[:-1]},
}
# (the step before, the fsync), or with the run in front: why it may be left out.
HARMLESS_FSYNCS: dict[tuple[str, ...], str] = {
    ("", _D): _NOTHING_YET,
    (_D, _D): _NOTHING_YET,
    ("write .bcd-node.key.next.*", "fsync .bcd-node.key.next.*"): _AGAIN,
    (_NEXT, _D): _AGAIN,
    (f"answer: {_NEXT}", f"answer: {_D}"): _LATER,
    ("answer: rename node.key.next node.key", f"answer: {_D}"): _LAST,
    ("Hello sent", f"Welcome: {_D}"): _NOTHING_YET,
    ("Welcome: rename .bcd-identity.json.* identity.json", f"Welcome: {_D}"): _TOLD_AGAIN,
    (f"Welcome: {_D}", f"Welcome: {_D}"): _NOTHING_YET,
    ("Welcome: write .bcd-node.key.next.*", "Welcome: fsync .bcd-node.key.next.*"): _AGAIN,
    (f"Welcome: {_NEXT}", f"Welcome: {_D}"): _AGAIN,
    ("promotion at load", "rename node.key.next node.key", _D): _MATCHES,
    ("unlink node.key.next", _D): _MATCHES,
    **{(step, _D): _LATER for step in _ASIDE[:-1]},
}


@cache
def recorded(name: str) -> Recorded:
    """Made by the kernel on a real file system."""
    if name in resets.CASES:
        return Recorded(tuple(resets.recorded(name)), 0, lambda changes: resets.losses(name, changes))
    what = before("renewal" if name == KILLED else name)
    with TemporaryDirectory() as scratch:
        root = Path(scratch) / "lib" / "bcd"
        root.mkdir(0o700, parents=True)
        for file, data in what.files.items():
            (root / file).write_bytes(data)
            (root / file).chmod(0o600)
        first = _killed(what, scratch, root) if name == KILLED else []
        disk = renewals.disk_with(what.image).replay(first)
        whole = _run(what, scratch, root, disk, renew_after_hello if name == KILLED else CASES[name].act)
    return Recorded(tuple(whole.disk.trace), whole.begin, lambda changes: losses(replayed(whole, changes), (renew,)))


def _killed(what: renewals.Before, scratch: str, root: Path) -> list[Change]:
    """A renewal whose process was killed once identity.json had its name, and before that was safe."""

    def kill(change: Change) -> None:
        if str(change) == "rename .bcd-identity.json.* identity.json":
            raise Killed

    recorder = Recorder(scratch, "/var", kill)
    what.plane.restore(what.records)
    with pytest.raises(Killed):
        renew(life_on(what, recorder, str(root), 400_000, recorder.mark))
    what.records = what.plane.snapshot()
    return recorder.trace


def _run(
    what: renewals.Before, scratch: str, root: Path, disk: renewals.MemoryDisk, doing: Callable[[Life], None]
) -> Run:
    """As renewals.act, by the kernel's calls; then played on `disk`."""
    recorder = Recorder(scratch, "/var")
    what.plane.restore(what.records)
    servers = []

    def sends(text: str) -> None:
        servers.append(what.plane.snapshot())
        recorder.mark(text)

    life = life_on(what, recorder, str(root), 200_000, sends)
    leaves = [what.identity.leaf, renewals.leaf_of(life)]
    begin = len(disk.trace)
    doing(life)
    leaves.append(renewals.leaf_of(life))
    disk.replay(recorder.trace)
    assert disk.files(PATH) == {path.name: path.read_bytes() for path in root.iterdir()}
    return Run(what, disk, [*servers, what.plane.snapshot()], leaves, 200_000, begin)


def _pairs() -> list[tuple[str, int]]:
    return [(name, n) for name in NAMES for n in range(recorded(name).begin, len(recorded(name).steps) - 1)]


def _fsyncs() -> list[tuple[str, int]]:
    runs = ((name, recorded(name)) for name in NAMES)
    return [(name, n) for name, run in runs for n in range(run.begin, len(run.steps)) if "fsync " in run.steps[n]]


def _pair(case: tuple[str, int]) -> tuple[str, str]:
    first, second = recorded(case[0]).steps[case[1] : case[1] + 2]
    return first, second


def _fsync(case: tuple[str, int]) -> tuple[str, str]:
    name, n = case
    return recorded(name).steps[n - 1] if n > recorded(name).begin else "", recorded(name).steps[n]


def _id(case: object) -> str | None:
    return f"{case[0]} {case[1]}" if isinstance(case, tuple) else None


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_steps_in_their_own_order_lose_nothing(name: str) -> None:
    """B03: the run that is played back is a run that holds."""
    assert recorded(name).loses(recorded(name).changes) is None


@pytest.mark.parametrize("case", _pairs(), ids=_id)
def test_two_neighbouring_steps_exchanged_lose_something(case: tuple[str, int]) -> None:
    """B01, B03."""
    name, n = case
    changes = list(recorded(name).changes)
    changes[n], changes[n + 1] = changes[n + 1], changes[n]
    _judge_list(name, _loses(name, changes), HARMLESS, _pair(case))


@pytest.mark.parametrize("case", _fsyncs(), ids=_id)
def test_an_fsync_left_out_loses_something(case: tuple[str, int]) -> None:
    """B03."""
    name, n = case
    changes = list(recorded(name).changes)
    del changes[n]
    _judge_list(name, _loses(name, changes), HARMLESS_FSYNCS, _fsync(case))


def test_every_reason_is_about_steps_that_there_still_are() -> None:
    """A list that no longer fits the code is found, too."""
    pairs, fsyncs = (
        {(name, _pair((name, n))) for name, n in _pairs()},
        {(name, _fsync((name, n))) for name, n in _fsyncs()},
    )
    for harmless, steps in ((HARMLESS, pairs), (HARMLESS_FSYNCS, fsyncs)):
        assert set(harmless) <= {pair for _, pair in steps} | {(name, *pair) for name, pair in steps}


def _loses(name: str, changes: Sequence[Change]) -> str | None:
    try:
        return recorded(name).loses(changes)
    except OSError as error:
        return f"the system refuses it: {error.strerror}"


def _judge_list(name: str, lost: str | None, harmless: dict[tuple[str, ...], str], steps: tuple[str, str]) -> None:
    reason = harmless.get((name, *steps)) or harmless.get(steps)
    if lost is None:
        assert reason is not None, f"{steps}: nothing is lost, and no reason is given"
    else:
        assert reason is None, f"{steps}: {reason}, it is said, but: {lost}"
