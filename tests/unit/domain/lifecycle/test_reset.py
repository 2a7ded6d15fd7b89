"""Setting an identity aside: what moves, in which order, and under which names."""

import pytest

from bcd.domain.lifecycle.reset import Reset
from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, NEXT_KEY, PENDING, RESET_ORDER, Moved
from bcd.domain.model.failures import Message, TryLater
from bcd.domain.model.loading import NotJoined
from tests.fakes.disk_changes import Rename
from tests.fakes.memory_disk import Link
from tests.fakes.memory_node import PATH, MemoryNode

STAMP = "20260926T120000Z"


def reset(node: MemoryNode) -> Reset:
    return Reset(node.fs, node.clock, node.events)


def whole() -> MemoryNode:
    node = MemoryNode().joined()
    for name in (NEXT_KEY, PENDING, JOURNAL, *JOURNAL_SIDE_FILES):
        node.put(name, name.encode())
    return node


def run(node: MemoryNode) -> tuple[Moved, ...]:
    with node.fs.lock(0):
        return reset(node)()


def test_every_file_of_the_identity_moves_and_keeps_what_it_holds() -> None:
    node = whole()
    node.put("notes.txt", b"somebody's")
    before = node.files
    run(node)
    # SQLite looks for a side file under the database's whole name.
    sides = {name: f"{JOURNAL}.reset-{STAMP}{name.removeprefix(JOURNAL)}" for name in JOURNAL_SIDE_FILES}
    expected = {sides.get(name, f"{name}.reset-{STAMP}"): data for name, data in before.items() if name != "notes.txt"}
    assert node.files == expected | {"notes.txt": b"somebody's"}
    assert node.load.look() == NotJoined(orphan_key=False)


def test_the_identity_moves_last_and_each_file_only_after_the_one_before_it() -> None:
    node = whole()
    run(node)
    renamed = [change.old for change in node.disk.trace if isinstance(change, Rename)]
    assert renamed == list(RESET_ORDER)
    assert renamed[:2] == [NEXT_KEY, KEY]
    assert renamed[-1] == IDENTITY


@pytest.mark.parametrize("names", [(), (IDENTITY,), (KEY,), (IDENTITY, JOURNAL), (PENDING,)])
def test_only_what_is_there_moves(names: tuple[str, ...]) -> None:
    node = MemoryNode()
    for name in names:
        node.put(name, b"x")
    moved = run(node)
    assert {one.name for one in moved} == set(names)
    assert len(node.told("info")) == len(names)


def test_a_link_moves_itself() -> None:
    node = MemoryNode()
    node.disk.plant(f"{PATH}/{KEY}", Link())
    assert run(node) == (Moved(KEY, f"{KEY}.reset-{STAMP}"),)


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_the_plan_is_what_happens_also_where_a_name_is_taken(taken: int) -> None:
    node = whole()
    for number in range(taken):
        end = f".{number}" if number else ""
        node.put(f"{KEY}.reset-{STAMP}{end}", f"earlier {number}".encode())
    planned = reset(node).plan()
    before = node.files
    moved = run(node)
    assert moved == planned
    end = f".{taken}" if taken else ""
    assert Moved(KEY, f"{KEY}.reset-{STAMP}{end}") in moved
    assert all(node.files[one.new_name] == before[one.name] for one in moved)
    assert len(node.files) == len(before)


def test_b11_a_plan_writes_nothing_also_on_a_read_only_disk() -> None:
    """Field report B11."""
    node = whole()
    node.disk.read_only = True
    before, trace = node.disk.image, len(node.disk.trace)
    assert [one.name for one in reset(node).plan()] == list(RESET_ORDER)
    assert (node.disk.image, len(node.disk.trace)) == (before, trace)


def test_b10_on_a_read_only_disk_nothing_moves_and_the_directory_is_named() -> None:
    """Field report B10."""
    node = whole()
    node.disk.read_only = True
    before = node.files
    with pytest.raises(TryLater) as caught:
        run(node)
    assert caught.value.message is Message.READ_ONLY
    assert PATH in caught.value.text
    assert node.files == before


def test_without_a_directory_there_is_nothing_to_move() -> None:
    assert reset(MemoryNode()).plan() == ()
