"""A reset cut anywhere: nothing is deleted, what is left points back to --reset, that ends it, and a join joins."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, NEXT_KEY, PENDING, reset_name
from bcd.domain.model.failures import Failure, MustJoinAgain
from bcd.domain.model.loading import Loaded, Mismatch, NotJoined
from tests.crash import renewals
from tests.crash.directories import PATH
from tests.crash.judge import Lost
from tests.crash.recorder import Recorder
from tests.fakes.disk_changes import Change
from tests.fakes.joining import journal_of
from tests.fakes.lives import Life
from tests.fakes.memory_disk import File, Folder, MemoryDisk
from tests.fakes.pki import NOW

SIDES = {name: f"what SQLite keeps in {name}".encode() for name in JOURNAL_SIDE_FILES}
EARLIER = {reset_name(name, NOW): f"an earlier {name}".encode() for name in (KEY, IDENTITY, JOURNAL)}
# A journal's side files belong to it by its name: these two were set aside together.
EARLIER |= {reset_name(JOURNAL, NOW) + "-journal": b"an earlier side file"}

CASES: dict[str, dict[str, bytes]] = {
    "reset": {},
    "reset of all that there may be": {JOURNAL: journal_of("n-old"), PENDING: b"a request", **SIDES, **EARLIER},
}


@cache
def files_of(name: str) -> dict[str, bytes]:
    """An identity, a stale next key where there is more, and what the case has besides."""
    more = CASES[name]
    return renewals.before("removal at load" if more else "renewal").files | more


def life(disk: object, path: str, doing_s: float = 0) -> Life:
    what = renewals.before("renewal")
    what.plane.restore(what.records)
    return Life(disk, path, what.plane, _clock(doing_s))  # type: ignore[arg-type]


def _clock(later_s: float) -> renewals.ManualClock:
    clock = renewals.ManualClock()
    clock.forward(later_s)
    return clock


def recorded(name: str) -> list[Change]:
    with TemporaryDirectory() as scratch:
        root = Path(scratch) / "lib" / "bcd"
        root.mkdir(0o700, parents=True)
        for file, data in files_of(name).items():
            (root / file).write_bytes(data)
        recorder = Recorder(scratch, "/var")
        life(recorder, str(root)).reset()
        return recorder.trace


def losses(name: str, changes: Sequence[Change]) -> str | None:
    """What a cut of these changes loses, or None."""
    files = files_of(name)
    disk = renewals.disk_with(Folder.of({name: File(data) for name, data in files.items()})).replay(changes)
    try:
        for found in _found(disk):
            _judge(found, files)
        for found in disk.states_at(len(disk.trace)):
            if [name for name in found.files(PATH) if name in (IDENTITY, KEY, NEXT_KEY, PENDING, JOURNAL)]:
                raise Lost("what was told to be moved is not")
    except Lost as lost:
        return str(lost)
    return None


def _found(disk: MemoryDisk) -> Iterator[MemoryDisk]:
    met = set()
    for cut in range(len(disk.trace) + 1):
        for image in disk.images_at(cut):
            if image not in met:
                met.add(image)
                assert isinstance(image, Folder)
                yield MemoryDisk(image)


def _judge(disk: MemoryDisk, files: dict[str, bytes]) -> None:
    one = life(disk, PATH, doing_s=60)
    names = set(disk.files(PATH))
    match one.load.look():
        case Loaded():
            pass
        case Mismatch() as decision:
            failure = one.load.failure(decision)
            if not isinstance(failure, MustJoinAgain) or "bcd join --reset --yes" not in failure.text:
                raise Lost("the mismatch does not point back to --reset")
        case NotJoined():
            if names & {KEY, NEXT_KEY, PENDING, JOURNAL, *JOURNAL_SIDE_FILES}:
                raise Lost("the identity is gone, and something of it is left for a join to find")
        case other:
            raise Lost(f"load says {type(other).__name__}")
    if JOURNAL not in names and names & set(JOURNAL_SIDE_FILES):
        raise Lost("a journal is gone and its side files are not")
    one.reset()
    after = disk.files(PATH)
    if sorted(after.values()) != sorted(files.values()):
        raise Lost("something is lost")
    _judge_journals(after, files)
    try:
        if one.join(one.plane.token(allow_reclaim=True)).already:
            raise Lost("the reset is over, and the identity still loads")
        one.start()
    except Failure as failure:
        raise Lost(f"the join after it: {failure.text}") from None


def _judge_journals(after: dict[str, bytes], files: dict[str, bytes]) -> None:
    """Each journal lies beside the side files that lay beside it before."""
    names = {data: name for name, data in after.items()}
    if JOURNAL in files:
        own = names[files[JOURNAL]]
        for side, data in SIDES.items():
            if names[data] != own + side.removeprefix(JOURNAL):
                raise Lost(f"{side} does not belong to its journal any more")
    for name, data in EARLIER.items():
        if data in names and names[data] != name:
            raise Lost("an earlier one was moved")
