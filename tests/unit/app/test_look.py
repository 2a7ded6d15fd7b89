"""A look at the data directory: what status and doctor tell, and that it changes nothing."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from bcd.app.look import Look, PendingUnreadable, Sight
from bcd.domain.model.datadir import IDENTITY, JOURNAL, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import Exit, Failure, Message, TryLater
from bcd.domain.model.loading import LoadedAsIs, PromoteNext
from bcd.domain.model.names import NodeId
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal
from tests.fakes import pki
from tests.fakes.joining import Silent
from tests.fakes.joining import join as join_of
from tests.fakes.memory_disk import File, Folder, Link
from tests.fakes.memory_node import PATH, MemoryNode, record


@dataclass
class Journal:
    """Port `Journal` that says `found`, or raises it."""

    found: JournalState | Failure

    def look(self) -> JournalState:
        if isinstance(self.found, Failure):
            raise self.found
        return self.found


def look(node: MemoryNode, journal: JournalState | Failure = NoJournal(), owner_uid: int = 0) -> Sight:  # noqa: B008
    """What it sees; it leaves everything as it is, also while another holds the lock."""
    before, trace = node.disk.image, len(node.disk.trace)
    sight = Look(node.fs, node.load, Journal(journal), node.clock, PATH, owner_uid)()
    assert (node.disk.image, len(node.disk.trace)) == (before, trace)
    assert node.clock.waits == []
    return sight


def begun() -> MemoryNode:
    from tests.fakes.joining import ANY_NODE, Credential

    node = MemoryNode()
    with pytest.raises(TryLater):
        join_of(node.fs, PATH, Silent(), Credential(), clock=node.clock)(ANY_NODE)
    return node


def test_without_a_directory_the_node_has_not_joined() -> None:
    sight = look(MemoryNode())
    assert sight.failure is not None
    assert (sight.failure.text, sight.failure.exit) == ("this node has not joined (run bcd join)", Exit.TRY_LATER)
    assert (sight.directory, sight.faults, sight.pending) == (None, (), None)


def test_an_identity_that_loads_is_no_failure() -> None:
    sight = look(MemoryNode().joined())
    assert sight.failure is None
    assert isinstance(sight.found, LoadedAsIs)
    assert sight.directory is not None
    assert sight.directory.path == PATH


def test_b11_it_takes_no_lock_and_needs_no_writable_disk() -> None:
    """Field report B11."""
    node = MemoryNode().joined().plant(node_key=record(1004), node_key_next=record())
    node.disk.read_only = True
    with node.fs.lock(0):
        sight = look(node)
    assert isinstance(sight.found, PromoteNext)
    assert sight.failure is None
    assert NEXT_KEY in node.files


@pytest.mark.parametrize(
    ("files", "message", "status"),
    [
        ({"identity_json": b""}, Message.IDENTITY_UNREADABLE, Exit.NO_IDENTITY),
        ({"node_key": b""}, Message.KEY_MISMATCH, Exit.NO_IDENTITY),
        ({"node_key": record(1004)}, Message.KEY_MISMATCH, Exit.NO_IDENTITY),
    ],
)
def test_what_does_not_load_is_the_failure_a_node_would_end_with(
    files: dict[str, bytes], message: Message, status: Exit
) -> None:
    failure = look(MemoryNode().joined().plant(**files)).failure
    assert failure is not None
    assert (failure.message, failure.exit) == (message, status)


@pytest.mark.parametrize("name", [IDENTITY, KEY])
def test_what_may_not_be_read_is_a_failure_of_its_own(name: str) -> None:
    node = MemoryNode().joined()
    node.disk.denied = frozenset({name})
    failure = look(node).failure
    assert failure is not None
    assert (failure.message, failure.exit) == (Message.PERMISSION_DENIED, Exit.REFUSED)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604, 0o602])
def test_a_key_that_others_may_read_or_write_is_a_fault_with_the_way_to_mend_it(mode: int) -> None:
    node = MemoryNode().joined()
    node.put(KEY, File(record(), mode))
    failure = look(node).failure
    if mode == 0o600:
        assert failure is None
        return
    assert failure is not None
    assert failure.text == f"{PATH}/{KEY} has mode {mode:04o}, want 0600: chmod 0600 {PATH}/{KEY}"
    assert failure.exit == Exit.CONFIGURATION


def test_b13_a_key_of_another_owner_is_a_fault_with_the_way_to_mend_it() -> None:
    """Field report B13."""
    node = MemoryNode().joined()
    node.put(KEY, File(record(), owner=(54321, 0)))
    failure = look(node).failure
    assert failure is not None
    assert failure.text == f"node.key: owner 54321, want root: chown root {PATH}/node.key"
    assert look(MemoryNode().joined()).failure is None


def test_a_directory_that_is_none_is_the_failure_found() -> None:
    node = MemoryNode()
    node.disk.plant(PATH, Link())
    failure = look(node).failure
    assert failure is not None
    assert failure.message is Message.NOT_A_DIRECTORY


@pytest.mark.parametrize("owner", [pki.NODE, NodeId("n-9"), None])
def test_another_nodes_journal_is_a_fault_that_names_both(owner: NodeId | None) -> None:
    sight = look(MemoryNode().joined(), JournalOf(owner))
    if owner != "n-9":
        assert sight.failure is None
        return
    assert sight.failure is not None
    assert sight.failure.text.startswith(f"journal.db belongs to node n-9, this is n-7: move {PATH}/{JOURNAL} aside")
    assert sight.failure.exit == Exit.CONFIGURATION


def test_a_corrupt_journal_keeps_no_node_from_starting() -> None:
    assert look(MemoryNode().joined(), CorruptJournal("is torn")).failure is None


def test_a_journal_that_cannot_be_read_is_the_failure_found() -> None:
    sight = look(MemoryNode().joined(), TryLater(Message.FILE_SYSTEM, path="journal.db", what="broken"))
    assert sight.failure is not None
    assert sight.failure.text == "journal.db: broken"


def test_a_join_under_way_is_seen() -> None:
    node = begun()
    sight = look(node)
    assert sight.pending is not None
    assert not isinstance(sight.pending, PendingUnreadable)
    assert (sight.pending.begun, sight.pending.attestor) == (pki.NOW, "join-token")


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("planted", [File(b""), File(b"{}"), Link(mode=0o600), Folder()])
def test_a_request_that_cannot_be_read_changes_nothing_about_the_identity(
    planted: File | Link | Folder, joined: bool
) -> None:
    node = MemoryNode().joined() if joined else MemoryNode()
    node.disk.plant(f"{PATH}/{PENDING}", planted)
    sight = look(node)
    assert isinstance(sight.pending, PendingUnreadable)
    assert sight.pending.why
    assert (sight.failure is None) is joined
    if sight.failure is not None:
        assert sight.failure.message is Message.NOT_JOINED


@pytest.mark.parametrize("behind_s", [-60.0, 0.0, 60.0])
def test_a_clock_behind_the_last_time_the_server_told_is_not_believed(behind_s: float) -> None:
    node = MemoryNode().joined()
    node.clock.set(pki.NOW - timedelta(seconds=behind_s))
    assert look(node).now == max(pki.NOW, pki.NOW - timedelta(seconds=behind_s))


def test_without_an_identity_the_clock_is_all_there_is() -> None:
    node = MemoryNode()
    node.clock.set(pki.NOW - timedelta(days=400))
    assert look(node).now == pki.NOW - timedelta(days=400)


def test_a_sight_is_a_value() -> None:
    sight = look(MemoryNode().joined())
    assert replace(sight) == sight
