"""Setting an identity aside (specification, "Joining again with --reset"; decision 7). Nothing is deleted."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from bcd.domain.lifecycle.set_aside import journal_moves, move
from bcd.domain.model.datadir import JOURNAL, JOURNAL_SIDE_FILES, RESET_ORDER, Moved, reset_name
from bcd.ports.clock import Clock
from bcd.ports.events import Events
from bcd.ports.fs import Fs


@dataclass(frozen=True)
class Reset:
    fs: Fs
    clock: Clock
    events: Events

    def plan(self) -> tuple[Moved, ...]:
        """What a reset now would move, in its order. Takes no lock and writes nothing."""
        return _moves((entry.name for entry in self.fs.entries()), self.clock.now())

    def __call__(self) -> tuple[Moved, ...]:
        """Moves them, identity.json last: a cut in between leaves an identity without its key, and that points back
        here. The caller holds the lock."""
        moved = []
        for planned in self.plan():
            for one in move(self.fs, (planned,)):
                self.events.info("set aside", file=one.name, as_=one.new_name)
                moved.append(one)
        return tuple(moved)


def _moves(there: Iterable[str], now: datetime) -> tuple[Moved, ...]:
    names = frozenset(there)
    moves: list[Moved] = []
    for name in RESET_ORDER:
        if name == JOURNAL:
            moves += journal_moves(names, reset_name(JOURNAL, now))
        elif name in names and name not in JOURNAL_SIDE_FILES:
            moves.append(Moved(name, _free(reset_name(name, now), names)))
    return tuple(moves)


def _free(name: str, taken: frozenset[str]) -> str:
    """The name that `move_aside` gives where `name` is to be had: that, or the first of name.1, name.2… left."""
    names = (f"{name}.{number}" if number else name for number in count())
    return next(free for free in names if free not in taken)
