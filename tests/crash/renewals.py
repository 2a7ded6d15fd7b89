"""What a node that has joined does to its disk, cut anywhere: what must be found then, and what must still work."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bcd.adapters.fs.syscalls import Syscalls
from bcd.controlplane.domain.audit import Kind
from bcd.controlplane.domain.settings import RETIRED_GRACE
from bcd.domain.lifecycle.renew import NewPair, NextKey
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import Failure
from bcd.domain.model.identity import Identity, Leaf
from bcd.domain.model.loading import Loaded, LoadedAsIs
from bcd.ports.gateway import Welcome
from tests.crash.directories import PATH
from tests.crash.judge import Lost
from tests.fakes.clock import ManualClock
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.memory_store import MemoryRecords
from tests.fakes.disk_changes import Change, Mark
from tests.fakes.lives import HELLO_SENT, RENEW_SENT, Life, NumberedKeys
from tests.fakes.memory_disk import File, Folder, Image, MemoryDisk

SENDS = (Mark(HELLO_SENT), Mark(RENEW_SENT))
# A clone is one only after this: whoever restarts at once is given the benefit of the doubt.
LATER_S = RETIRED_GRACE.total_seconds() + 60


@dataclass(frozen=True)
class Case:
    """`prepare` makes what is found, `act` is what is cut."""

    prepare: Callable[[Life], None]
    act: Callable[[Life], None]


@dataclass
class Before:
    """A joined machine's disk, and its control plane, before the case's act; `identity` is what it holds."""

    plane: MemoryControlPlane
    clock: ManualClock
    image: Image
    records: MemoryRecords
    identity: Identity

    @property
    def files(self) -> dict[str, bytes]:
        assert isinstance(self.image, Folder)
        return {name: file.data for name, file in self.image.names if isinstance(file, File)}


@dataclass
class Run:
    """`servers` are the control plane before the first thing was sent and after each; `leaves` those that may be found,
    the one that was made last; `keys` is the number of its first key, `begin` of the first change that is its own."""

    before: Before
    disk: MemoryDisk
    servers: list[MemoryRecords]
    leaves: list[Leaf]
    keys: int
    begin: int

    def sends(self, cut: int) -> list[Change]:
        return [change for change in self.disk.trace[self.begin : cut] if change in SENDS]

    def servers_at(self, cut: int) -> list[MemoryRecords]:
        """What was sent last has been heard, or was not; nothing follows it but by an answer."""
        sent = len(self.sends(cut))
        lost = cut > self.begin and self.disk.trace[cut - 1] in SENDS
        return self.servers[sent - lost : sent + 1]


def renew(life: Life) -> None:
    """As a node does: load, renew, and Hello with the new pair."""
    pair = life.start()
    outcome = life.renew(pair)
    assert isinstance(outcome, NewPair), outcome
    assert isinstance(life.dial(outcome.pair), Welcome)


def renew_after_hello(life: Life) -> None:
    pair = life.start()
    assert isinstance(life.dial(pair), Welcome)
    outcome = life.renew(pair)
    assert isinstance(outcome, NewPair), outcome
    assert isinstance(life.dial(outcome.pair), Welcome)


def load(life: Life) -> None:
    life.start()


def welcome(life: Life) -> None:
    """A Hello whose Welcome brings a newer bundle."""
    assert isinstance(life.dial(life.start()), Welcome)


def _nothing(life: Life) -> None:
    """As a join left it."""


def _newer_bundle(life: Life) -> None:
    life.plane.restored(7)


def _next_key_of_a_lost_answer(life: Life) -> None:
    """B02: the server signed, the node knows nothing of it and was killed."""
    chosen = NextKey(key := life.keys.create(), key.request())
    with life.fs.lock(0):
        life.fs.write(NEXT_KEY, key.record)
    life.line(pair := life.start_as_is()).renew(life.renewing._question(pair, chosen, life.clock.now()))


def _not_promoted(life: Life) -> None:
    """Killed between identity.json and the last rename."""
    old = life.fs.read(KEY, 1 << 20)
    assert old is not None
    pair = life.start()
    outcome = life.renew(pair)
    assert isinstance(outcome, NewPair)
    with life.fs.lock(0):
        life.fs.rename(KEY, NEXT_KEY)
        life.fs.write(KEY, old)


def _renew_with_the_next_key(life: Life) -> None:
    """The disk was read-only when the identity was loaded: node.key.next is the only copy of the key in use."""
    pair = life.start_as_is()
    outcome = life.renew(pair)
    assert isinstance(outcome, NewPair)
    assert isinstance(life.dial(outcome.pair), Welcome)


CASES = {
    "renewal": Case(_nothing, renew),
    "renewal by a node with a session": Case(_nothing, renew_after_hello),
    "renewal after a lost answer": Case(_next_key_of_a_lost_answer, renew),
    "promotion at load": Case(_not_promoted, load),
    "renewal with the next key": Case(_not_promoted, _renew_with_the_next_key),
    "removal at load": Case(_next_key_of_a_lost_answer, load),
    "welcome": Case(_newer_bundle, welcome),
}


@cache
def before(name: str) -> Before:
    """A machine that has joined and said Hello once, as the case wants it."""
    clock = ManualClock()
    plane = MemoryControlPlane(clock)
    disk = MemoryDisk()
    disk.plant("/var", Folder(mode=0o755))
    life = Life(disk, PATH, plane, clock, NumberedKeys(100_000))
    life.join(plane.token())
    assert isinstance(life.dial(life.start()), Welcome)
    clock.forward(3600)
    CASES[name].prepare(life)
    clock.forward(3600)
    (image,) = disk.images_at(len(disk.trace))
    assert isinstance(image, Folder)
    found = life.load.look()
    assert isinstance(found, Loaded)
    return Before(plane, clock, _folder(image), plane.snapshot(), found.identity)


def _folder(image: Folder) -> Image:
    """The data directory in an image of a whole disk."""
    found: Image = image
    for part in PATH.strip("/").split("/"):
        assert isinstance(found, Folder)
        found = dict(found.names)[part]
    return found


def disk_with(image: Image) -> MemoryDisk:
    disk = MemoryDisk()
    disk.plant(PATH, image)
    return disk


def life_on(what: Before, disk: Syscalls, path: str, keys: int, sends: Callable[[str], None]) -> Life:
    return Life(disk, path, what.plane, what.clock, NumberedKeys(keys), sends)


def act(what: Before, doing: Callable[[Life], None], disk: MemoryDisk, records: MemoryRecords, keys: int) -> Run:
    """Does it on `disk`, from a control plane like `records`."""
    what.plane.restore(records)
    servers: list[MemoryRecords] = []

    def sends(text: str) -> None:
        servers.append(what.plane.snapshot())
        disk.mark(text)

    life = life_on(what, disk, PATH, keys, sends)
    leaves, begin = [leaf_of(life)], len(disk.trace)
    doing(life)
    servers.append(what.plane.snapshot())
    if leaf_of(life) != leaves[0]:
        leaves.append(leaf_of(life))
    return Run(what, disk, servers, leaves, keys, begin)


def run(name: str) -> Run:
    what = before(name)
    return act(what, CASES[name].act, disk_with(what.image), what.records, 200_000)


def power_cuts(whole: Run) -> Iterator[tuple[int, MemoryDisk, MemoryRecords]]:
    """Every cut, with every disk that may be found and every control plane; each situation once."""
    met = set()
    for cut in range(whole.begin, len(whole.disk.trace) + 1):
        for records in whole.servers_at(cut):
            for image in whole.disk.images_at(cut):
                if (image, id(records)) not in met:
                    met.add((image, id(records)))
                    assert isinstance(image, Folder)
                    yield cut, MemoryDisk(image), records


def must_be_new(whole: Run, cut: int) -> bool:
    """Whether the new leaf has been used: from then on the old one is a copy's."""
    sent = whole.sends(cut)
    return Mark(RENEW_SENT) in sent and sent[-1] == Mark(HELLO_SENT)


def judge(whole: Run, cut: int, disk: MemoryDisk, records: MemoryRecords, doing: Callable[[Life], None]) -> Run:
    """Judges a disk found after a cut, then restarts the node, which does `doing`; that as a run of its own."""
    life = life_on(whole.before, disk, PATH, 0, lambda _: None)
    judge_found(life, whole.leaves[-1:] if must_be_new(whole, cut) else whole.leaves, whole.before.identity)
    return _restarted(whole, disk, records, doing)


def judge_found(life: Life, leaves: Sequence[Leaf] | None, before: Identity) -> None:
    """`leaves`: those that may be found; None for any."""
    found = life.load.look()
    if not isinstance(found, Loaded):
        raise Lost(f"load says {type(found).__name__}")
    if leaves is not None and found.identity.leaf not in leaves:
        raise Lost("the identity is one that the control plane holds for replaced")
    told = found.identity.trust
    assert before.trust is not None
    if told is None or told.version < before.trust.version or found.identity.unknown != before.unknown:
        raise Lost("identity.json has lost what it held")


def _restarted(whole: Run, disk: MemoryDisk, records: MemoryRecords, doing: Callable[[Life], None]) -> Run:
    what, again = whole.before, []
    life = life_on(what, disk, PATH, 0, lambda _: None)
    judge_restart(life, what, lambda _: again.append(act(what, doing, disk, records, whole.keys + 1000)))
    return again[0]


def judge_restart(life: Life, what: Before, doing: Callable[[Life], None]) -> None:
    """Restarts the node, long after; what it did is over then, and the clock is put back."""
    at, boottime_s = what.clock.now(), what.clock.boottime_s()
    what.clock.forward(LATER_S)
    try:
        doing(life)
        judge_end(life, what)
    except (Failure, AssertionError) as error:
        if isinstance(error, Lost):
            raise
        raise Lost(f"the restarted node: {error!r}") from None
    finally:
        what.clock.forward(boottime_s - what.clock.boottime_s())
        what.clock.set(at)


def judge_end(life: Life, what: Before) -> None:
    """After a renewal and a Hello: one pair, nothing left over, and nobody was called a copy."""
    if not isinstance(life.load.look(), LoadedAsIs):
        raise Lost("after a renewal the files are not in order")
    names = {entry.name for entry in life.fs.entries()}
    if names != (set(what.files) - {NEXT_KEY}) | {IDENTITY, KEY}:
        raise Lost(f"left in the directory: {sorted(names)}")
    cloned = [detail for kind, detail in what.plane.audit() if kind == Kind.NODE_CLONED]
    if cloned:
        raise Lost(f"the node was called a copy: {cloned}")


def leaf_of(life: Life) -> Leaf:
    found = life.load.look()
    assert isinstance(found, Loaded), found
    return found.identity.leaf


def replayed(whole: Run, changes: Sequence[Change]) -> Run:
    """The same run with its changes in another order, or without some."""
    return replace(whole, disk=disk_with(whole.before.image).replay(changes))


def losses(whole: Run, doings: Sequence[Callable[[Life], None]]) -> str | None:
    """What any cut of the run loses, or None."""
    try:
        for cut, disk, records in power_cuts(whole):
            for doing in doings:
                judge(whole, cut, MemoryDisk(disk.image), records, doing)
    except Lost as lost:
        return str(lost)
    return None


def names_in(image: Folder) -> dict[str, bytes]:
    return {name: data[:30] for name, data in MemoryDisk(image).files(PATH).items()}
