"""The port `JoinTransport`: one contract over gRPC with TLS and the control plane in memory, and over wrong ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from bcd.domain.model.claims import Claims
from bcd.domain.model.joining import Answer, Failed, Issued, JoinDenied, Pending
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pins import Pin, Pins
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.protocol.pki import join_response
from tests.contract.ports.join_rig import CA, Service, question, transport
from tests.fakes import pki, tls
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.memory_transport import MemoryTransport


@dataclass
class Rig:
    """A transport to the control plane `plane`; `asked` is what reached it; the `scripted` answers come first."""

    transport: JoinTransport
    plane: MemoryControlPlane
    asked: list[JoinQuestion]
    scripted: list[Answer]


class JoinTransportContract:
    @staticmethod
    def a_good_token_is_answered_with_what_was_signed(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token(node_id="n-7"), node="n-7")
        answer = rig.transport.join(asked)
        assert isinstance(answer, Issued)
        expected = join_response.Expected(
            asked.pending.csr,
            pki.spki(pki.private_key(5001)),
            Role.NODE,
            NodeId("n-7"),
            Pins((Pin(rig.plane.signing_pin),)),
        )
        assert join_response.open_join_response(answer.signed, expected).leaf.spiffe_id.node == "n-7"

    @staticmethod
    def the_whole_question_arrives_and_the_key_does_not(rig: Rig) -> None:
        for asked in (
            question(rig.plane, rig.plane.token(node_id="n-7"), node="n-7"),
            replace(question(rig.plane, rig.plane.token()), claims=Claims(), daemon_version="9.9.9"),
        ):
            rig.transport.join(asked)
            came = rig.asked[-1]
            assert (came.claims, came.daemon_version) == (asked.claims, asked.daemon_version)
            for name in ("attestor", "role", "node_id", "csr", "sealed", "pending_id"):
                assert getattr(came.pending, name) == getattr(asked.pending, name), name

    @staticmethod
    def the_same_question_gets_the_same_answer(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        first = rig.transport.join(asked)
        assert isinstance(first, Issued)
        assert rig.transport.join(asked) == first

    @staticmethod
    def a_refusal_is_final_and_has_its_id(rig: Rig) -> None:
        token = rig.plane.token()
        rig.plane.revoke_token(token)
        answer = rig.transport.join(question(rig.plane, token))
        assert isinstance(answer, JoinDenied)
        assert answer.refusal_id == rig.plane.refusals()[0].id
        assert len(answer.refusal_id) == 32

    @staticmethod
    def an_approval_is_waited_for_under_its_id_and_then_answered(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token(require_approval=True))
        waiting = rig.transport.join(asked)
        assert isinstance(waiting, Pending)
        assert waiting.id == rig.plane.approvals()[0].id
        assert waiting.retry_after_s >= 1
        rig.plane.approve(waiting.id)
        again = replace(asked, pending=replace(asked.pending, pending_id=waiting.id))
        assert isinstance(rig.transport.join(again), Issued)
        assert rig.asked[-1].pending.pending_id == waiting.id

    @staticmethod
    def what_decides_nothing_is_failed_and_the_next_question_is_answered(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        rig.scripted.append(Failed("busy"))
        answer = rig.transport.join(asked)
        assert isinstance(answer, Failed)
        assert "busy" in answer.why
        assert (answer.pushback_s, answer.never) == (None, False)
        assert isinstance(rig.transport.join(asked), Issued)

    @staticmethod
    def a_pushback_is_told_exactly(rig: Rig) -> None:
        asked = question(rig.plane, rig.plane.token())
        for pushback_s in (0.0, 0.001, 1.5, 86400.0):
            rig.scripted.append(Failed("busy", pushback_s=pushback_s))
            answer = rig.transport.join(asked)
            assert isinstance(answer, Failed)
            assert (answer.pushback_s, answer.never) == (pushback_s, False)

    @staticmethod
    def not_to_be_asked_again_is_told(rig: Rig) -> None:
        rig.scripted.append(Failed("busy", never=True))
        answer = rig.transport.join(question(rig.plane, rig.plane.token()))
        assert isinstance(answer, Failed)
        assert (answer.pushback_s, answer.never) == (None, True)

    @staticmethod
    def closing_twice_is_closing(rig: Rig) -> None:
        assert isinstance(rig.transport.join(question(rig.plane, rig.plane.token())), Issued)
        rig.transport.close()
        rig.transport.close()


@contextmanager
def in_memory() -> Iterator[Rig]:
    transport = MemoryTransport(MemoryControlPlane())
    yield Rig(transport, transport.plane, transport.asked, transport.scripted)


@contextmanager
def over_grpc() -> Iterator[Rig]:
    service = Service()
    with tls.grpc_server(service, [CA.leaf(), CA.der]) as port:
        yield Rig(transport(port), service.plane, service.asked, service.scripted)


@pytest.mark.parametrize("make", [in_memory, over_grpc])
@pytest.mark.parametrize("check", checks_of(JoinTransportContract).values(), ids=checks_of(JoinTransportContract))
def test_every_implementation_meets_the_contract(check: Callable[[Rig], None], make: object) -> None:
    with make() as rig:  # type: ignore[operator]
        check(rig)


class Wrong(MemoryTransport):
    """Asks `asks` of the question and says `says` of the answer."""

    def __init__(self, asks: Callable[[JoinQuestion], JoinQuestion], says: Callable[[Answer], Answer]) -> None:
        super().__init__(MemoryControlPlane())
        self._asks = asks
        self._says = says

    def join(self, question: JoinQuestion) -> Answer:
        return self._says(super().join(self._asks(question)))


class Crashing(MemoryTransport):
    """A failure of the network is one of the program."""

    def join(self, question: JoinQuestion) -> Answer:
        answer = super().join(question)
        if isinstance(answer, Failed):
            raise ConnectionError(answer.why)
        return answer


class ClosesOnce(MemoryTransport):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise ValueError("closed already")
        self.closed = True


def same(value: object) -> object:
    return value


def change(kind: type, **fields: object) -> Callable[[Answer], Answer]:
    return lambda answer: replace(answer, **fields) if isinstance(answer, kind) else answer  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("make", "caught_by"),
    [
        (lambda: Wrong(same, change(Issued, signed=b"other")), "a_good_token_is_answered_with_what_was_signed"),
        (lambda: Wrong(lambda q: replace(q, claims=Claims()), same), "the_whole_question_arrives_and_the_key_does_not"),
        (
            lambda: Wrong(lambda q: replace(q, pending=replace(q.pending, node_id=None)), same),
            "the_whole_question_arrives_and_the_key_does_not",
        ),
        (lambda: Wrong(same, change(JoinDenied, refusal_id="")), "a_refusal_is_final_and_has_its_id"),
        (
            lambda: Wrong(same, lambda a: Failed("no") if isinstance(a, JoinDenied) else a),
            "a_refusal_is_final_and_has_its_id",
        ),
        (lambda: Wrong(same, change(Pending, id="other")), "an_approval_is_waited_for_under_its_id_and_then_answered"),
        (
            lambda: Wrong(lambda q: replace(q, pending=replace(q.pending, pending_id="")), same),
            "an_approval_is_waited_for_under_its_id_and_then_answered",
        ),
        (lambda: Crashing(MemoryControlPlane()), "what_decides_nothing_is_failed_and_the_next_question_is_answered"),
        (lambda: Wrong(same, change(Failed, pushback_s=None)), "a_pushback_is_told_exactly"),
        (lambda: Wrong(same, change(Failed, never=False)), "not_to_be_asked_again_is_told"),
        (lambda: ClosesOnce(MemoryControlPlane()), "closing_twice_is_closing"),
        (
            lambda: Wrong(lambda q: question(MemoryControlPlane(), "other"), same),
            "the_same_question_gets_the_same_answer",
        ),
    ],
)
def test_a_wrong_implementation_fails_the_contract(make: Callable[[], MemoryTransport], caught_by: str) -> None:
    def rig() -> Rig:
        wrong = make()
        return Rig(wrong, wrong.plane, wrong.asked, wrong.scripted)

    assert caught_by in failed_checks(JoinTransportContract, rig)
