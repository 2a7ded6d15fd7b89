"""Loading: the three files on a disk in memory, what comes of them, and what is done to them."""

from collections.abc import Callable

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.keys.file import FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.load import Load
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import Failure, FixConfiguration, Message, MustJoinAgain, NotThereYet, Refused, TryLater
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import LoadedAsIs, NotJoined, PromoteNext, RemoveNext
from bcd.protocol.files import identity_json
from bcd.protocol.pki import ecdsa
from tests.fakes import pki
from tests.fakes.joining import Recorded
from tests.fakes.memory_disk import File, Folder, Link
from tests.fakes.memory_node import PATH, MemoryNode, identity, record
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys

JOIN_AGAIN = "join again: bcd join --reset --yes, then bcd join"


def failure(node: MemoryNode) -> Failure:
    """What a load of it fails with; it changes nothing, and a look finds the same."""
    before = node.disk.image
    with pytest.raises(Failure) as caught, node.fs.lock(0):
        node.load()
    seen = node.load.look()
    assert node.load.failure(seen).text == caught.value.text  # type: ignore[arg-type]
    assert node.disk.image == before
    return caught.value


def load(node: MemoryNode) -> object:
    with node.fs.lock(0):
        return node.load()


def test_nothing_there_is_not_joined() -> None:
    assert load(MemoryNode()) == NotJoined(orphan_key=False)
    assert MemoryNode().load.look() == NotJoined(orphan_key=False)


def test_a_key_without_an_identity_is_an_orphan_and_stays() -> None:
    node = MemoryNode().plant(node_key=record())
    assert load(node) == NotJoined(orphan_key=True)
    assert node.files == {KEY: record()}


def test_an_identity_and_its_key_load_as_they_are() -> None:
    node = MemoryNode().joined()
    found = load(node)
    assert isinstance(found, LoadedAsIs)
    assert found.identity == identity_json.decode(node.files[IDENTITY])
    assert node.files.keys() == {IDENTITY, KEY}


def test_a_next_key_that_the_leaf_certifies_becomes_the_key() -> None:
    node = MemoryNode().joined().plant(node_key=record(1004), node_key_next=record())
    assert isinstance(load(node), PromoteNext)
    assert node.files == {IDENTITY: node.files[IDENTITY], KEY: record()}
    assert isinstance(load(node), LoadedAsIs)


@pytest.mark.parametrize("left", [record(1004), b"", b"rubbish", record()[:50]])
def test_b01_any_other_next_key_goes_when_the_key_is_the_leafs(left: bytes) -> None:
    """Field report B01."""
    node = MemoryNode().joined().plant(node_key_next=left)
    assert isinstance(load(node), RemoveNext)
    assert node.files.keys() == {IDENTITY, KEY}
    assert node.files[KEY] == record()


@pytest.mark.parametrize("next_key", [None, record(1005), b"rubbish"])
def test_when_neither_key_is_the_leafs_all_stays_and_the_way_back_is_said(next_key: bytes | None) -> None:
    node = MemoryNode().joined().plant(node_key=record(1004))
    if next_key is not None:
        node.plant(node_key_next=next_key)
    found = failure(node)
    assert isinstance(found, MustJoinAgain)
    assert found.text == f"the node key does not match the node certificate; {JOIN_AGAIN}"


@pytest.mark.parametrize("key", [b"", b"\0" * 241, record()[:100], b"rubbish"])
def test_b06_a_key_that_is_none_is_a_mismatch_however_long_the_certificate_still_lasts(key: bytes) -> None:
    """Field report B06."""
    assert failure(MemoryNode().joined().plant(node_key=key)).message is Message.KEY_MISMATCH


def test_a_key_that_is_missing_is_a_mismatch() -> None:
    node = MemoryNode()
    node.put(IDENTITY, identity_json.encode(identity()))
    assert failure(node).message is Message.KEY_MISMATCH


UNREADABLE = {
    "is empty": b"",
    "holds only zero bytes": bytes(500),
    "is not JSON (torn?)": identity_json.encode(identity())[:200],
    "has an empty chain": identity_json.encode(identity()).replace(b'"chain": [', b'"chain": [], "x": ['),
    "is larger than an identity can be": b" " * ((1 << 20) + 1),
}


@pytest.mark.parametrize("why", UNREADABLE)
def test_b04_an_identity_that_is_none_is_told_with_path_size_and_fault(why: str) -> None:
    """Field report B04."""
    node = MemoryNode().joined()
    node.put(IDENTITY, UNREADABLE[why])
    found = failure(node)
    assert isinstance(found, MustJoinAgain)
    assert f"{PATH}/{IDENTITY} ({len(UNREADABLE[why])} bytes) {why}" in found.text
    assert found.text.endswith(f"nothing was changed; {JOIN_AGAIN}")


@pytest.mark.parametrize("planted", [Link(), Folder()])
def test_an_identity_that_is_no_file_is_unreadable_and_not_followed(planted: Link | Folder) -> None:
    node = MemoryNode().plant(node_key=record())
    node.disk.plant(f"{PATH}/{IDENTITY}", planted)
    assert "is not a regular file" in failure(node).text


@pytest.mark.parametrize("name", [KEY, NEXT_KEY])
def test_a_key_that_is_no_file_is_named(name: str) -> None:
    node = MemoryNode().joined()
    node.disk.plant(f"{PATH}/{name}", Link())
    with pytest.raises(FixConfiguration) as caught:
        load(node)
    assert caught.value.message is Message.NOT_A_FILE
    assert f"{PATH}/{name}" in caught.value.text


@pytest.mark.parametrize("name", [IDENTITY, KEY])
def test_what_may_not_be_read_is_no_mismatch(name: str) -> None:
    node = MemoryNode().joined()
    node.disk.denied = frozenset({name})
    found = failure(node)
    assert isinstance(found, Refused)
    assert found.text == f"permission denied: {PATH}/{name}: run it as root"


def test_a_next_key_that_may_not_be_read_stands_in_nobodys_way() -> None:
    node = MemoryNode().joined().plant(node_key_next=record(1004))
    node.disk.denied = frozenset({NEXT_KEY})
    assert isinstance(load(node), LoadedAsIs)
    assert NEXT_KEY in node.files


def test_a_key_in_a_tpm_that_cannot_be_asked_is_no_mismatch() -> None:
    import base64

    tpm = b"-----BEGIN BCD TPM NODE KEY-----\n%s\n-----END BCD TPM NODE KEY-----\n" % base64.b64encode(bytes(32))
    found = failure(MemoryNode().joined().plant(node_key=tpm))
    assert isinstance(found, TryLater)
    assert found.message is Message.KEY_UNAVAILABLE


TIDY: dict[str, Callable[[MemoryNode], object]] = {
    "promotion": lambda node: node.plant(node_key=record(1004), node_key_next=record()),
    "removal": lambda node: node.plant(node_key_next=record(1004)),
}


@pytest.mark.parametrize("what", TIDY)
@pytest.mark.parametrize("how", ["read-only", "full", "writable"])
def test_b10_a_disk_that_takes_no_change_is_a_warning_and_the_identity_loads(what: str, how: str) -> None:
    """Field reports B08 and B10."""
    node = MemoryNode().joined()
    TIDY[what](node)
    before = node.files
    node.disk.read_only = how == "read-only"
    with node.fs.lock(0):
        if how == "full":
            node.disk.fail(28, 0)
        found = node.load()
    assert isinstance(found, PromoteNext | RemoveNext)
    assert (node.files == before) is (how != "writable")
    assert len(node.told("warning")) == (how != "writable")
    node.disk.read_only = False
    load(node)
    assert node.files.keys() == {IDENTITY, KEY}


@pytest.mark.parametrize("what", TIDY)
def test_b11_a_look_decides_as_a_load_and_changes_nothing(what: str) -> None:
    """Field report B11."""
    node = MemoryNode().joined()
    TIDY[what](node)
    node.disk.read_only = True
    before, trace = node.disk.image, len(node.disk.trace)
    found = node.load.look()
    assert node.disk.image == before
    assert len(node.disk.trace) == trace
    node.disk.read_only = False
    assert load(node) == found


class Renewed(LocalFs):
    """Somebody renews while the files are read, `times` times: all of it between the identity and its key."""

    def __init__(self, node: MemoryNode, times: int) -> None:
        super().__init__(PATH, node.clock, syscalls=node.disk)
        self._node = node
        self.times = times
        self.reads = 0

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        data = super().read(name, limit_bytes)
        if name == IDENTITY:
            self.reads += 1
            if self.times > 0:
                self.times -= 1
                number = 6000 + self.times
                key = pki.private_key(number)
                self._node.put(IDENTITY, identity_json.encode(identity(key=key.public_key())))
                self._node.put(KEY, record(number))
        return data


@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_look_starts_over_when_the_identity_changes_under_it(times: int) -> None:
    node = MemoryNode().joined()
    fs = Renewed(node, times)
    found = Load(fs, FileKeys(), Recorded(), PATH).look()
    assert isinstance(found, LoadedAsIs)
    assert fs.reads == times + 1


class Promoted(LocalFs):
    """A renewal ends while the files are read: between node.key and node.key.next."""

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        data = super().read(name, limit_bytes)
        if name == KEY and super().read(NEXT_KEY, limit_bytes) is not None:
            self.rename(NEXT_KEY, KEY)
        return data


def test_a_look_starts_over_when_the_key_is_promoted_under_it() -> None:
    """Else it would say that there is no key for the certificate, and send people to join again."""
    node = MemoryNode().joined(key=pki.private_key(6000).public_key())
    node.put(NEXT_KEY, record(6000))
    fs = Promoted(PATH, node.clock, syscalls=node.disk)
    assert isinstance(Load(fs, FileKeys(), Recorded(), PATH).look(), LoadedAsIs)
    assert node.files.keys() == {IDENTITY, KEY}


def test_a_look_ends_also_when_the_identity_never_stops_changing() -> None:
    fs = Renewed(MemoryNode().joined(), 10_000)
    Load(fs, FileKeys(), Recorded(), PATH).look()
    assert fs.reads < 100


def test_a_file_of_another_owner_loads_when_it_can_be_read() -> None:
    node = MemoryNode().joined()
    node.put(KEY, File(record(), owner=(1000, 1000)))
    assert isinstance(load(node), LoadedAsIs)


# --- A key in the TPM


def in_tpm() -> tuple[MemoryNode, MemoryTpmKeys]:
    """A node whose key is in the TPM, with what a renewal that was cut off before its end left."""
    held = MemoryTpmKeys()
    node = MemoryNode(keys=HostKeys(held, Recorded()))
    key, following = node.keys.create(), node.keys.create()
    stored = identity_json.encode(identity(key=ecdsa.public_key(key.spki)))
    return node.plant(identity_json=stored, node_key=key.record, node_key_next=following.record), held


def test_a_key_is_derived_at_every_load_and_the_one_too_many_goes() -> None:
    node, held = in_tpm()
    held.loaded.clear()
    held.commands.clear()
    found = load(node)
    assert isinstance(found, RemoveNext)
    assert found.kind is KeyKind.TPM
    assert held.commands == ["CreatePrimary", "CreatePrimary"]


@pytest.mark.parametrize(("trouble", "kind"), [(ABSENT, NotThereYet), (LOCKED, TryLater)])
def test_a_tpm_that_cannot_be_asked_changes_nothing_and_is_no_mismatch(trouble: Failure, kind: type[Failure]) -> None:
    node, held = in_tpm()
    held.trouble = trouble
    found = failure(node)
    assert type(found) is kind
    said = f"the node key is in the TPM, which is unavailable: {trouble.text}; nothing was changed; if that TPM is gone"
    assert found.text.startswith(said)


def test_a_cleared_tpm_is_a_mismatch_that_says_so_and_nothing_goes() -> None:
    node, held = in_tpm()
    held.clear()
    assert failure(node).message is Message.KEY_MISMATCH_TPM
