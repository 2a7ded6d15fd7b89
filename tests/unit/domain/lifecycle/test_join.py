"""A join with fakes at every port: what it leaves, what a joined machine says, and who else may write."""

import pytest
from cryptography import x509

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.domain.lifecycle.begin_join import Wanted
from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, PENDING
from bcd.domain.model.failures import FixConfiguration, Message, MustJoinAgain, Refused, TryLater
from bcd.domain.model.joining import Failed, Issued, Pending
from bcd.domain.model.loading import LoadedAsIs
from bcd.domain.model.names import NodeId, Role
from tests.fakes import pki
from tests.fakes.joining import ANY_NODE, TOKEN, ControlPlane, Credential, journal_of
from tests.fakes.memory_join import Answers, failure, good, join, never, pending
from tests.fakes.memory_node import PATH, MemoryNode, record


def test_a_first_join_stores_the_identity_and_its_key_and_nothing_else() -> None:
    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    found = join(node, plane, credential)
    assert (found.already, found.identity.node_id) == (False, pki.NODE)
    assert node.files.keys() == {IDENTITY, KEY}
    loaded = node.load.look()
    assert isinstance(loaded, LoadedAsIs)
    assert loaded.identity == found.identity
    assert (credential.taken, credential.was_spent) == (1, True)
    assert len(plane.sent) == 1


@pytest.mark.parametrize("role", list(Role))
def test_the_role_that_is_asked_for_is_the_role_that_comes(role: Role) -> None:
    plane = Answers(lambda question: good(question, not_after=pki.NOT_BEFORE + pki.timedelta(hours=2)))
    assert join(MemoryNode(), plane, wanted=Wanted(role, None)).identity.role is role


def test_a_data_directory_that_others_can_enter_sees_no_token_and_no_key() -> None:
    def loose() -> None:
        raise FixConfiguration(Message.DIRECTORY_LOOSE, path=PATH, mode="0755")

    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    assert failure(node, plane, credential, check_directory=loose).message is Message.DIRECTORY_LOOSE
    assert (node.files, plane.sent, credential.taken) == ({}, [], 0)


# --- A machine that has joined


@pytest.mark.parametrize("wanted", [ANY_NODE, Wanted(Role.NODE, pki.NODE), Wanted(Role.SITE, None)])
def test_b62_a_machine_that_has_joined_reads_no_credential_and_asks_nobody(wanted: Wanted) -> None:
    """Field report B62."""
    node, plane, credential = MemoryNode().joined(), ControlPlane(), Credential(None)
    before = node.disk.image
    found = join(node, plane, credential, wanted, recipient=never)
    assert (found.already, found.identity.node_id) == (True, pki.NODE)
    assert (plane.sent, credential.taken, credential.was_spent) == ([], 0, True)
    assert node.disk.image == before


def test_another_node_id_is_refused_and_the_token_stays() -> None:
    node, plane, credential = MemoryNode().joined(), ControlPlane(), Credential()
    before = node.disk.image
    found = failure(node, plane, credential, wanted=Wanted(Role.NODE, NodeId("n-9")))
    assert isinstance(found, Refused)
    assert found.message is Message.OTHER_NODE
    assert "already joined as n-7, not n-9" in found.text
    assert (plane.sent, credential.taken, credential.was_spent) == ([], 0, False)
    assert node.disk.image == before


@pytest.mark.parametrize("data", [b"", b"{}", b"\0" * 100])
def test_b04_an_identity_that_does_not_load_is_not_written_over(data: bytes) -> None:
    """Field report B04."""
    node, plane, credential = MemoryNode().joined(), ControlPlane(), Credential()
    node.put(IDENTITY, data)
    before = node.disk.image
    assert isinstance(failure(node, plane, credential), MustJoinAgain)
    assert (plane.sent, credential.taken, credential.was_spent) == ([], 0, False)
    assert node.disk.image == before


def test_b06_an_empty_key_is_a_mismatch_and_not_already_joined() -> None:
    """Field report B06."""
    node = MemoryNode().joined().plant(node_key=b"")
    assert failure(node, ControlPlane()).message is Message.KEY_MISMATCH


@pytest.mark.parametrize("left", [True, False])
def test_b10_a_machine_that_has_joined_says_so_on_a_read_only_disk_too(left: bool) -> None:
    """Field report B10. Only where something is left to be done is there a warning."""
    node = MemoryNode().joined()
    if left:
        node.put(PENDING, b"left over")
    node.disk.read_only = True
    credential = Credential()
    assert join(node, ControlPlane(), credential).already
    assert credential.was_spent
    assert len(node.told("warning")) == left
    node.disk.read_only = False
    join(node)
    assert node.files.keys() == {IDENTITY, KEY}


# --- To whom it belongs


def owners(node: MemoryNode) -> dict[str, tuple[int, int]]:
    folder = dict(dict(dict(node.disk.image.names)["var"].names)["lib"].names)["bcd"]  # type: ignore[union-attr]
    return {name: image.owner for name, image in folder.names}  # type: ignore[union-attr]


BCD = Owner("bcd", 1000, 1001)


@pytest.mark.parametrize("owner", [None, BCD])
def test_the_files_of_the_identity_belong_to_the_helpers_user_from_the_first_moment(owner: Owner | None) -> None:
    node = MemoryNode(owner)
    join(node)
    assert owners(node) == dict.fromkeys((IDENTITY, KEY), (0, 0) if owner is None else (1000, 1001))
    assert node.told("info") == []


def test_b13_a_join_on_a_joined_machine_repairs_the_hand_over_and_says_so() -> None:
    """Field report B13: a restored backup belongs to root."""
    node = MemoryNode(BCD).joined()
    theirs = (IDENTITY, KEY, JOURNAL, *JOURNAL_SIDE_FILES)
    node.put(JOURNAL, journal_of(pki.NODE))
    for name in (*JOURNAL_SIDE_FILES, "notes.txt"):
        node.put(name, b"x")
    assert join(node).already
    assert owners(node) == dict.fromkeys(theirs, (1000, 1001)) | {"notes.txt": (0, 0)}
    # And the directory: who may not enter it can read none of them.
    assert node.told("info") == ["handed over to the node's user"] * (1 + len(theirs))
    join(node)
    assert len(node.told("info")) == 1 + len(theirs)


# --- One at a time


@pytest.mark.parametrize("held", [True, False])
def test_a_join_waits_45_seconds_for_another_writer_and_touches_nothing(held: bool) -> None:
    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    other = LocalFs(PATH, node.clock, syscalls=node.disk)
    lock = other.lock(0)
    lock.__enter__()
    if not held:
        lock.__exit__(None, None, None)
        join(node, plane, credential)
        return
    found = failure(node, plane, credential)
    assert found.message is Message.LOCKED
    assert 45 <= sum(node.clock.waits) < 46
    assert (node.files, plane.sent, credential.taken) == ({}, [], 0)


def test_the_lock_is_held_until_the_end_also_while_it_waits() -> None:
    node = MemoryNode()
    other = LocalFs(PATH, node.clock, syscalls=node.disk)
    tried: list[Message] = []

    def intrude() -> None:
        if tried:
            return
        tried.append(Message.LOCKED)
        with pytest.raises(TryLater) as caught, other.lock(0):
            pass
        assert caught.value.message is Message.LOCKED

    node.clock.on_wait = intrude
    join(node, ControlPlane(scripted=[Failed("busy")]))
    assert tried
    with other.lock(0):
        pass


def test_nothing_is_shown_of_token_or_key_by_any_event_or_failure() -> None:
    node = MemoryNode()
    plane = Answers(Failed("busy"), Pending("a-1", 1), lambda question: Issued(b"\xff"))
    found = failure(node, plane)
    shown = repr(node.events.lines) + repr(found) + repr(found.fields) + repr(plane.sent) + repr(pending(node))
    key = pending(node).key.decode()
    assert TOKEN.decode() not in shown
    assert key.splitlines()[1] not in shown
    assert isinstance(x509.load_der_x509_csr(pending(node).csr), x509.CertificateSigningRequest)
    assert record() != pending(node).key
