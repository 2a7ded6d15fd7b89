"""The one way `identity.json` is changed: read again under the lock, and only when the leaf is still the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bcd.domain.lifecycle.change_identity import ChangeIdentity, IdentityChanged
from bcd.domain.model.datadir import IDENTITY
from bcd.domain.model.failures import Refused
from bcd.domain.model.identity import Identity
from bcd.protocol.files import identity_json
from tests.fakes import pki
from tests.fakes.disk_changes import Create, Rename
from tests.fakes.memory_node import MemoryNode, identity, record

HELD = identity()
OTHERS: dict[str, bytes | None] = {
    "absent": None,
    "empty": b"",
    "torn": identity_json.encode(HELD)[:200],
    "not an identity": b"{}",
    "another leaf of the same node": identity_json.encode(identity(serial=4712)),
}


def joined() -> MemoryNode:
    return MemoryNode().plant(identity_json=identity_json.encode(HELD), node_key=record())


def later(found: Identity) -> Identity:
    return replace(found, server_time=pki.NOW + timedelta(hours=1))


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_identity_on_disk_is_told_and_left_alone(other: bytes | None) -> None:
    node = joined()
    with node.fs.lock(0):
        node.fs.remove(IDENTITY)
    if other is not None:
        node.put(IDENTITY, other)
    before = node.disk.image
    with node.fs.lock(0), pytest.raises(IdentityChanged):
        ChangeIdentity(node.fs).stored(HELD.leaf)
    with node.fs.lock(0), pytest.raises(IdentityChanged):
        ChangeIdentity(node.fs)(HELD.leaf, later)
    assert node.disk.image == before


def test_a_change_is_made_to_what_lies_there_and_not_to_what_was_loaded() -> None:
    node = joined()
    node.put(IDENTITY, identity_json.encode(replace(HELD, unknown={"laterField": 1}, trust=None)))
    with node.fs.lock(0):
        changed = ChangeIdentity(node.fs)(HELD.leaf, later)
    assert changed == replace(later(HELD), unknown={"laterField": 1}, trust=None)
    assert identity_json.decode(node.files[IDENTITY]) == changed


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    node = joined()
    with node.fs.lock(0):
        assert ChangeIdentity(node.fs)(HELD.leaf, lambda found: found) == HELD
    assert not any(isinstance(change, Create | Rename) for change in node.disk.trace)


def test_a_file_that_may_not_be_read_is_not_called_another() -> None:
    node = joined()
    node.disk.denied = frozenset({IDENTITY})
    with node.fs.lock(0), pytest.raises(Refused):
        ChangeIdentity(node.fs).stored(HELD.leaf)
