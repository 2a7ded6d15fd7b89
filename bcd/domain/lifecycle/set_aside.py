"""Setting a journal aside, so that SQLite still finds what belongs to it.

A journal whose process was killed in a transaction is whole only together with its side file, and SQLite looks for that
under the database's own name with -journal (or -wal, -shm) after it. So all of them get one new name. The side files go
first: a journal.db is never gone while they are there, to be played into the next one. A cut in between leaves a side
file under a new name whose database is not there: that is the name, and the next one to set aside goes on with it.
"""

from collections.abc import Iterable
from itertools import count

from bcd.domain.model.datadir import JOURNAL, JOURNAL_SIDE_FILES, Moved
from bcd.ports.fs import Fs

_SIDES = tuple(name.removeprefix(JOURNAL) for name in JOURNAL_SIDE_FILES)


def journal_moves(there: Iterable[str], wanted: str) -> tuple[Moved, ...]:
    """What setting the journal aside as `wanted` moves, in its order, in a directory with these names; `wanted` only
    where that name, and each that belongs to it, is to be had, and no cut left another to go on with."""
    names = frozenset(there)
    found = [name for name in (*JOURNAL_SIDE_FILES, JOURNAL) if name in names]
    if JOURNAL not in names:
        # Of a journal that is gone. Under these names they belong to none, nor to the next one that is set aside.
        return tuple(Moved(name, _free(f"{wanted}{name.removeprefix(JOURNAL)}.alone", names)) for name in found)
    new_name = _begun(names) or _free(wanted, names, _SIDES)
    return tuple(Moved(name, new_name + name.removeprefix(JOURNAL)) for name in found)


def set_journal_aside(fs: Fs, wanted: str) -> tuple[Moved, ...]:
    """What was moved, each durable before the next. The caller holds the lock."""
    return move(fs, journal_moves((entry.name for entry in fs.entries()), wanted))


def move(fs: Fs, moves: Iterable[Moved]) -> tuple[Moved, ...]:
    """Carries `moves` out; each with the name it got."""
    moved = []
    for one in moves:
        new_name = fs.move_aside(one.name, one.new_name)
        if new_name is not None:
            moved.append(Moved(one.name, new_name))
    return tuple(moved)


def _begun(names: frozenset[str]) -> str | None:
    """The name that a cut left for the journal: its side files have it, and it does not."""
    for name in sorted(names):
        for side in _SIDES:
            database = name.removesuffix(side)
            if name.endswith(side) and database.startswith(f"{JOURNAL}.") and database not in names:
                return database
    return None


def _free(wanted: str, taken: frozenset[str], more: Iterable[str] = ()) -> str:
    """`wanted`, or the first of wanted.1, wanted.2… that is free, also with each of `more` after it."""
    names = (f"{wanted}.{number}" if number else wanted for number in count())
    return next(free for free in names if taken.isdisjoint(free + end for end in ("", *more)))
