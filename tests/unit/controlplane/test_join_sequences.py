"""Any sequence of joins, repeats, approvals, revocations and hours: what must hold after each."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from bcd.controlplane.domain.ids import TokenId
from bcd.controlplane.domain.joining import Granted, Waiting
from bcd.domain.model.claims import Claims
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine

BOARDS = [
    Claims(product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="one"),
    Claims(product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="two"),
    Claims(product_uuid="00000000-0000-0000-0000-000000000000", board_serial="Default string"),
]


class Joins(RuleBasedStateMachine):
    tokens = Bundle("tokens")
    machines = Bundle("machines")
    questions = Bundle("questions")

    def __init__(self) -> None:
        super().__init__()
        self.plane = MemoryControlPlane()
        # What each (token, machine) was answered last with a certificate, and when that ends.
        self.heard: dict[tuple[str, int], Any] = {}

    @initialize(target=tokens)
    def first_token(self) -> str:
        return self.plane.token(uses=2)

    @rule(
        target=tokens,
        uses=st.integers(1, 3),
        reclaim=st.booleans(),
        approval=st.booleans(),
        node=st.sampled_from([None, None, "rack1-7"]),
    )
    def token(self, uses: int, reclaim: bool, approval: bool, node: str | None) -> str:
        return self.plane.token(
            uses=1 if node else uses, allow_reclaim=reclaim, require_approval=approval, node_id=node
        )

    @rule(target=machines, claims=st.sampled_from(BOARDS))
    def machine(self, claims: Claims) -> Machine:
        return Machine(claims=claims)

    @rule(target=questions, token=tokens, machine=machines)
    def join(self, token: str, machine: Machine) -> str:
        before = self.used(token)
        answer = self.plane.join(machine.request(self.plane.recipient, token))
        after = self.used(token)
        if isinstance(answer, Granted):
            opened = machine.check(answer.signed, self.plane.signing_pin)
            known = self.heard.get((token, id(machine)))
            if known is not None and opened.chain == known.chain:
                assert after == before
            else:
                assert after == before + 1
            self.heard[token, id(machine)] = opened
        else:
            assert after == before
        return answer.id if isinstance(answer, Waiting) else ""

    @rule(question=consumes(questions), approve=st.booleans())
    def decide(self, question: str, approve: bool) -> None:
        pending = {row.id for row in self.plane.approvals() if row.state == "pending"}
        if question in pending:
            (self.plane.approve if approve else self.plane.deny)(question)

    @rule(hours=st.sampled_from([1, 23, 24, 200]))
    def wait(self, hours: int) -> None:
        self.plane.clock.pass_(hours=hours)

    @rule(token=tokens)
    def revoke(self, token: str) -> None:
        self.plane.revoke_token(token)

    def used(self, token: str) -> int:
        row = self.plane.store.read(lambda r: r.tokens.get(TokenId(token.split("_")[1])))
        assert row is not None
        return int(row.used)

    @invariant()
    def no_token_is_used_beyond_its_uses(self) -> None:
        for row in self.plane.store.read(lambda r: r.tokens.all()):
            assert 0 <= row.used <= row.uses

    @invariant()
    def each_use_is_one_certificate_and_each_certificate_another_key(self) -> None:
        def look(records: Any) -> tuple[int, list[Any]]:
            certificates = [row for node in records.nodes.all() for row in records.certificates.of_node(node.id)]
            return sum(row.used for row in records.tokens.all()), certificates

        used, certificates = self.plane.store.read(look)
        assert used == len(certificates)
        assert len({row.spki_sha256 for row in certificates}) == len(certificates)
        assert len({row.serial for row in certificates}) == len(certificates)

    @invariant()
    def only_the_newest_generation_of_a_node_is_alive(self) -> None:
        for node in self.plane.store.read(lambda r: r.nodes.all()):
            rows = self.plane.store.read(lambda r, n=node: r.certificates.of_node(n.id))  # type: ignore[misc]
            assert sorted(row.generation for row in rows) == list(range(1, node.generation + 1))
            assert {row.generation for row in rows if row.state != "revoked"} == {node.generation}


Joins.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
TestJoins = Joins.TestCase
