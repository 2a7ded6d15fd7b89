"""A renewal's order on a disk that fails, that is full, that loses power, or that held the only copy of a key."""

import errno
from dataclasses import replace

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.renew import ROOM_BYTES, NewPair, NotRenewed, Renew
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import TryLater
from bcd.domain.model.loading import Loaded, LoadedAsIs, PromoteNext, RemoveNext
from bcd.ports.gateway import Pair, RenewAnswer, RenewQuestion
from bcd.protocol.files import identity_json
from bcd.protocol.pki import csr, ecdsa
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.disk_changes import Mark
from tests.fakes.gateway import MemoryConnection, MemoryGateway
from tests.fakes.joining import Recorded
from tests.fakes.memory_disk import MemoryDisk
from tests.fakes.memory_node import PATH, MemoryNode, identity, record
from tests.fakes.memory_renewal import ASKED, HELD, NO, Case
from tests.fakes.memory_tpm import LOCKED, MemoryTpmKeys


def test_the_next_key_is_safe_on_the_disk_before_the_question_leaves() -> None:
    """Specification, step 2: the power goes as the question leaves, and whatever is left holds the key."""
    case = Case()
    case.renew()
    disk = case.node.disk
    sent = next(n for n, change in enumerate(disk.trace) if isinstance(change, Mark))
    states = list(disk.states_at(sent))
    assert states
    for state in states:
        found = FileKeys().open(state.files(PATH)[NEXT_KEY])
        assert isinstance(found, FileKey)
        assert found.spki == csr.key_of(case.question.csr)


def loads(disk: MemoryDisk) -> Loaded:
    node = MemoryNode()
    fs = LocalFs(PATH, node.clock, None, disk)
    with fs.lock(0):
        loaded = replace(node.load, fs=fs)()
    assert isinstance(loaded, Loaded)
    # And what it settled on stays.
    with fs.lock(0):
        assert isinstance(replace(node.load, fs=fs)(), LoadedAsIs)
    return loaded


def test_a_power_cut_at_any_moment_leaves_a_pair_that_matches() -> None:
    case = Case()
    outcome = case.renew()
    assert isinstance(outcome, NewPair)
    found = set()
    for n in range(len(case.node.disk.trace) + 1):
        for state in case.node.disk.states_at(n):
            found.add(loads(state).identity.leaf)
    assert found == {HELD.leaf, outcome.pair.leaf}
    # Once it is told as done, it is.
    end = list(case.node.disk.states_at(len(case.node.disk.trace)))
    assert {loads(state).identity.leaf for state in end} == {outcome.pair.leaf}


def test_the_next_key_is_written_again_when_something_removed_it_meanwhile() -> None:
    """Specification, step 5."""
    case = Case()

    def remove_and_certify(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        case.node.fs.remove(NEXT_KEY)
        return case.gateway.certify(connection, question)

    assert isinstance(case.answers(remove_and_certify).renew(), NewPair)
    with case.node.fs.lock(0):
        assert isinstance(case.node.load(), LoadedAsIs)


@pytest.mark.parametrize(("free", "asks"), [(ROOM_BYTES - 1, False), (ROOM_BYTES, True)])
def test_without_room_for_all_of_it_nothing_is_asked(free: int, asks: bool) -> None:
    """Decision 11: the path and the free bytes are named, and no certificate is issued that could not be stored."""
    case = Case()
    case.node.disk.free_bytes = free
    if asks:
        assert isinstance(case.renew(), NewPair)
        return
    with pytest.raises(TryLater, match=rf"No space left on device: {PATH}/{IDENTITY} \({free} bytes free\)"):
        case.renew()
    assert case.connection.asked == []
    assert case.node.files == case.before


def test_a_full_disk_stops_before_anything_is_asked() -> None:
    case = Case()
    case.node.disk.free_bytes = 0
    with pytest.raises(TryLater, match="No space left on device"):
        case.renew()
    assert case.connection.asked == []
    case.node.disk.free_bytes = 1 << 20
    case.pair_is_untouched()


def changes_after_the_question() -> int:
    case = Case()
    assert isinstance(case.renew(), NewPair)
    trace = case.node.disk.trace
    return len(trace) - next(n for n, change in enumerate(trace) if isinstance(change, Mark)) - 1


@pytest.mark.parametrize("n", range(changes_after_the_question()))
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_while_the_answer_is_stored_leaves_a_pair_and_asks_the_same_again(n: int, code: int) -> None:
    """The certificate is issued by then. Asked with another key it would be another one, against the quota."""
    case = Case()

    def certify(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        case.node.disk.fail(code, n)
        return case.gateway.certify(connection, question)

    outcome = case.answers(certify).renew()
    with case.node.fs.lock(0):
        loaded = case.node.load()
    assert isinstance(loaded, Loaded)
    if isinstance(outcome, NotRenewed) and loaded.identity.leaf == HELD.leaf:
        assert outcome.next_key is not None
        case.answers(case.gateway.certify)
        assert isinstance(case.renew(outcome.next_key), NewPair)
        assert len({question.csr for question in case.connection.asked}) == 1
    else:
        # identity.json was replaced: the new pair is the identity, whatever was told of it.
        assert loaded.identity.leaf.spki == csr.key_of(case.question.csr)


@pytest.mark.parametrize("found", [record(), record().rstrip(b"\n")], ids=["as written", "without its last newline"])
def test_a_key_that_still_lies_in_the_next_keys_place_is_not_overwritten(found: bytes) -> None:
    """A crash before the rename, a boot with a read-only disk (nothing promoted, the node runs), the disk writable
    again, and the time to renew: `node.key.next` is the only copy of the key in use."""
    node = MemoryNode().plant(identity_json=identity_json.encode(HELD), node_key=record(1004), node_key_next=found)
    case = Case(node).answers_with(NO)
    assert isinstance(case.renew(), NotRenewed)
    for n in range(len(node.disk.trace) + 1):
        for state in node.disk.states_at(n):
            assert loads(state).identity.leaf == HELD.leaf
    with node.fs.lock(0):
        assert isinstance(node.load(), RemoveNext | PromoteNext)
    assert node.files[KEY] == found


def test_nor_is_its_record_while_the_tpm_cannot_be_asked() -> None:
    """As before, with the key in a TPM that is away at that moment. When it is back the identity loads."""
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    key = keys.create()
    leaf = identity(key=ecdsa.public_key(key.spki))
    stored = identity_json.encode(leaf)
    node = MemoryNode(keys=keys).plant(identity_json=stored, node_key=record(1004), node_key_next=key.record)
    pair = Pair(leaf.leaf, leaf.chain, key)
    held.trouble = LOCKED
    renew = Renew(node.fs, keys, MemoryAttestor(), ChangeIdentity(node.fs), pki.PINS)
    with pytest.raises(TryLater):
        renew(pair, MemoryConnection(MemoryGateway(lambda: ASKED), pair), ASKED, None)
    held.trouble = None
    with node.fs.lock(0):
        assert isinstance(node.load(), RemoveNext | PromoteNext)
    assert node.files[KEY] == key.record


def test_the_tpm_is_not_asked_for_what_an_attempt_before_left() -> None:
    """Each key it derives takes a place and half a second."""
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    key, left = keys.create(), keys.create()
    leaf = identity(key=ecdsa.public_key(key.spki))
    node = MemoryNode(keys=keys).plant(
        identity_json=identity_json.encode(leaf), node_key=key.record, node_key_next=left.record
    )
    pair, gateway = Pair(leaf.leaf, leaf.chain, key), MemoryGateway(lambda: ASKED)
    left.release()
    held.commands.clear()
    outcome = Renew(node.fs, keys, MemoryAttestor(), ChangeIdentity(node.fs), pki.PINS)(
        pair, MemoryConnection(gateway, pair), ASKED, None
    )
    assert isinstance(outcome, NewPair)
    assert held.commands == ["CreatePrimary", "Sign", "Sign"]
    assert node.files[KEY] == outcome.pair.key.record
