"""A join with fakes at every port: what it asks, what it keeps, and what it leaves when it fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import pytest
from cryptography import x509

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.attest import Attest
from bcd.domain.lifecycle.join import Join, Joined, Wanted
from bcd.domain.model.attestation import Attestation, JoinChallenge
from bcd.domain.model.backoff import JOIN_ATTEMPTS, join_delay_s
from bcd.domain.model.datadir import IDENTITY, JOIN_RECORD, JOURNAL, JOURNAL_SIDE_FILES, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import (
    Failure,
    FixConfiguration,
    Message,
    MustJoinAgain,
    NotThereYet,
    Refused,
    TryLater,
    Usage,
)
from bcd.domain.model.joining import Answer, Challenged, Failed, Issued, JoinDenied, Pending
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import LoadedAsIs
from bcd.domain.model.names import NodeId, Role, SpiffeId, TrustDomain
from bcd.domain.model.pending import PendingJoin
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.files import join_pending
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, seal, statements
from tests.fakes import joining, pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.clock import ManualClock
from tests.fakes.disk_changes import Rename
from tests.fakes.joining import ANY_NODE, TOKEN, ControlPlane, Credential, Recorded, Silent, journal_of
from tests.fakes.memory_disk import File, Folder, Link
from tests.fakes.memory_node import PATH, MemoryNode, record
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys

STAMP = "20260926T120000Z"
RECORD_PATH = "/var/lib/bcd-hostconfig"


class Answers:
    """Port `JoinTransport`: each question gets the next answer, which may look at it."""

    def __init__(self, *answers: Answer | Callable[[JoinQuestion], Answer]) -> None:
        self._answers = list(answers)
        self.sent: list[JoinQuestion] = []

    def join(self, question: JoinQuestion) -> Answer:
        self.sent.append(question)
        answer = self._answers.pop(0)
        return answer(question) if callable(answer) else answer

    def close(self) -> None:
        """There is no connection."""


def good(question: JoinQuestion, **departures: object) -> Issued:
    """The control plane's answer, with departures of the leaf's."""
    key = ecdsa.public_key(csr.key_of(question.pending.csr))
    chain = pki.chain(key=key, role=question.pending.role, **departures)
    return Issued(pki.join_response(request=question.pending.csr, certificates=chain))


def join_of(node: MemoryNode, plane: object, credential: Credential | None = None, **parts: object) -> Join:
    made = joining.join(
        node.fs,
        PATH,
        plane,  # type: ignore[arg-type]
        credential or Credential(),
        clock=node.clock,
        events=node.events,
    )
    return replace(made, **parts)  # type: ignore[arg-type]


def join(
    node: MemoryNode,
    plane: object = None,
    credential: Credential | None = None,
    wanted: Wanted = ANY_NODE,
    **parts: object,
) -> Joined:
    return join_of(node, plane or ControlPlane(), credential, **parts)(wanted)


def failure(node: MemoryNode, plane: object, credential: Credential | None = None, **more: object) -> Failure:
    with pytest.raises(Failure) as caught:
        join(node, plane, credential, **more)  # type: ignore[arg-type]
    return caught.value


def never() -> seal.Recipient:
    raise AssertionError("nothing is to be sealed")


def begun(plane: object = None) -> MemoryNode:
    """A machine whose join got no answer."""
    node = MemoryNode()
    assert failure(node, plane or Silent()).message is Message.NO_RETRY
    node.clock.waits.clear()
    return node


def pending(node: MemoryNode) -> PendingJoin:
    return join_pending.decode(node.files[PENDING])


# --- A first join


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


def test_the_question_holds_the_sealed_token_and_the_machines_claims_and_no_secret() -> None:
    plane = ControlPlane()
    join(MemoryNode(), plane)
    (asked,) = plane.sent
    assert (asked.claims.hostname, asked.daemon_version) == ("rack-3-7", "0.0.0-test")
    assert (asked.pending.attestor, asked.pending.node_id, asked.pending.role) == ("join-token", None, Role.NODE)
    assert asked.pending.sealed is not None
    assert TOKEN not in asked.pending.sealed.sealed
    assert seal.open_sealed(pki.ENCRYPTION_KEY, asked.pending.sealed.sealed, asked.pending.csr) == TOKEN
    assert "token" not in repr(asked.pending.sealed)
    assert "PRIVATE" not in repr(asked)


@pytest.mark.parametrize("node_id", [None, pki.NODE])
def test_a_node_id_makes_it_a_provisioned_join(node_id: NodeId | None) -> None:
    plane = Answers(good)
    join(MemoryNode(), plane, wanted=Wanted(Role.NODE, node_id))
    assert plane.sent[0].pending.attestor == ("join-token" if node_id is None else "provisioned")
    assert plane.sent[0].pending.node_id == node_id


@pytest.mark.parametrize("role", list(Role))
def test_the_role_that_is_asked_for_is_the_role_that_comes(role: Role) -> None:
    plane = Answers(lambda question: good(question, not_after=pki.NOT_BEFORE + pki.timedelta(hours=2)))
    assert join(MemoryNode(), plane, wanted=Wanted(role, None)).identity.role is role


def test_the_request_is_durable_before_it_is_sent() -> None:
    node = MemoryNode()
    seen: list[bool] = []
    plane = ControlPlane(on_send=lambda: seen.append(PENDING in _safe(node)))
    join(node, plane)
    assert seen == [True]
    assert PENDING not in node.files


def _safe(node: MemoryNode) -> set[str]:
    """The names that every power cut now would leave."""
    disks = list(node.disk.states_at(len(node.disk.trace)))
    return set.intersection(*(set(disk.files(PATH)) for disk in disks))


@pytest.mark.parametrize("text", [None, b"x"])
def test_without_a_token_nothing_is_begun_or_sent(text: bytes | None) -> None:
    node, plane, credential = MemoryNode(), ControlPlane(), Credential(text)
    if text is None:
        assert isinstance(failure(node, plane, credential), Usage)
        assert (node.files, plane.sent) == ({}, [])
    else:
        assert failure(node, plane, credential).message is Message.JOIN_REFUSED
        assert len(plane.sent) == 1
    assert not credential.was_spent


def test_a_data_directory_that_others_can_enter_sees_no_token_and_no_key() -> None:
    def loose() -> None:
        raise FixConfiguration(Message.DIRECTORY_LOOSE, path=PATH, mode="0755")

    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    assert failure(node, plane, credential, check_directory=loose).message is Message.DIRECTORY_LOOSE
    assert (node.files, plane.sent, credential.taken) == ({}, [], 0)


def test_a_key_to_seal_to_that_is_wrong_is_found_before_the_token_is_read() -> None:
    def wrong() -> seal.Recipient:
        raise FixConfiguration(Message.ENCRYPTION_PIN, have="a", path="b", presented="c")

    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    assert failure(node, plane, credential, recipient=wrong).message is Message.ENCRYPTION_PIN
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


# --- A join that goes on


def test_a_join_that_was_begun_goes_on_with_the_same_request_and_no_token() -> None:
    node = begun()
    request, key = pending(node).csr, pending(node).key
    plane, credential = ControlPlane(), Credential(None)
    join(node, plane, credential, recipient=never)
    assert [asked.pending.csr for asked in plane.sent] == [request]
    assert node.files.keys() == {IDENTITY, KEY}
    assert node.files[KEY] == key
    assert (credential.taken, credential.was_spent) == (0, True)


def test_a_join_that_was_not_begun_needs_the_token() -> None:
    assert failure(MemoryNode(), ControlPlane(), Credential(None)).message is Message.NO_TOKEN


@pytest.mark.parametrize("wanted", [Wanted(Role.NODE, NodeId("n-9")), Wanted(Role.SITE, None)])
def test_a_join_that_was_begun_as_something_else_is_not_taken_over(wanted: Wanted) -> None:
    node, plane, credential = begun(), ControlPlane(), Credential()
    before = node.disk.image
    assert failure(node, plane, credential, wanted=wanted).message is Message.PENDING_OTHER
    assert (plane.sent, credential.taken) == ([], 0)
    assert node.disk.image == before


@pytest.mark.parametrize("what", ["empty", "torn", "rubbish", "no key", "another version"])
def test_a_request_that_cannot_be_read_is_named_with_the_way_back_and_stays(what: str) -> None:
    node = begun()
    whole = node.files[PENDING]
    broken = {
        "empty": b"",
        "torn": whole[: len(whole) // 2],
        "rubbish": b"\xff\xfe",
        "no key": join_pending.encode(replace(pending(node), key=b"-----BEGIN PRIVATE KEY-----\n")),
        "another version": whole.replace(b'"version": 1', b'"version": 2'),
    }
    node.put(PENDING, broken[what])
    found = failure(node, ControlPlane())
    assert isinstance(found, MustJoinAgain)
    assert found.message is Message.PENDING_UNREADABLE
    assert f"{PATH}/{PENDING}" in found.text
    assert found.text.endswith("to give that join up: bcd join --reset --yes, then bcd join")
    assert node.files == {PENDING: broken[what]}


# --- What is answered


def test_a_refusal_is_final_and_its_request_is_set_aside() -> None:
    node, plane, credential = MemoryNode(), ControlPlane(scripted=[JoinDenied("r-77")]), Credential()
    found = failure(node, plane, credential)
    assert isinstance(found, Refused)
    assert "Join refused (refusal id r-77)" in found.text
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}"}
    assert not credential.was_spent
    assert len(plane.sent) == 1


def test_the_join_after_a_refusal_begins_anew_with_the_token_and_another_key() -> None:
    node = MemoryNode()
    refused, plane, credential = Answers(JoinDenied("r-1")), ControlPlane(), Credential()
    failure(node, refused)
    join(node, plane, credential)
    assert credential.taken == 1
    assert plane.sent[0].pending.csr != refused.sent[0].pending.csr
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}", IDENTITY, KEY}


def test_a_second_refusal_in_the_same_second_replaces_nothing() -> None:
    node = MemoryNode()
    for _ in range(2):
        failure(node, Answers(JoinDenied("")))
    assert node.files.keys() == {f"{PENDING}.refused-{STAMP}", f"{PENDING}.refused-{STAMP}.1"}


@pytest.mark.parametrize("failures", [0, 1, JOIN_ATTEMPTS - 1, JOIN_ATTEMPTS])
def test_b23_twenty_attempts_are_made_with_longer_and_longer_waits_between_them(failures: int) -> None:
    """Field report B23: they are not burnt in seconds."""
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy")] * failures)
    if failures < JOIN_ATTEMPTS:
        assert not join(node, plane).already
        assert len(plane.sent) == failures + 1
    else:
        found = failure(node, plane)
        assert isinstance(found, TryLater)
        assert "no answer after 20 attempts: busy" in found.text
        assert len(plane.sent) == JOIN_ATTEMPTS
        assert node.files.keys() == {PENDING}
        assert sum(node.clock.waits) > 600
    waited = min(failures, JOIN_ATTEMPTS - 1)
    assert node.clock.waits == [join_delay_s(attempt, 0.5) for attempt in range(1, waited + 1)]
    assert len(node.told("warning")) == waited


@pytest.mark.parametrize("pushback_s", [0.0, 0.25, 7.25, 86400.0])
def test_a_pushback_is_waited_out_exactly_and_counts_as_an_attempt(pushback_s: float) -> None:
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy", pushback_s=pushback_s), Failed("busy")])
    join(node, plane)
    assert node.clock.waits == [pushback_s, join_delay_s(2, 0.5)]


def test_a_server_that_asks_not_to_be_asked_again_is_not() -> None:
    node, plane = MemoryNode(), ControlPlane(scripted=[Failed("busy"), Failed("go away", never=True)])
    found = failure(node, plane)
    assert found.message is Message.NO_RETRY
    assert "go away" in found.text
    assert len(plane.sent) == 2
    assert node.files.keys() == {PENDING}


def test_an_approval_is_written_down_before_it_is_waited_for() -> None:
    node = MemoryNode()
    seen: list[str] = []
    node.clock.on_wait = lambda: seen.append(pending(node).pending_id)
    plane = Answers(Pending("a-1", 5), Pending("a-1", 7), Pending("a-2", 0), good)
    join(node, plane)
    assert seen == ["a-1", "a-1", "a-2"]
    assert [asked.pending.pending_id for asked in plane.sent] == ["", "a-1", "a-1", "a-2"]
    assert len({asked.pending.csr for asked in plane.sent}) == 1
    assert node.clock.waits == [5, 7, 1]
    assert node.files.keys() == {IDENTITY, KEY}


def test_a_join_that_waits_for_approval_goes_on_waiting_after_a_crash() -> None:
    node = begun(Answers(Pending("a-1", 5), Failed("x", never=True)))
    plane = Answers(good)
    join(node, plane, Credential(None))
    assert plane.sent[0].pending.pending_id == "a-1"


def test_while_it_waits_for_approval_failures_are_counted_from_the_last_answer_on() -> None:
    failures: Sequence[Answer] = [Failed("busy")] * (JOIN_ATTEMPTS - 1)
    node = MemoryNode()
    join(node, Answers(*failures, Pending("a-1", 5), *failures, Pending("a-1", 5), *failures, good))
    assert failure(MemoryNode(), Answers(Pending("a-1", 5), *failures, Failed("busy"))).message is Message.GAVE_UP


# --- An answer that does not verify


def altered(change: Callable[[pb.SignedStatement], object]) -> Callable[[JoinQuestion], Issued]:
    def answer(question: JoinQuestion) -> Issued:
        statement = pb.SignedStatement.FromString(good(question).signed)
        change(statement)
        return Issued(statement.SerializeToString(deterministic=True))

    return answer


def answered(**departures: object) -> Callable[[JoinQuestion], Issued]:
    def answer(question: JoinQuestion) -> Issued:
        key = ecdsa.public_key(csr.key_of(question.pending.csr))
        told: dict[str, object] = {"request": question.pending.csr, "certificates": pki.chain(key=key)}
        return Issued(pki.join_response(**(told | departures)))

    return answer


def _flip(statement: pb.SignedStatement) -> None:
    statement.signature = bytes(64)


def _rubbish(statement: pb.SignedStatement) -> None:
    signed = pki.signed(statements.Purpose.JOIN_RESPONSE, b"\xff\xff")
    statement.CopyFrom(signed)


def _rename(statement: pb.SignedStatement) -> None:
    statement.kid = "other"


ELSEWHERE = SpiffeId(TrustDomain("elsewhere.org"), pki.SITE, pki.NODE)
NO_CA = pki.ca(is_ca=False)
BAD: dict[str, tuple[int, Callable[[JoinQuestion], Issued]]] = {
    "no statement": (1, lambda question: Issued(b"\xff")),
    "kid": (3, altered(_rename)),
    "signature": (4, altered(_flip)),
    "payload": (5, altered(_rubbish)),
    "another request": (6, answered(request=pki.CSR)),
    "no chain": (7, answered(certificates=())),
    "another issuer": (7, lambda question: good(question, signer=pki.OTHER_KEY)),
    "expired": (7, lambda question: good(question, not_after=pki.NOW)),
    "no CA": (7, lambda question: good(question, issuer=NO_CA)),
    "another key": (8, answered(certificates=pki.chain())),
    "another node": (9, lambda question: good(question, spiffe_id=SpiffeId(pki.DOMAIN, pki.SITE, NodeId("n-8")))),
    "another role": (10, lambda question: good(question, leaf_subject=pki.subject(unit="bc-role:site"))),
    "another domain's bundle": (11, lambda question: good(question, spiffe_id=ELSEWHERE)),
}


@pytest.mark.parametrize("what", BAD)
def test_an_answer_that_fails_a_check_is_not_stored_and_the_request_stays(what: str) -> None:
    number, answer = BAD[what]
    node, credential = MemoryNode(), Credential()
    wanted = Wanted(Role.NODE, pki.NODE)
    plane = Answers(answer)
    found = failure(node, plane, credential, wanted=wanted)
    assert isinstance(found, TryLater)
    assert found.message is Message.BAD_ANSWER
    assert f"(check {number})" in found.text
    assert node.files.keys() == {PENDING}
    assert not credential.was_spent
    again = Answers(good)
    join(node, again, Credential(None), wanted)
    assert again.sent[0].pending.csr == plane.sent[0].pending.csr
    assert node.files.keys() == {IDENTITY, KEY}


def test_an_answer_by_another_key_than_the_pinned_names_both_pins() -> None:
    """Check 2."""
    node = MemoryNode()

    def other(question: JoinQuestion) -> Issued:
        return Issued(pki.join_response(by=pki.OTHER_KEY, request=question.pending.csr))

    found = failure(node, Answers(other))
    assert isinstance(found, FixConfiguration)
    assert found.message is Message.SIGNING_PIN
    assert str(pki.PINS) in found.text
    assert f"presented {pki.Pin.of(pki.spki(pki.OTHER_KEY))}" in found.text
    assert node.files.keys() == {PENDING}


# --- Storing


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


# --- A key in the TPM


def with_tpm() -> tuple[MemoryNode, MemoryTpmKeys]:
    held = MemoryTpmKeys()
    return MemoryNode(keys=HostKeys(held, Recorded())), held


def test_the_key_of_a_join_is_in_the_tpm_and_its_record_on_disk() -> None:
    node, _ = with_tpm()
    assert join(node, keys=node.keys, load=node.load).kind is KeyKind.TPM
    assert node.files[KEY].startswith(b"-----BEGIN BCD TPM NODE KEY-----\n")


def test_a_join_that_was_begun_goes_on_with_the_key_that_the_tpm_derives_again() -> None:
    node, held = with_tpm()
    assert failure(node, Silent(), keys=node.keys, load=node.load).message is Message.NO_RETRY
    key = pending(node).key
    held.trouble = LOCKED
    assert failure(node, ControlPlane(), keys=node.keys, load=node.load).message is Message.KEY_UNAVAILABLE
    assert pending(node).key == key
    held.trouble = None
    join(node, ControlPlane(), Credential(None), keys=node.keys, load=node.load)
    assert node.files[KEY] == key


def test_a_join_that_was_begun_before_the_tpm_was_cleared_is_given_up_by_a_person() -> None:
    node, held = with_tpm()
    failure(node, Silent(), keys=node.keys, load=node.load)
    held.clear()
    plane = ControlPlane()
    found = failure(node, plane, keys=node.keys, load=node.load)
    assert isinstance(found, MustJoinAgain)
    assert "the TPM derives another key than the one it asks for (was the TPM cleared?)" in found.text
    assert plane.sent == []
    assert PENDING in node.files


@pytest.mark.parametrize("after_s", [1.0, 29.9, 31.0])
def test_b37_a_tpm_that_shows_up_late_in_a_boot_is_waited_for_within_bounds(after_s: float) -> None:
    node, held = with_tpm()
    join(node, keys=node.keys, load=node.load)
    before = node.disk.image
    held.trouble = ABSENT
    there_s = node.clock.boottime_s() + after_s

    def look() -> None:
        held.trouble = None if node.clock.boottime_s() >= there_s else ABSENT

    node.clock.on_wait = look
    again = join_of(node, ControlPlane(), keys=node.keys, load=node.load, tpm_wait_s=30.0)
    if after_s < 30:
        assert again(ANY_NODE).already
    else:
        with pytest.raises(NotThereYet):
            again(ANY_NODE)
    assert [text for _, text, _ in node.events.lines].count("waiting for the TPM") == 1, "once, and not at each look"
    assert node.disk.image == before
    assert [text for _, text, _ in node.events.lines].count("waiting for the TPM") == 1


# --- By TPM

BY_TPM = Wanted(Role.NODE, None, "tpm")


@dataclass
class ByTpm:
    """A machine, its TPM, and a control plane that gives these answers before it issues."""

    answers: Sequence[Answer] = ()
    up_s: float = 1000.0

    def __post_init__(self) -> None:
        self.held, self.attestor = MemoryTpmKeys(), MemoryAttestor()
        events = Recorded()
        self.node = MemoryNode(keys=HostKeys(self.held, events), events=events, clock=ManualClock(boottime_s=self.up_s))
        self.credential = Credential(None)
        self.plane = ControlPlane(scripted=self.answers)

    def challenge(self, id_: str = "c-1", lasts_s: float = 600.0, **departures: object) -> Challenged:
        asked = JoinChallenge(id_, "tpm", pki.NOW, self.attestor.challenge())
        return Challenged(replace(asked, **departures), lasts_s)  # type: ignore[arg-type]

    def gets(self, *answers: Answer) -> "ByTpm":
        self.plane = ControlPlane(scripted=answers)
        return self

    def join(self, wanted: Wanted = BY_TPM, **more: object) -> Joined:
        attest = Attest(self.attestor, self.node.clock, self.node.events)
        parts = {"keys": self.node.keys, "load": self.node.load, "attest": attest, "recipient": never}
        return join(self.node, self.plane, self.credential, wanted, **parts, **more)

    def fails(self, wanted: Wanted = BY_TPM, **more: object) -> Failure:
        with pytest.raises(Failure) as caught:
            self.join(wanted, **more)
        return caught.value


def test_a_join_by_tpm_reads_no_credential_and_seals_nothing() -> None:
    case = ByTpm()
    assert case.gets(case.challenge()).join().kind is KeyKind.TPM
    assert case.credential.taken == 0
    first, second = case.plane.sent
    assert (first.pending.attestor, first.pending.sealed, first.pending.node_id) == ("tpm", None, None)
    assert first.evidence is not None
    assert first.evidence.node_key_public
    assert first.answer is None
    assert second == replace(first, answer=second.answer)
    assert second.answer is not None
    assert second.answer.id == "c-1"
    assert second.answer.certification == Attestation(sha256(first.pending.csr).digest(), bytes(64))
    assert case.attestor.calls == ["ak_name", "evidence", "answer", "release"]


def test_a_machine_whose_tpm_takes_no_key_proves_the_tpm_alone() -> None:
    case = ByTpm()
    case.held.trouble = LOCKED
    assert case.gets(case.challenge()).join().kind is KeyKind.FILE
    asked = case.plane.sent[1]
    assert asked.evidence is not None
    assert asked.evidence.node_key_public == b""
    assert asked.answer is not None
    assert asked.answer.certification is None


def test_a_tpm_that_shows_nothing_leaves_no_join_behind() -> None:
    case = ByTpm()
    case.attestor.trouble = LOCKED
    assert case.fails() is LOCKED
    assert case.node.files == {}
    assert case.plane.sent == []


def test_b37_a_join_by_tpm_waits_for_a_tpm_that_shows_up_late_in_a_boot_and_makes_its_key_there() -> None:
    case = ByTpm(up_s=20.0)
    case.held.trouble = case.attestor.trouble = ABSENT
    there_s = case.node.clock.boottime_s() + 3.0

    def look() -> None:
        if case.node.clock.boottime_s() >= there_s:
            case.held.trouble = case.attestor.trouble = None

    case.node.clock.on_wait = look
    assert case.gets(case.challenge()).join(tpm_wait_s=30.0).kind is KeyKind.TPM
    assert case.node.told("info")[0] == "waiting for the TPM"


def test_a_join_by_tpm_on_a_machine_without_one_makes_no_key_at_all() -> None:
    case = ByTpm()
    case.held.trouble = case.attestor.trouble = ABSENT
    assert case.fails(tpm_wait_s=30.0) is ABSENT
    assert case.node.files == {}
    assert case.node.told("info") == []
    assert case.node.clock.waits == []


def test_an_answer_that_was_lost_is_sent_again_and_made_once() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Failed("lost"), Failed("lost")).join()
    assert [one.answer is not None for one in case.plane.sent] == [False, True, True, True]
    assert len({id(one.answer) for one in case.plane.sent[1:]}) == 1
    assert case.attestor.calls.count("answer") == 1


def test_after_an_approval_there_is_a_fresh_round() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Pending("p-1", 1.0), case.challenge("c-2")).join()
    assert [one.answer.id if one.answer else "" for one in case.plane.sent] == ["", "c-1", "", "c-2"]
    assert case.plane.sent[-1].pending.pending_id == "p-1"
    assert case.attestor.calls == ["ak_name", "evidence", "answer", "release", "release", "answer", "release"]


def test_while_a_person_is_asked_the_tpm_is_given_back() -> None:
    case = ByTpm()
    case.gets(Pending("p-1", 1.0), Pending("p-1", 1.0), case.challenge()).join()
    assert case.attestor.calls == ["ak_name", "evidence", "release", "release", "answer", "release"]


def test_a_join_by_tpm_that_was_cut_off_goes_on_with_the_same_request_and_fresh_evidence() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Failed("lost", never=True)).fails()
    before = pending(case.node)
    case.gets(case.challenge("c-2")).join(ANY_NODE)
    assert [one.pending.csr for one in case.plane.sent] == [before.csr] * 2
    assert [one.answer.id if one.answer else "" for one in case.plane.sent] == ["", "c-2"]
    assert PENDING not in case.node.files


@pytest.mark.parametrize(("begun_as", "asked_for"), [("tpm", "join-token"), ("join-token", "tpm")])
def test_a_join_that_was_begun_by_one_attestor_does_not_go_on_by_another(begun_as: str, asked_for: str) -> None:
    node = MemoryNode()
    failure(node, Silent(), wanted=Wanted(Role.NODE, None, begun_as))
    found = failure(node, ControlPlane(), wanted=Wanted(Role.NODE, None, asked_for))
    assert found.message is Message.PENDING_OTHER
    assert PENDING in node.files


@pytest.mark.parametrize(
    ("challenged", "why"),
    [
        (lambda case: case.challenge(attestor="x509pop"), "is for the attestor 'x509pop'"),
        (
            lambda case: case.challenge(tpm=case.attestor.challenge(ek_name=bytes(34))),
            "is for an endorsement key that this TPM did not offer",
        ),
        (
            lambda case: case.challenge(tpm=case.attestor.challenge(pcr_bank=4)),
            "is for PCRs that this TPM does not have",
        ),
        (lambda case: case.challenge(tpm=case.attestor.challenge(nonce=bytes(31))), "asks for nothing"),
        (lambda case: case.challenge(tpm=case.attestor.challenge(pcr_selection=bytes(3))), "asks for nothing"),
        (lambda case: case.challenge(lasts_s=0.0), "had ended when it came"),
    ],
)
def test_a_challenge_that_is_not_for_this_tpm_is_not_answered(
    challenged: Callable[[ByTpm], Challenged], why: str
) -> None:
    case = ByTpm()
    found = case.gets(challenged(case)).fails()
    assert (type(found), found.message) == (TryLater, Message.CHALLENGE)
    assert why in found.text
    assert "answer" not in case.attestor.calls
    assert pending(case.node).attestor == "tpm"


def test_at_most_three_challenges_are_followed() -> None:
    case = ByTpm()
    found = case.gets(*(case.challenge(f"c-{number}") for number in range(1, 6))).fails()
    assert "is number 4, and 3 are followed" in found.text
    assert case.attestor.calls.count("answer") == 3


@pytest.mark.parametrize(("took_s", "sent"), [(9.9, 2), (10.0, 1)])
def test_an_answer_is_not_sent_once_the_challenge_has_ended(took_s: float, sent: int) -> None:
    """By the time that passed here, however the two clocks stand."""
    case = ByTpm()
    case.attestor.on_answer = lambda: case.node.clock.forward(took_s)
    case.gets(case.challenge(lasts_s=10.0))
    if sent == 2:
        case.join()
    else:
        assert "ended, after 10 s, before the TPM had answered it" in case.fails().text
    assert len(case.plane.sent) == sent


def test_a_challenge_in_a_join_by_token_is_not_answered() -> None:
    node, attestor = MemoryNode(), MemoryAttestor()
    asked = Challenged(JoinChallenge("c", "tpm", pki.NOW, attestor.challenge()), 600.0)
    found = failure(node, ControlPlane(scripted=[asked]))
    assert "is for a join by TPM" in found.text
    assert attestor.calls == []


def test_a_refusal_names_what_the_allow_list_needs() -> None:
    found = ByTpm().gets(JoinDenied("r-1")).fails()
    assert found.message is Message.TPM_JOIN_REFUSED
    assert "bcd tpm identify" in found.text
