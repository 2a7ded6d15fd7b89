"""`renewOnce` (specification, "Renewal"): what is asked and stored, and every way it can leave the pair alone."""

from datetime import datetime, timedelta

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.keys.file import FileKeys
from bcd.domain.lifecycle.change_identity import ChangeIdentity, IdentityChanged
from bcd.domain.lifecycle.renew import NewPair, NotRenewed, Renew
from bcd.domain.model.datadir import IDENTITY, KEY, NEXT_KEY
from bcd.domain.model.failures import TryLater
from bcd.domain.model.loading import LoadedAsIs, RemoveNext
from bcd.ports.gateway import Ended, RenewAnswer, RenewQuestion, Retired, Revoked
from bcd.protocol.files import identity_json
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.gateway import MemoryConnection, renewed
from tests.fakes.memory_node import PATH, identity, record
from tests.fakes.memory_renewal import ASKED, HELD, NO, PAIR, Case


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


OTHER = identity(serial=4712)


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


def test_a_request_that_is_not_to_be_had_is_given_up_with_its_key() -> None:
    """Somebody had that key certified first (a copy of this disk, in the middle of a renewal). Asked for ever, it would
    let this certificate end."""
    case = Case().answers_with(Ended("ALREADY_EXISTS", declined=True))
    first = case.refuses()
    assert first.next_key is None
    assert isinstance(case.answers(case.gateway.certify).renew(first.next_key), NewPair)
    assert len({question.csr for question in case.connection.asked}) == 2


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


def test_the_clients_time_is_the_estimated_time_it_is_given() -> None:
    def sent(at: datetime) -> datetime:
        case = Case()
        Renew(case.node.fs, FileKeys(), MemoryAttestor(), ChangeIdentity(case.node.fs), pki.PINS)(
            PAIR, case.connection, at, None
        )
        return case.question.client_time

    assert sent(pki.NOW - timedelta(days=9000)) == pki.NOW - timedelta(days=9000)
