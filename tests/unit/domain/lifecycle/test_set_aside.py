"""Setting a journal aside: one name for all that belongs to it, whatever was taken and wherever it was cut before."""

import pytest

from bcd.domain.lifecycle.set_aside import journal_moves, set_journal_aside
from bcd.domain.model.datadir import JOURNAL, JOURNAL_SIDE_FILES, Moved
from tests.fakes.memory_node import MemoryNode

WANTED = f"{JOURNAL}.reset-20260926T120000Z"
HOT = f"{JOURNAL}-journal"


def moves(*there: str) -> dict[str, str]:
    return {one.name: one.new_name for one in journal_moves(there, WANTED)}


def test_the_side_files_go_first_and_keep_their_endings_behind_the_new_name() -> None:
    planned = journal_moves((JOURNAL, *JOURNAL_SIDE_FILES, "node.key"), WANTED)
    assert planned == (
        Moved(HOT, f"{WANTED}-journal"),
        Moved(f"{JOURNAL}-wal", f"{WANTED}-wal"),
        Moved(f"{JOURNAL}-shm", f"{WANTED}-shm"),
        Moved(JOURNAL, WANTED),
    )


def test_without_a_journal_nothing_is_moved() -> None:
    assert moves("node.key", f"{WANTED}") == {}


@pytest.mark.parametrize("taken", [WANTED, f"{WANTED}-journal", f"{WANTED}-wal", f"{WANTED}-shm"])
def test_a_name_is_taken_when_any_of_those_that_belong_to_it_is(taken: str) -> None:
    there = (taken, WANTED) if taken != WANTED else (WANTED,)
    assert moves(JOURNAL, HOT, *there) == {HOT: f"{WANTED}.1-journal", JOURNAL: f"{WANTED}.1"}


@pytest.mark.parametrize("side", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("begun", [f"{JOURNAL}.reset-20250101T000000Z", f"{JOURNAL}.n-old-1700000000", f"{WANTED}.1"])
def test_one_that_was_cut_off_goes_on_under_its_own_name(begun: str, side: str) -> None:
    assert moves(JOURNAL, begun + side) == {JOURNAL: begun}
    assert moves(JOURNAL, HOT, begun + "-wal")[HOT] == f"{begun}-journal"


def test_one_that_was_not_cut_off_is_left_alone() -> None:
    old = f"{JOURNAL}.reset-20250101T000000Z"
    assert moves(JOURNAL, old, f"{old}-journal") == {JOURNAL: WANTED}


def test_a_side_file_whose_journal_is_gone_is_kept_under_a_name_that_belongs_to_no_journal() -> None:
    first = moves(HOT)
    assert first == {HOT: f"{WANTED}-journal.alone"}
    assert moves(HOT, first[HOT]) == {HOT: f"{WANTED}-journal.alone.1"}
    assert moves(JOURNAL, first[HOT]) == {JOURNAL: WANTED}


def test_it_is_carried_out_in_that_order() -> None:
    node = MemoryNode()
    for name in (JOURNAL, HOT):
        node.put(name, name.encode())
    with node.fs.lock(0):
        assert [one.name for one in set_journal_aside(node.fs, WANTED)] == [HOT, JOURNAL]
    assert node.files == {f"{WANTED}-journal": HOT.encode(), WANTED: JOURNAL.encode()}
