"""Setting an identity aside (specification, "Joining again with --reset"; decision 7). Nothing is deleted."""

from dataclasses import dataclass
from itertools import count

from bcd.domain.model.datadir import RESET_ORDER, reset_name
from bcd.ports.clock import Clock
from bcd.ports.events import Events
from bcd.ports.fs import Fs


@dataclass(frozen=True)
class Moved:
    """One file that was, or would be, set aside."""

    name: str
    new_name: str


@dataclass(frozen=True)
class Reset:
    fs: Fs
    clock: Clock
    events: Events

    def plan(self) -> tuple[Moved, ...]:
        """What a reset now would move, in its order. Takes no lock and writes nothing."""
        there = {entry.name for entry in self.fs.entries()}
        now = self.clock.now()
        return tuple(Moved(name, _free(reset_name(name, now), there)) for name in RESET_ORDER if name in there)

    def __call__(self) -> tuple[Moved, ...]:
        """Moves them, identity.json last: a cut in between leaves an identity without its key, and that points back
        here. The caller holds the lock."""
        now = self.clock.now()
        moved = []
        for name in RESET_ORDER:
            new_name = self.fs.move_aside(name, reset_name(name, now))
            if new_name is not None:
                self.events.info("set aside", file=name, as_=new_name)
                moved.append(Moved(name, new_name))
        return tuple(moved)


def _free(name: str, taken: set[str]) -> str:
    """The name that `move_aside` gives where `name` is to be had: that, or the first of name.1, name.2… left."""
    names = (f"{name}.{number}" if number else name for number in count())
    return next(free for free in names if free not in taken)
