"""What lies between the rounds of a join by TPM: people who decide, answers that are lost, and what is left behind."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bcd.adapters.tpm.client import Key
from bcd.controlplane.app.join_by_tpm import MAX_WAITING
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.approvals import PENDING_FOR
from bcd.controlplane.domain.challenges import LIFETIME, MAX_ROWS, MAX_ROWS_PER_SOURCE, REPEATED_UNTIL
from bcd.controlplane.domain.eks import EkRoot
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.gateway import Dead, Welcomed
from bcd.controlplane.domain.joining import (
    Challenged,
    Granted,
    JoinAnswer,
    JoinRequest,
    Refused,
    TooManyChallenges,
    Waiting,
)
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.store import Records, StoreUnavailable
from bcd.domain.model.attestation import ChallengeAnswer, OfferedKey, TpmEvidence
from bcd.domain.model.claims import Claims
from bcd.domain.model.pins import Pin
from tests.fakes import manufacturer, swtpm
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.attested import METAL, Attested
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine
from tests.fakes.controlplane.memory_store import MemoryEkRoots, MemoryStore
from tests.fakes.forged import Forger
from tests.fakes.tpm_machine import RSA_EK, TpmMachine

T = TypeVar("T")
MAKER = manufacturer.root()


@pytest.fixture(scope="module")
def tpm() -> Iterator[TpmMachine]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as running:
        client = running.client()
        yield TpmMachine(client)
        client.close()


@pytest.fixture(scope="module")
def forger(tpm: TpmMachine) -> Forger:
    return Forger.of(tpm)


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


@pytest.fixture
def machine(tpm: TpmMachine, plane: MemoryControlPlane) -> Attested:
    machine = Attested(tpm)
    machine.allow(plane)
    return machine


class Genuine(Attested):
    """A machine whose TPM a manufacturer vouches for, by software keys in the TPM's place."""

    def __init__(self, forger: Forger) -> None:
        super().__init__(forger.tpm)
        self.forger = forger
        shown = forger.evidence()
        spki = forger.ek.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        area = shown.endorsement_keys[0].public_area
        self.evidence: TpmEvidence = replace(shown, endorsement_keys=(OfferedKey(area, MAKER.ek(spki)),))
        self.fingerprint = str(Pin.of(spki))

    def ek(self, key: Key = RSA_EK) -> str:
        return self.fingerprint

    def answer(self, challenge: object) -> ChallengeAnswer:
        return self.forger.answer(self.forger.evidence(), challenge, self.csr)  # type: ignore[arg-type]


@pytest.fixture
def genuine(forger: Forger, plane: MemoryControlPlane) -> Genuine:
    root = EkRoot(f"sha256:{'0' * 64}", MAKER.der, plane.clock.now())
    plane.store.change(lambda r: r.ek_roots.put(root)).result()
    return Genuine(forger)


def waiting(answer: JoinAnswer) -> Waiting:
    assert isinstance(answer, Waiting), answer
    return answer


# A person decides


def test_a_genuine_tpm_nobody_spoke_of_waits_until_somebody_says_where_it_belongs(
    plane: MemoryControlPlane, genuine: Genuine
) -> None:
    first = waiting(genuine.ask(plane))
    assert waiting(genuine.ask(plane)).id == first.id
    (question,) = plane.approvals()
    assert (question.id, question.ek, question.key_pin, question.token_id) == (first.id, genuine.ek(), "", "")
    plane.approve(first.id, site="lab")
    assert [(row.state, row.site) for row in plane.approvals()] == [("approved", "lab")]
    assert plane.audit()[-1][1]["ek"] == genuine.ek()
    leaf = genuine.joined(plane).leaf
    assert (leaf.spiffe_id.site, leaf.ak_name is not None) == ("lab", True)
    assert [row.event.kind.value for row in plane.store.read(lambda r: r.audit.latest(4))] == [
        "join.pending", "ek.allowed", "approval.given", "node.joined",
    ]  # fmt: skip


def test_approving_a_tpm_needs_a_site_and_approving_a_token_takes_none(
    plane: MemoryControlPlane, genuine: Genuine
) -> None:
    question = waiting(genuine.ask(plane)).id
    with pytest.raises(Usage) as failure:
        plane.approve(question)
    assert failure.value.message is Message.APPROVAL_WANTS_SITE
    token = plane.token(require_approval=True)
    other = plane.join(Machine().request(plane.recipient, token))
    with pytest.raises(Usage, match="the token says the site"):
        plane.approve(waiting(other).id, site="lab")
    assert [row.state for row in plane.approvals()] == ["pending", "pending"]


def test_a_denied_tpm_stays_refused_and_one_that_is_allowed_after_all_joins(
    plane: MemoryControlPlane, genuine: Genuine
) -> None:
    plane.deny(waiting(genuine.ask(plane)).id)
    assert genuine.refused(plane) == "approval-denied"
    genuine.allow(plane)
    genuine.joined(plane)


def test_a_question_nobody_answered_is_put_again(plane: MemoryControlPlane, genuine: Genuine) -> None:
    first = waiting(genuine.ask(plane)).id
    plane.clock.at += PENDING_FOR
    assert plane.approvals()[0].state == "lapsed"
    assert waiting(genuine.ask(plane)).id == first
    assert [row.state for row in plane.approvals()] == ["pending"]


def test_an_approved_tpm_that_is_taken_off_the_list_asks_again(plane: MemoryControlPlane, genuine: Genuine) -> None:
    first = waiting(genuine.ask(plane)).id
    plane.approve(first, site="lab")
    plane.store.change(lambda r: r.eks.remove(genuine.ek())).result()
    assert waiting(genuine.ask(plane)).id == first
    assert [row.state for row in plane.approvals()] == ["pending"]


def test_a_ca_that_is_open_lets_its_tpms_in_each_as_a_node_of_its_own(
    plane: MemoryControlPlane, genuine: Genuine
) -> None:
    row = EkRoot(f"sha256:{'0' * 64}", MAKER.der, plane.clock.now(), rows.node().site, genuine.role)
    plane.store.change(lambda r: r.ek_roots.put(row)).result()
    node = genuine.joined(plane).leaf.spiffe_id.node
    assert plane.audit()[-1][1]["ekRoot"] == row.fingerprint
    assert plane.audit()[-1][1]["ekUntil"] == "2030-01-01T00:00:00Z"
    # From now on it is known: the CA need not be open any more.
    plane.store.change(lambda r: r.ek_roots.put(replace(row, site=None, role=None))).result()
    genuine.csr = genuine.tpm.csr()
    assert genuine.joined(plane).leaf.spiffe_id.node == node
    (only,) = plane.nodes()
    assert (only.id, only.ek) == (node, genuine.ek())


def test_no_more_tpms_wait_than_anybody_looks_at(plane: MemoryControlPlane, genuine: Genuine) -> None:
    for number in range(MAX_WAITING):
        row = rows.approval(f"a-{number:010}", credential=f"ek:{number}", token_id="", site="", asked=plane.clock.now())
        plane.store.change(lambda r, row=row: r.approvals.put(row)).result()  # type: ignore[misc]
    assert genuine.refused(plane) == "approvals-too-many"
    # Those that nobody answered for a week make room.
    plane.clock.at += PENDING_FOR
    waiting(genuine.ask(plane))


def test_machines_that_wait_with_a_token_take_no_place_of_a_tpm(plane: MemoryControlPlane, genuine: Genuine) -> None:
    for number in range(MAX_WAITING):
        row = rows.approval(f"a-{number:010}", asked=plane.clock.now())
        plane.store.change(lambda r, row=row: r.approvals.put(row)).result()  # type: ignore[misc]
    waiting(genuine.ask(plane))


class WithoutCasToRead(MemoryStore):
    """Who reads finds no CA; within a change they are there."""

    def read(self, work: Callable[[Records], T]) -> T:
        bare = self.snapshot()
        bare.ek_roots = MemoryEkRoots()
        return work(bare)


def test_a_strangers_certificates_keep_nobody_waiting(forger: Forger) -> None:
    """They are looked at before the one transaction that every other node waits for."""
    store = WithoutCasToRead()
    plane = MemoryControlPlane(store=store)
    root = EkRoot(f"sha256:{'0' * 64}", MAKER.der, plane.clock.now())
    plane.store.change(lambda r: r.ek_roots.put(root)).result()
    answer = Genuine(forger).ask(plane)
    assert isinstance(answer, Refused)
    assert [row.reason.value for row in store.snapshot().refusals.latest(1)] == ["ek-ca-unknown"]


def test_a_forged_key_waits_for_nobody(plane: MemoryControlPlane, genuine: Genuine) -> None:
    """Checks 3 and 4 come first: no person is asked about what no TPM says."""
    ak = genuine.evidence.ak_public
    changed = ak[:4] + (int.from_bytes(ak[4:8]) & ~(1 << 16)).to_bytes(4) + ak[8:]
    assert genuine.refused(plane, evidence=replace(genuine.evidence, ak_public=changed)) == "ak-unfit"
    assert not plane.approvals()


# Answers can be lost


def test_a_challenge_is_repeated_while_there_is_time_to_answer_it(plane: MemoryControlPlane, machine: Attested) -> None:
    first = machine.challenged(plane)
    plane.clock.at += LIFETIME - REPEATED_UNTIL - timedelta(seconds=1)
    assert machine.challenged(plane) == first
    plane.clock.pass_(seconds=1)
    second = machine.challenged(plane)
    assert second.id != first.id
    assert second.tpm.nonce != first.tpm.nonce
    assert second.not_after - plane.clock.now() == LIFETIME


def test_another_node_key_is_another_request_with_another_challenge(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    first = machine.challenged(plane)
    assert Attested(machine.tpm.again()).challenged(plane).id != first.id


def test_another_attestation_key_is_challenged_for_itself(
    plane: MemoryControlPlane, machine: Attested, forger: Forger
) -> None:
    first = machine.challenged(plane)
    ak = forger.evidence().ak_public
    assert machine.challenged(plane, evidence=replace(machine.evidence, ak_public=ak)).id != first.id


def test_a_key_that_a_token_got_a_certificate_for_meanwhile_gets_no_second_one(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    answer = machine.answer(machine.challenged(plane))
    by_token = Machine(csr=machine.csr)
    assert isinstance(plane.join(by_token.request(plane.recipient, plane.token())), Granted)
    assert machine.refused(plane, answer) == "key-certified-before"


def test_an_answered_challenge_repeats_its_answer_for_ten_minutes(plane: MemoryControlPlane, machine: Attested) -> None:
    answer = machine.answer(machine.challenged(plane))
    plane.clock.pass_(minutes=9)
    first = machine.ask(plane, answer)
    assert isinstance(first, Granted)
    plane.clock.pass_(minutes=9, seconds=59)
    # Whoever asks meanwhile makes room, and not by this one.
    Attested(machine.tpm.again()).challenged(plane)
    assert machine.ask(plane, answer) == first
    plane.clock.pass_(seconds=1)
    assert machine.refused(plane, answer) == "challenge-used"
    assert len(plane.nodes()) == 1


def test_two_joins_of_one_tpm_at_once_are_one_node_and_the_later_one_is_it(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    other = Attested(machine.tpm.again())
    answers = [one.answer(one.challenged(plane)) for one in (machine, other)]
    assert machine.refused(plane, answers[1]) == "challenge-mismatch"
    first, second = (one.ask(plane, answer) for one, answer in zip((machine, other), answers, strict=True))
    assert isinstance(first, Granted) and isinstance(second, Granted)
    leaves = [one.checked(plane, got).leaf for one, got in ((machine, first), (other, second))]
    assert leaves[0].spiffe_id == leaves[1].spiffe_id
    assert [node.generation for node in plane.nodes()] == [2]
    assert plane.hello(leaves[0].der) == Dead("joined again", plane.clock.now())
    assert isinstance(plane.hello(leaves[1].der), Welcomed)
    # What the first was answered is dead, and is not said again.
    assert machine.refused(plane, answers[0]) == "challenge-used"


def test_an_answered_challenge_repeats_nothing_to_another_request(plane: MemoryControlPlane, machine: Attested) -> None:
    answer = machine.answer(machine.challenged(plane))
    assert isinstance(machine.ask(plane, answer), Granted)
    assert machine.refused(plane, answer, csr=machine.tpm.csr()) == "challenge-mismatch"


def test_an_answered_challenge_repeats_no_certificate_that_is_dead(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    answer = machine.answer(machine.challenged(plane))
    granted = machine.ask(plane, answer)
    assert isinstance(granted, Granted)
    plane.revoke(machine.checked(plane, granted).leaf.spiffe_id.node)
    assert machine.refused(plane, answer) == "challenge-used"


def test_an_answered_challenge_repeats_no_other_certificate_than_its_own(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    answer = machine.answer(machine.challenged(plane))
    assert isinstance(machine.ask(plane, answer), Granted)

    def mixed_up(r: Records) -> None:
        row = r.challenges.get(answer.id)
        assert row is not None
        r.certificates.put(rows.certificate("0b" * 16))
        r.challenges.put(replace(row, serial="0b" * 16))

    plane.store.change(mixed_up).result()
    assert machine.refused(plane, answer) == "challenge-used"


def test_a_key_whose_certificate_nobody_has_used_gets_it_again_once_it_is_proved_anew(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    leaf = machine.joined(plane).leaf
    plane.clock.pass_(hours=1)
    assert machine.joined(plane).leaf == leaf
    # Another request of the same key: said of that one.
    machine.csr = machine.tpm.csr()
    assert machine.joined(plane).leaf == leaf
    assert [node.generation for node in plane.nodes()] == [1]
    plane.hello(leaf.der)
    assert machine.refused(plane) == "key-certified-before"


def test_one_request_is_challenged_three_times(plane: MemoryControlPlane, machine: Attested) -> None:
    for _ in range(3):
        answer = machine.answer(machine.challenged(plane))
        assert isinstance(machine.ask(plane, answer), Granted)
    assert machine.refused(plane) == "challenges-too-many"
    plane.clock.pass_(minutes=20)
    machine.challenged(plane)


def test_an_answer_that_fails_cannot_be_tried_again(plane: MemoryControlPlane, machine: Attested) -> None:
    challenge = machine.challenged(plane)
    right = machine.answer(challenge)
    assert machine.refused(plane, replace(right, secret=bytes(32))) == "secret-wrong"
    assert machine.refused(plane, right) == "challenge-unknown"
    machine.joined(plane)


def test_who_does_not_know_the_request_cannot_use_up_its_challenge(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    right = machine.answer(machine.challenged(plane))
    wrong = replace(right, secret=bytes(32))
    assert machine.refused(plane, wrong, csr=machine.tpm.csr()) == "challenge-mismatch"
    assert isinstance(machine.ask(plane, right), Granted)


def test_a_store_that_fails_decides_nothing(plane: MemoryControlPlane, machine: Attested) -> None:
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        machine.ask(plane)
    answer = machine.answer(machine.challenged(plane))
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        machine.ask(plane, answer)
    assert not plane.nodes() and not plane.refusals()
    assert isinstance(machine.ask(plane, answer), Granted)


# What is left behind


def test_challenges_are_bounded_for_one_source_and_forgotten(plane: MemoryControlPlane, machine: Attested) -> None:
    ends = plane.clock.now() + LIFETIME

    def fill(r: object) -> None:
        for number in range(MAX_ROWS_PER_SOURCE):
            r.challenges.put(rows.challenge(number, not_after=ends))  # type: ignore[attr-defined]

    plane.store.change(fill).result()
    assert isinstance(machine.ask(plane), TooManyChallenges)
    assert not plane.refusals()
    assert isinstance(plane.join(machine.request(), "192.0.2.2"), Challenged)
    plane.clock.at = ends + LIFETIME
    machine.challenged(plane)
    assert plane.store.read(lambda r: r.challenges.count()) == 1


def test_challenges_are_bounded_for_all_sources_together(plane: MemoryControlPlane, machine: Attested) -> None:
    ends = plane.clock.now() + LIFETIME

    def fill(r: object) -> None:
        for number in range(MAX_ROWS):
            r.challenges.put(rows.challenge(number, not_after=ends, source=f"{number}"))  # type: ignore[attr-defined]

    plane.store.change(fill).result()
    assert isinstance(machine.ask(plane), TooManyChallenges)
    plane.store.change(lambda r: r.challenges.remove(rows.challenge(7).id)).result()
    machine.challenged(plane)


def test_no_secret_stands_in_the_store_or_the_log(plane: MemoryControlPlane, machine: Attested) -> None:
    answer = machine.answer(machine.challenged(plane))
    assert isinstance(machine.ask(plane, answer), Granted)
    kept = repr(plane.store.read(lambda r: (r.challenges.of_request, r.audit.latest(10))))
    stored = plane.store.snapshot().challenges.rows
    for text in (kept, repr(plane.log.lines), repr(stored), *(str(vars(row)) for row in stored.values())):
        assert repr(answer.secret) not in text
        assert answer.secret.hex() not in text


def test_a_refusal_names_the_tpm_so_that_the_operator_can(plane: MemoryControlPlane, machine: Attested) -> None:
    right = machine.answer(machine.challenged(plane))
    machine.refused(plane, replace(right, secret=bytes(32)))
    assert plane.refusals()[0].detail == f"another secret (endorsement key {machine.ek()})"
    machine.deny(plane)
    machine.refused(plane)
    assert plane.refusals()[0].detail == machine.ek()


# With tokens


@pytest.mark.parametrize("changes", [{"wanted_node_id": "n-1"}, {"sealed": "token"}], ids=["node id", "token"])
def test_a_token_or_a_node_id_does_not_go_with_a_tpm(
    plane: MemoryControlPlane, machine: Attested, changes: dict[str, str]
) -> None:
    sealed = Machine().request(plane.recipient, plane.token()).sealed
    given = {"sealed": sealed} if "sealed" in changes else changes
    assert machine.refused(plane, **given) == "request-malformed"


def test_evidence_beside_a_token_is_passed_over(plane: MemoryControlPlane, machine: Attested) -> None:
    request = Machine().request(plane.recipient, plane.token())
    answer = ChallengeAnswer("x", b"", machine.answer(machine.challenged(plane)).quote, ())
    shown: JoinRequest = replace(request, evidence=machine.evidence, answer=answer)
    assert isinstance(plane.join(shown), Granted)
    assert [(node.node_key, node.ek) for node in plane.nodes()] == [("unattested", "")]


def test_a_token_takes_the_attested_key_from_a_node_and_leaves_it_its_tpm(
    plane: MemoryControlPlane, machine: Attested
) -> None:
    node = machine.joined(plane).leaf.spiffe_id.node
    again = Machine(claims=Claims(hostname="metal"))
    plane.join(again.request(plane.recipient, plane.token(node_id=node), wanted_node_id=node))
    (row,) = plane.nodes()
    assert (row.id, row.node_key, row.ek, row.token_id != "") == (node, "unattested", machine.ek(), True)
    # And the TPM is still that node.
    back = Attested(machine.tpm.again())
    assert back.joined(plane).leaf.spiffe_id.node == node


def test_a_machine_known_by_its_tpm_is_known_to_a_plain_token(plane: MemoryControlPlane, tpm: TpmMachine) -> None:
    machine = Attested(tpm, claims=METAL)
    machine.allow(plane)
    machine.joined(plane)
    plane.join(Machine(claims=METAL).request(plane.recipient, plane.token()))
    assert plane.refusals()[0].reason == "machine-known"
    assert isinstance(plane.admin(admin.ListNodes()), tuple)
