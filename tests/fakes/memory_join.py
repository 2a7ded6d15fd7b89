"""Joins on a machine in memory: one that comes to its end, that fails, that was cut off, that is by TPM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.begin_join import Wanted
from bcd.domain.lifecycle.join import Join, Joined
from bcd.domain.model.attestation import JoinChallenge
from bcd.domain.model.datadir import PENDING
from bcd.domain.model.failures import Failure, Message
from bcd.domain.model.joining import Answer, Challenged, Issued
from bcd.domain.model.names import Role
from bcd.domain.model.pending import PendingJoin
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.protocol.files import join_pending
from bcd.protocol.pki import csr, ecdsa, seal
from tests.fakes import joining, pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.clock import ManualClock
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential, Recorded, Silent
from tests.fakes.memory_node import PATH, MemoryNode
from tests.fakes.memory_tpm import MemoryTpmKeys

STAMP = "20260926T120000Z"


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


def join_of(
    node: MemoryNode, plane: JoinTransport | None = None, credential: Credential | None = None, **parts: Any
) -> Join:
    """A join of `node`; `parts` as `tests.fakes.joining.join` has them."""
    return joining.join(
        node.fs,
        PATH,
        plane or ControlPlane(),
        credential or Credential(),
        clock=node.clock,
        events=node.events,
        keys=node.keys,
        **parts,
    )


def join(
    node: MemoryNode,
    plane: JoinTransport | None = None,
    credential: Credential | None = None,
    wanted: Wanted = ANY_NODE,
    **parts: Any,
) -> Joined:
    return join_of(node, plane, credential, **parts)(wanted)


def failure(node: MemoryNode, plane: JoinTransport, credential: Credential | None = None, **more: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        join(node, plane, credential, **more)
    return caught.value


def never() -> seal.Recipient:
    raise AssertionError("nothing is to be sealed")


def begun(plane: JoinTransport | None = None) -> MemoryNode:
    """A machine whose join got no answer."""
    node = MemoryNode()
    assert failure(node, plane or Silent()).message is Message.NO_RETRY
    node.clock.waits.clear()
    return node


def pending(node: MemoryNode) -> PendingJoin:
    return join_pending.decode(node.files[PENDING])


def with_tpm() -> tuple[MemoryNode, MemoryTpmKeys]:
    held = MemoryTpmKeys()
    return MemoryNode(keys=HostKeys(held, Recorded())), held


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

    def join(self, wanted: Wanted = BY_TPM, **more: Any) -> Joined:
        return join(self.node, self.plane, self.credential, wanted, attestor=self.attestor, recipient=never, **more)

    def fails(self, wanted: Wanted = BY_TPM, **more: Any) -> Failure:
        with pytest.raises(Failure) as caught:
            self.join(wanted, **more)
        return caught.value
