"""Every store keeps the contract, and a store that breaks it is found out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.controlplane.adapters.sqlite.store import SqliteStore, create
from bcd.controlplane.ports.store import Store
from tests.contract.store.clauses import Clause
from tests.contract.store.contract import CLAUSES
from tests.contract.store.wrong import WRONG
from tests.fakes.controlplane.memory_store import MemoryStore


def sqlite(folder: Path) -> Store:
    path = str(folder / "store.db")
    create(path)
    return SqliteStore(path)


def memory(folder: Path) -> Store:
    return MemoryStore()


@pytest.fixture(params=[sqlite, memory], ids=lambda make: make.__name__)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    make: Callable[[Path], Store] = request.param
    made = make(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__)
def test_every_store_keeps(clause: Clause, store: Store) -> None:
    clause(store)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_store_is_found_out(wrong: type[MemoryStore]) -> None:
    by_name = {clause.__name__: clause for clause in CLAUSES}
    with pytest.raises(AssertionError):
        by_name[WRONG[wrong]](wrong())
