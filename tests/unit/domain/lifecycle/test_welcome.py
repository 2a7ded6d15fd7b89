"""What a Welcome or a new bundle changes on disk: the bundle and the server-time mark, never the chain."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bcd.domain.lifecycle.change_identity import ChangeIdentity, IdentityChanged
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model.datadir import IDENTITY, KEY
from bcd.domain.model.identity import Identity, Trust
from bcd.protocol.files import identity_json
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from tests.fakes import pki
from tests.fakes.disk_changes import Create, Rename
from tests.fakes.memory_node import MemoryNode, identity, record

HELD = identity()
LATER = pki.NOW + timedelta(hours=1)
ROOTS = (pki.COMMAND_ROOT,)


def signed(**fields: object) -> bytes:
    return pki.trust_bundle(**fields).SerializeToString(deterministic=True)  # type: ignore[arg-type]


def trust(**fields: object) -> Trust:
    """What `signed` of the same fields is once it is held."""
    statement = pb.SignedStatement.FromString(signed(**fields))
    bundle = pb.TrustBundle.FromString(statement.payload)
    return Trust(bundle.version, tuple(bundle.command_roots), statement.payload, b"as first signed")


def holding(held: Trust | None) -> MemoryNode:
    return MemoryNode().plant(identity_json=identity_json.encode(replace(HELD, trust=held)), node_key=record())


def take_in(node: MemoryNode, mark: datetime | None, bundle: bytes | None) -> Identity:
    taken = TakeIn(node.fs, ChangeIdentity(node.fs), node.events, pki.PINS)(HELD.leaf, mark, bundle)
    stored = identity_json.decode(node.files[IDENTITY])
    assert stored == taken
    # Neither the chain nor the key, whatever was told.
    assert stored.chain == HELD.chain
    assert stored.unknown == {}
    assert node.files.keys() == {IDENTITY, KEY}
    return stored


def test_a_newer_bundle_is_stored_as_it_was_signed() -> None:
    node = holding(trust(version=3))
    bundle = signed(version=4, command_roots=[])
    taken = take_in(node, None, bundle).trust
    assert taken is not None
    assert (taken.version, taken.roots, taken.signed) == (4, (), bundle)
    assert node.told("warning") == []


def test_the_first_bundle_is_stored() -> None:
    taken = take_in(holding(None), None, signed(version=0))
    assert taken.trust is not None
    assert taken.trust.version == 0


def test_an_older_bundle_is_kept_out_and_told() -> None:
    held = trust(version=5)
    node = holding(held)
    assert take_in(node, None, signed(version=4)).trust == held
    assert node.told("warning") == ["a trust bundle was not taken"]


def test_the_same_bundle_signed_again_changes_nothing() -> None:
    held = trust(version=3)
    node = holding(held)
    assert take_in(node, None, signed(version=3)).trust == held
    assert not any(isinstance(change, Create | Rename) for change in node.disk.trace)
    assert node.told("warning") == []


def test_a_bundle_held_without_its_signature_gets_it() -> None:
    bundle = signed(version=3)
    taken = take_in(holding(replace(trust(version=3), signed=None)), None, bundle).trust
    assert taken is not None
    assert taken.signed == bundle


@pytest.mark.parametrize("is_signed", [True, False])
def test_another_bundle_with_the_held_version_is_kept_out(is_signed: bool) -> None:
    held = replace(trust(version=3), **({} if is_signed else {"signed": None}))
    node = holding(held)
    assert take_in(node, None, signed(version=3, command_roots=[])).trust == held
    assert node.told("warning") == ["a trust bundle was not taken"]


@pytest.mark.parametrize(
    "bundle",
    [
        signed(version=9, trust_domain="elsewhere.org"),
        signed(version=9, by=pki.OTHER_KEY),
        signed(version=9)[:-1] + bytes((signed(version=9)[-1] ^ 1,)),
        b"\xff\xff",
    ],
    ids=["of another trust domain", "by another key", "its last byte flipped", "no statement"],
)
def test_a_bundle_that_does_not_verify_is_kept_out_and_the_mark_is_stored_all_the_same(bundle: bytes) -> None:
    held = trust(version=3)
    node = holding(held)
    taken = take_in(node, LATER, bundle)
    assert taken.trust == held
    assert taken.server_time == LATER
    assert node.told("warning") == ["a trust bundle was not taken"]


def test_the_mark_only_rises() -> None:
    node = holding(None)
    assert take_in(node, LATER, None).server_time == LATER
    assert take_in(node, pki.NOW, None).server_time == LATER
    assert take_in(node, None, None).server_time == LATER


def test_the_first_mark_is_stored_and_none_stays_none() -> None:
    node = holding(None)
    node.put(IDENTITY, identity_json.encode(replace(HELD, server_time=None)))
    assert take_in(node, None, None).server_time is None
    assert take_in(node, pki.NOW, None).server_time == pki.NOW


def test_another_identity_on_disk_gets_nothing_of_it() -> None:
    """A reset and a join while the Welcome was on its way."""
    node = holding(None)
    node.put(IDENTITY, identity_json.encode(identity(serial=4712)))
    before = node.files
    with pytest.raises(IdentityChanged):
        TakeIn(node.fs, ChangeIdentity(node.fs), node.events, pki.PINS)(HELD.leaf, LATER, signed(version=9))
    assert node.files == before
