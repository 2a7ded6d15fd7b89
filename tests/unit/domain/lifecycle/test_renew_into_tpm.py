"""A renewal of a key in a file on a machine whose TPM takes the next one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.keys.file import FileKey
from bcd.adapters.keys.tpm import HostKeys, TpmKey
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.renew import NewPair, NextKey, NotRenewed, Renew, RenewOutcome
from bcd.domain.model.datadir import KEY
from bcd.domain.model.failures import Failure, TryLater
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import Loaded, LoadedAsIs
from bcd.ports.gateway import Ended, Pair, RenewAnswer, RenewQuestion
from bcd.protocol.files import identity_json
from bcd.protocol.pki import ecdsa
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.gateway import MemoryConnection, MemoryGateway
from tests.fakes.joining import Recorded
from tests.fakes.memory_disk import MemoryDisk
from tests.fakes.memory_node import PATH, MemoryNode, identity, record
from tests.fakes.memory_renewal import ASKED, HELD, NO, PAIR, Case
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys


@dataclass
class MovesIn:
    """A node with its key in a file, on a machine whose TPM takes the next one."""

    held: MemoryTpmKeys = field(default_factory=MemoryTpmKeys)

    def __post_init__(self) -> None:
        keys = HostKeys(self.held, Recorded())
        node = MemoryNode(keys=keys).plant(identity_json=identity_json.encode(HELD), node_key=record())
        self.case = Case(node)
        self.connection = self.case.connection

    def renew(self, next_key: NextKey | None = None) -> RenewOutcome:
        fs = self.case.node.fs
        return Renew(fs, self.case.node.keys, MemoryAttestor(), ChangeIdentity(fs), pki.PINS)(
            PAIR, self.connection, ASKED, next_key
        )

    def meanwhile(self, happens: Callable[[], object]) -> "MovesIn":
        def answer(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
            happens()
            return self.case.gateway.certify(connection, question)

        self.case.answers(answer)
        return self


def test_a_key_in_a_file_moves_into_the_tpm_that_still_has_the_next_one() -> None:
    moves = MovesIn()
    outcome = moves.renew()
    assert isinstance(outcome, NewPair)
    assert outcome.pair.key.kind is KeyKind.TPM
    # The next key, its request, and once more before the file is given up for it.
    assert moves.held.commands == ["CreatePrimary", "Sign", "Sign"]


def fails_with(held: MemoryTpmKeys, trouble: Failure) -> None:
    held.trouble = trouble


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (MemoryTpmKeys.clear, "the TPM derives another key from its record (was the TPM cleared?)"),
        (lambda held: fails_with(held, LOCKED), LOCKED.text),
        (lambda held: fails_with(held, ABSENT), ABSENT.text),
    ],
    ids=["cleared", "locked out", "gone"],
)
@pytest.mark.parametrize("kept", [False, True], ids=["while the server is asked", "between two attempts"])
def test_a_key_in_a_file_is_not_given_up_for_one_that_the_tpm_lost_meanwhile(
    happens: Callable[[MemoryTpmKeys], object], why: str, *, kept: bool
) -> None:
    """The file would be overwritten with a record that derives another key: an identity lost that no TPM held."""
    moves = MovesIn()
    next_key = None
    if kept:
        moves.case.answers_with(NO)
        first = moves.renew()
        assert isinstance(first, NotRenewed)
        next_key = first.next_key
        happens(moves.held)
        moves.case.answers(moves.case.gateway.certify)
    else:
        moves.meanwhile(lambda: happens(moves.held))
    outcome = moves.renew(next_key)
    assert outcome == NotRenewed(Ended(f"renewal: the next node key in the TPM: {why}"), None)
    moves.held.trouble = None
    moves.case.pair_is_untouched()
    # And the next attempt is with a key of its own.
    moves.case.answers(moves.case.gateway.certify)
    again = moves.renew()
    assert isinstance(again, NewPair)
    assert again.pair.key.kind is KeyKind.TPM


def identity_files(disk: MemoryDisk) -> dict[str, bytes]:
    """Without what a write left that was cut off: it goes with the next lock."""
    return {name: data for name, data in disk.files(PATH).items() if not name.startswith(".bcd-")}


@pytest.mark.parametrize("trouble", [LOCKED, ABSENT], ids=["locked out", "gone"])
@pytest.mark.parametrize("from_tpm", [False, True], ids=["from a file", "from the TPM"])
def test_a_power_cut_at_any_moment_leaves_a_pair_also_where_the_tpm_cannot_be_asked_at_the_next_start(
    trouble: Failure, *, from_tpm: bool
) -> None:
    """Then it is unavailable, or loads without it, and no file changes but into the one pair that the disk holds."""
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    key = keys.create() if from_tpm else FileKey(pki.NODE_KEY)
    before = identity(key=ecdsa.public_key(key.spki))
    node = MemoryNode(keys=keys).plant(identity_json=identity_json.encode(before), node_key=key.record)
    pair, gateway = Pair(before.leaf, before.chain, key), MemoryGateway(lambda: ASKED)
    renew = Renew(node.fs, keys, MemoryAttestor(), ChangeIdentity(node.fs), pki.PINS)
    outcome = renew(pair, MemoryConnection(gateway, pair), ASKED, None)
    assert isinstance(outcome, NewPair)
    found = set()
    for n in range(len(node.disk.trace) + 1):
        for state in node.disk.states_at(n):
            fs = LocalFs(PATH, node.clock, None, state)
            load, files = replace(node.load, fs=fs), identity_files(state)
            held.trouble = trouble
            with fs.lock(0):
                try:
                    load()
                except TryLater as failure:
                    assert trouble.text in failure.text
                    assert identity_files(state) == files
            held.trouble = None
            with fs.lock(0):
                loaded = load()
                assert isinstance(loaded, Loaded)
                assert isinstance(load(), LoadedAsIs)
            in_place = keys.open(identity_files(state)[KEY])
            assert isinstance(in_place, FileKey | TpmKey)
            assert in_place.spki == loaded.identity.leaf.spki
            found.add(loaded.identity.leaf)
    assert found == {before.leaf, outcome.pair.leaf}


def test_a_key_in_the_tpm_is_not_asked_once_more() -> None:
    """Its own loss would be no other than the next key's, and each signature costs a chip half a second."""
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    key = keys.create()
    leaf = identity(key=ecdsa.public_key(key.spki))
    node = MemoryNode(keys=keys).plant(identity_json=identity_json.encode(leaf), node_key=key.record)
    pair, gateway = Pair(leaf.leaf, leaf.chain, key), MemoryGateway(lambda: ASKED)
    held.commands.clear()
    renew = Renew(node.fs, keys, MemoryAttestor(), ChangeIdentity(node.fs), pki.PINS)
    assert isinstance(renew(pair, MemoryConnection(gateway, pair), ASKED, None), NewPair)
    # The next key, its request, and the proof by the current one.
    assert held.commands == ["CreatePrimary", "Sign", "Sign"]
