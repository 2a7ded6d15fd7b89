"""What a join stores, what it sets aside, and root's record."""

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.domain.model.datadir import IDENTITY, JOIN_RECORD, JOURNAL, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import Message, TryLater
from bcd.domain.model.loading import LoadedAsIs
from tests.fakes import pki
from tests.fakes.disk_changes import Rename
from tests.fakes.joining import ControlPlane, Credential, journal_of
from tests.fakes.memory_disk import File, Folder, Link
from tests.fakes.memory_join import STAMP, failure, join
from tests.fakes.memory_node import PATH, MemoryNode

RECORD_PATH = "/var/lib/bcd-hostconfig"


def test_a_key_without_an_identity_is_set_aside_and_a_stale_next_key_goes() -> None:
    node = MemoryNode().plant(node_key=b"somebody's", node_key_next=b"stale")
    join(node)
    assert node.files.keys() == {IDENTITY, KEY, f"{KEY}.orphan-{STAMP}"}
    assert node.files[f"{KEY}.orphan-{STAMP}"] == b"somebody's"
    assert isinstance(node.load.look(), LoadedAsIs)


@pytest.mark.parametrize("owner", ["n-old", pki.NODE, None])
def test_another_nodes_journal_goes_aside_under_its_name_and_ones_own_stays(owner: str | None) -> None:
    node = MemoryNode()
    node.put(JOURNAL, journal_of(owner))
    node.put(f"{JOURNAL}-journal", b"side")
    join(node)
    moved = f"{JOURNAL}.n-old-{int(pki.NOW.timestamp())}"
    names = {moved, f"{moved}-journal"} if owner == "n-old" else {JOURNAL, f"{JOURNAL}-journal"}
    assert node.files.keys() == {IDENTITY, KEY} | names
    assert node.told("warning") == []


def test_a_corrupt_journal_goes_aside_with_a_warning() -> None:
    node = MemoryNode()
    node.put(JOURNAL, b"rubbish" * 100)
    node.put(f"{JOURNAL}-wal", b"side")
    join(node)
    moved = f"{JOURNAL}.corrupt-{STAMP}"
    assert node.files.keys() == {IDENTITY, KEY, moved, f"{moved}-wal"}
    assert node.told("warning") == ["the journal is corrupt and is set aside"]


def record_fs(node: MemoryNode) -> LocalFs:
    return LocalFs(RECORD_PATH, node.clock, syscalls=node.disk)


def test_roots_record_is_what_was_signed_and_is_durable_before_the_identity() -> None:
    node, plane = MemoryNode(), ControlPlane()
    join(node, plane, record=record_fs(node))
    (signed,) = plane.issued.values()
    assert node.disk.files(RECORD_PATH) == {JOIN_RECORD: signed}
    renamed = [change.new for change in node.disk.trace if isinstance(change, Rename)]
    assert renamed == [PENDING, JOIN_RECORD, NEXT_KEY, IDENTITY, KEY]


@pytest.mark.parametrize("planted", [File(b""), Link()])
def test_a_record_that_cannot_be_written_leaves_no_identity_and_the_next_join_goes_on(planted: File | Link) -> None:
    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    node.disk.plant(RECORD_PATH, planted)
    assert RECORD_PATH in failure(node, plane, credential, record=record_fs(node)).text
    assert node.files.keys() == {PENDING}
    assert not credential.was_spent
    node.disk.plant(RECORD_PATH, Folder())
    join(node, plane, Credential(None), record=record_fs(node))
    assert node.files.keys() == {IDENTITY, KEY}


def test_without_a_helper_there_is_no_record() -> None:
    node = MemoryNode()
    join(node)
    assert node.disk.files(RECORD_PATH) == {}


@pytest.mark.parametrize("at", range(12))
def test_b08_a_disk_that_is_full_at_any_change_leaves_the_request_or_the_identity(at: int) -> None:
    """Field report B08: what failed once goes on with the same request, and without the token."""
    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    with node.fs.lock(0):
        pass
    node.disk.fail(28, at)
    try:
        join(node, plane, credential)
    except TryLater as full:
        assert full.message is Message.NO_SPACE
        assert PATH in full.text
    join(node, plane, credential if PENDING not in node.files and IDENTITY not in node.files else Credential(None))
    assert node.files.keys() == {IDENTITY, KEY}
    assert len(plane.issued) == 1
