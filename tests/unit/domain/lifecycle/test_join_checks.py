"""An answer that does not verify is not stored."""

from collections.abc import Callable

import pytest

from bcd.domain.lifecycle.begin_join import Wanted
from bcd.domain.model.datadir import IDENTITY, KEY, PENDING
from bcd.domain.model.failures import FixConfiguration, Message, TryLater
from bcd.domain.model.joining import Issued
from bcd.domain.model.names import NodeId, Role, SpiffeId, TrustDomain
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements
from tests.fakes import pki
from tests.fakes.joining import Credential
from tests.fakes.memory_join import Answers, failure, good, join
from tests.fakes.memory_node import MemoryNode


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
