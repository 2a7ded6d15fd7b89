"""`renewOnce` (specification, "Renewal"): its order on a disk in memory, and every way it can leave the pair alone."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.change_identity import ChangeIdentity, IdentityChanged
from bcd.domain.lifecycle.renew import ROOM_BYTES, NewPair, NextKey, NotRenewed, Renew, RenewOutcome
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import Failure, MustJoinAgain, TryLater
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import Loaded, LoadedAsIs, PromoteNext, RemoveNext
from bcd.domain.model.names import NodeId, Role, SiteId, TrustDomain
from bcd.ports.gateway import Ended, Pair, RenewAnswer, Renewed, RenewQuestion, Retired, Revoked
from bcd.protocol.files import identity_json
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import certificates, csr, ecdsa, statements
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.disk_changes import Mark
from tests.fakes.gateway import MemoryConnection, MemoryGateway, renewed
from tests.fakes.joining import Recorded
from tests.fakes.memory_disk import MemoryDisk
from tests.fakes.memory_node import PATH, MemoryNode, identity, record
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys

HELD = replace(identity(), unknown={"laterField": "kept"})
OTHER = identity(serial=4712)
ASKED = pki.NOW + timedelta(hours=15)
PAIR = Pair(HELD.leaf, HELD.chain, FileKey(pki.NODE_KEY))
NO = Ended("RESOURCE_EXHAUSTED", pushback_s=7.0)


@dataclass
class Case:
    """A node with an identity, and a gateway that marks on the disk when a Renew leaves."""

    node: MemoryNode = field(
        default_factory=lambda: MemoryNode().plant(identity_json=identity_json.encode(HELD), node_key=record())
    )
    gateway: MemoryGateway = field(default_factory=lambda: MemoryGateway(lambda: ASKED))

    def __post_init__(self) -> None:
        self.before = self.node.files
        self.connection = MemoryConnection(self.gateway, PAIR)
        self.answers(self.gateway.certify)

    def answers(self, answer: Callable[[MemoryConnection, RenewQuestion], RenewAnswer]) -> "Case":
        def asked(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
            self.node.disk.mark("renew")
            return answer(connection, question)

        self.gateway.on_renew = asked
        return self

    def answers_with(self, answer: RenewAnswer) -> "Case":
        return self.answers(lambda connection, question: answer)

    def renew(self, next_key: NextKey | None = None) -> RenewOutcome:
        fs = self.node.fs
        return Renew(fs, FileKeys(), MemoryAttestor(), ChangeIdentity(fs), pki.PINS)(
            PAIR, self.connection, ASKED, next_key
        )

    def refuses(self) -> NotRenewed:
        """Renews, which does not work, and finds the old pair untouched, now and after a restart."""
        outcome = self.renew()
        assert isinstance(outcome, NotRenewed)
        self.pair_is_untouched()
        return outcome

    def pair_is_untouched(self) -> None:
        assert {name: data for name, data in self.node.files.items() if name != NEXT_KEY} == self.before
        with self.node.fs.lock(0):
            assert isinstance(self.node.load(), RemoveNext | LoadedAsIs)
        assert self.node.files == self.before

    @property
    def question(self) -> RenewQuestion:
        (only,) = self.connection.asked
        return only


def test_a_renewal_replaces_key_and_certificate() -> None:
    case = Case()
    outcome = case.renew()
    assert isinstance(outcome, NewPair)
    assert outcome.pair.key.spki == outcome.pair.leaf.spki == csr.key_of(case.question.csr)
    assert outcome.server_time == ASKED
    assert case.node.files == {IDENTITY: identity_json.encode(outcome.identity), KEY: outcome.pair.key.record}
    with case.node.fs.lock(0):
        loaded = case.node.load()
    assert isinstance(loaded, LoadedAsIs)
    assert loaded.identity.leaf == outcome.pair.leaf
    assert loaded.identity.chain == outcome.pair.chain


def test_the_new_state_keeps_the_trust_the_server_time_and_what_a_later_bcd_wrote() -> None:
    """Specification, step 5. The answer brings another bundle, and it is not taken here."""
    case = Case().answers(lambda _, question: renewed(question.csr, bundle=pki.trust_bundle(version=99)))
    case.renew()
    stored = identity_json.decode(case.node.files[IDENTITY])
    assert stored.leaf != HELD.leaf
    assert (stored.trust, stored.server_time, stored.unknown) == (HELD.trust, HELD.server_time, HELD.unknown)


def test_the_question_is_a_new_request_the_chain_the_time_and_a_proof_by_the_current_key() -> None:
    case = Case()
    case.renew()
    question = case.question
    assert (question.chain, question.client_time) == (HELD.chain, ASKED)
    proof = pb.SignedStatement.FromString(question.renew_pop)
    assert proof.purpose == "renew-pop"
    assert proof.signer_spki == HELD.leaf.spki
    verified = statements.verify(statements.Purpose.RENEW_POP, proof, pki.Pins((pki.Pin.of(HELD.leaf.spki),)))
    said = pb.RenewPop.FromString(verified.payload)
    assert said.csr_sha256 == ecdsa.sha256(question.csr).digest()
    assert said.leaf_sha256 == HELD.leaf.sha256


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


@pytest.mark.parametrize("there", [None, b"", b"{}", identity_json.encode(OTHER)])
def test_with_another_identity_on_disk_nothing_is_written_and_nothing_sent(there: bytes | None) -> None:
    case = Case()
    with case.node.fs.lock(0):
        case.node.fs.remove(IDENTITY)
    if there is not None:
        case.node.put(IDENTITY, there)
    before = case.node.disk.image
    with pytest.raises(IdentityChanged):
        case.renew()
    assert case.node.disk.image == before
    assert case.connection.asked == []


def test_an_identity_that_came_while_the_server_was_asked_is_not_overwritten() -> None:
    case = Case()

    def reset_and_certify(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        case.node.put(IDENTITY, identity_json.encode(OTHER))
        case.node.put(KEY, record())
        return case.gateway.certify(connection, question)

    with pytest.raises(IdentityChanged):
        case.answers(reset_and_certify).renew()
    assert case.node.files[IDENTITY] == identity_json.encode(OTHER)
    assert case.node.files[KEY] == record()


def test_the_lock_is_held_from_the_first_look_to_the_last_write() -> None:
    case = Case()

    def look_at_the_lock(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        other = LocalFs(PATH, case.node.clock, None, case.node.disk)
        with pytest.raises(TryLater), other.lock(0):
            pass
        return case.gateway.certify(connection, question)

    assert isinstance(case.answers(look_at_the_lock).renew(), NewPair)


OTHER_PARTS = {
    "another key": ({"key": pki.OTHER_KEY.public_key()}, "renewal: the certificate does not certify the new key"),
    "another node": (
        {"spiffe_id": replace(pki.SPIFFE_ID, node=NodeId("n-8"))},
        "renewal: the certificate is for hall-2/n-8 (node), not hall-2/n-7 (node)",
    ),
    "another site": (
        {"spiffe_id": replace(pki.SPIFFE_ID, site=SiteId("hall-3"))},
        "renewal: the certificate is for hall-3/n-7 (node), not hall-2/n-7 (node)",
    ),
    "another trust domain": (
        {"spiffe_id": replace(pki.SPIFFE_ID, trust_domain=TrustDomain("elsewhere.org"))},
        "renewal: the certificate is for hall-2/n-7 (node) of elsewhere.org, not hall-2/n-7 (node) of example.org",
    ),
    "another role": (
        {"role": Role.SITE},
        "renewal: the certificate is for hall-2/n-7 (site), not hall-2/n-7 (node)",
    ),
    "another signing key": ({"by": pki.OTHER_KEY}, "renewal: the answer is signed by sha256:"),
    "another request": ({"answers": pki.CSR}, "renewal: the answer does not verify (check 6: "),
    "a join response": (
        {"purpose": statements.Purpose.JOIN_RESPONSE},
        "renewal: the answer does not verify (check 4: ",
    ),
    "a leaf that ends no later": (
        {"not_after": pki.NOT_AFTER},
        "renewal: the answer does not verify (check 10: ",
    ),
    "a bundle by another key": (
        {"bundle": pki.trust_bundle(by=pki.OTHER_KEY)},
        "renewal: the answer does not verify (check 12: ",
    ),
    "not in date": (
        {"not_before": pki.NOW + timedelta(seconds=1)},
        "renewal: the answer does not verify (check 7: ",
    ),
}


@pytest.mark.parametrize(("departures", "why"), OTHER_PARTS.values(), ids=OTHER_PARTS)
def test_an_answer_that_does_not_verify_leaves_the_pair_and_the_next_asks_with_another_key(
    departures: dict[str, object], why: str
) -> None:
    case = Case().answers(lambda _, question: renewed(question.csr, **departures))  # type: ignore[arg-type]
    outcome = case.refuses()
    assert outcome.ended.why.startswith(why)
    assert outcome.next_key is None
    assert (outcome.ended.refused, outcome.ended.never, outcome.ended.pushback_s) == (False, False, None)


@pytest.mark.parametrize("signed", [b"", b"\xff", b"\x0a\x00" * 3])
def test_an_answer_that_is_no_statement_leaves_the_pair(signed: bytes) -> None:
    assert Case().answers_with(Renewed(signed, pki.NOW)).refuses().next_key is None


def test_a_refusal_keeps_the_key_and_the_request_for_the_next_attempt() -> None:
    """Protocol: the same leaf with the same request gets the same answer again, outside the quota."""
    case = Case().answers_with(NO)
    first = case.renew()
    assert isinstance(first, NotRenewed)
    assert first.ended == NO
    second = case.renew(first.next_key)
    assert isinstance(second, NotRenewed)
    assert case.connection.asked[0].csr == case.connection.asked[1].csr
    third = case.answers(case.gateway.certify).renew(second.next_key)
    assert isinstance(third, NewPair)
    assert third.pair.leaf.spki == csr.key_of(case.connection.asked[0].csr)
    assert FileKeys().open(case.node.files[KEY]).spki == third.pair.leaf.spki  # type: ignore[union-attr]


def test_b01_after_a_refused_renewal_a_restart_loads_the_old_pair_and_removes_the_next_key() -> None:
    """Field report B01."""
    case = Case().answers_with(Ended("UNAUTHENTICATED", refused=True))
    assert isinstance(case.renew(), NotRenewed)
    assert NEXT_KEY in case.node.files
    with case.node.fs.lock(0):
        assert isinstance(case.node.load(), RemoveNext)
    assert case.node.files == case.before
    assert isinstance(case.answers(case.gateway.certify).renew(), NewPair)


@pytest.mark.parametrize("answer", [Revoked("operator: stolen"), Retired()])
def test_a_verdict_is_handed_on_and_the_pair_stays(answer: Revoked | Retired) -> None:
    case = Case().answers_with(answer)
    assert case.renew() == answer
    case.pair_is_untouched()


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


# --- A key in a file moves into the TPM


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


def test_the_clients_time_is_the_estimated_time_it_is_given() -> None:
    def sent(at: datetime) -> datetime:
        case = Case()
        Renew(case.node.fs, FileKeys(), MemoryAttestor(), ChangeIdentity(case.node.fs), pki.PINS)(
            PAIR, case.connection, at, None
        )
        return case.question.client_time

    assert sent(pki.NOW - timedelta(days=9000)) == pki.NOW - timedelta(days=9000)


# --- A leaf that names an attestation key


@dataclass
class Certified:
    """A node whose leaf names the attestation key of its TPM."""

    def __post_init__(self) -> None:
        self.held, self.attestor = MemoryTpmKeys(), MemoryAttestor()
        keys = HostKeys(self.held, Recorded())
        key = keys.create()
        self.names = [certificates.permanent_identifier(self.attestor.ak_name())]
        held = identity(key=ecdsa.public_key(key.spki), names=self.names)
        self.node = MemoryNode(keys=keys).plant(identity_json=identity_json.encode(held), node_key=key.record)
        self.pair = Pair(held.leaf, held.chain, key)
        self.before = self.node.files
        self.gateway = MemoryGateway(lambda: ASKED)
        self.gateway.on_renew = self.certify
        self.asked: list[RenewQuestion] = []
        self.answers: list[RenewAnswer] = []
        self.attestor.calls.clear()

    def certify(self, connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else renewed(question.csr, server_time=ASKED, names=self.names)

    def renew(self, next_key: NextKey | None = None) -> RenewOutcome:
        fs = self.node.fs
        renew = Renew(fs, self.node.keys, self.attestor, ChangeIdentity(fs), pki.PINS)
        return renew(self.pair, MemoryConnection(self.gateway, self.pair), ASKED, next_key)

    def fails(self, kind: type[Failure]) -> str:
        """Nothing of the old pair is touched, and nothing is sent."""
        with pytest.raises(kind) as caught:
            self.renew()
        assert {name: self.node.files[name] for name in self.before} == self.before
        assert self.asked == []
        return caught.value.text


def test_the_next_key_of_a_certified_leaf_comes_with_the_attestation_keys_word() -> None:
    case = Certified()
    outcome = case.renew()
    assert isinstance(outcome, NewPair)
    assert outcome.pair.key.kind is KeyKind.TPM
    [question] = case.asked
    assert question.key_attestation is not None
    assert question.key_attestation.certification.attest == sha256(question.csr).digest()
    assert case.attestor.calls == ["ak_name", "certify", "release"]


def test_an_uncertified_leaf_brings_no_attestation_and_asks_no_attestation_key() -> None:
    case = Case()
    case.renew()
    assert case.question.key_attestation is None


def test_a_retry_brings_the_same_attestation() -> None:
    case = Certified()
    case.answers = [NO]
    outcome = case.renew()
    assert isinstance(outcome, NotRenewed)
    assert isinstance(case.renew(outcome.next_key), NewPair)
    assert case.asked[0].key_attestation == case.asked[1].key_attestation
    assert case.attestor.calls.count("certify") == 1


def test_without_the_tpm_nothing_is_written_or_sent() -> None:
    case = Certified()
    case.attestor.trouble = LOCKED
    assert case.fails(TryLater) == (
        f"renewal: the certificate's node key is in the TPM, which is unavailable: {LOCKED.text}"
    )
    assert NEXT_KEY not in case.node.files


def test_another_attestation_key_renews_nothing_and_says_how_to_join_again() -> None:
    case = Certified()
    case.attestor.ak += 10
    text = case.fails(MustJoinAgain)
    assert text.startswith("renewal: this TPM's attestation key is not the one the certificate names")
    assert text.endswith("join again: bcd join --reset --yes, then bcd join")
    assert NEXT_KEY not in case.node.files
    assert len(case.held.loaded) == 1


def test_an_attestation_key_that_changes_before_it_certifies_renews_nothing() -> None:
    """Nothing is sent: the control plane would decline it, and the node would not know why."""
    case = Certified()

    def change() -> None:
        case.attestor.ak += 10

    case.attestor.on_certify = change
    assert case.fails(MustJoinAgain).startswith("renewal: this TPM's attestation key is not the one")


def test_b30_b34_there_is_no_downgrade_to_a_key_in_a_file() -> None:
    case = Certified()
    case.held.signs = False
    assert case.fails(TryLater).startswith("renewal: the next node key in the TPM: the TPM /dev/tpmrm0: Sign failed")
    assert NEXT_KEY not in case.node.files


def test_without_a_certification_nothing_is_sent() -> None:
    case = Certified()
    case.attestor.no_certification = LOCKED
    assert case.fails(TryLater) == f"renewal: the TPM's attestation key certifying the next key: {LOCKED.text}"


def test_an_answer_without_the_attestation_keys_name_is_not_stored() -> None:
    case = Certified()
    case.names = []
    outcome = case.renew()
    assert isinstance(outcome, NotRenewed)
    assert "attestation key" in outcome.ended.why
    assert {name: case.node.files[name] for name in case.before} == case.before
