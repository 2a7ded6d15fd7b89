"""How the store's contract is written down: one clause a function, gathered by its module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bcd.controlplane.ports.store import Records, Store

T = TypeVar("T")
Clause = Callable[[Store], None]
PATIENCE_S = 20.0


class Spoiled(Exception):
    """What a piece of work raises to undo itself."""


def changed(store: Store, work: Callable[[Records], T]) -> T:
    return store.change(work).result(PATIENCE_S)


def gathered(clauses: list[Clause]) -> Callable[[Clause], Clause]:
    """The decorator that puts a clause into `clauses`."""

    def clause(check: Clause) -> Clause:
        clauses.append(check)
        return check

    return clause
