"""What a join is answered, decided in memory: new nodes, tokens and their uses, machines that are known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.joining import Granted
from bcd.domain.model.claims import Claims
from tests.fakes.controlplane.control_plane import START, MemoryControlPlane, SetClock
from tests.fakes.controlplane.joins import METAL, ask, granted, reason, state_of
from tests.fakes.controlplane.machine import Machine, new_key


def test_a_token_makes_a_new_node_with_a_random_id(plane: MemoryControlPlane) -> None:
    answer = granted(plane, Machine(claims=METAL), plane.token(site="lab"))
    assert answer.leaf.spiffe_id.site == "lab"
    assert answer.leaf.spiffe_id.node.startswith("n-")
    assert "metal" not in answer.leaf.spiffe_id.node
    assert answer.trust.version == 1
    assert answer.trust.roots == ()
    assert plane.nodes()[0].generation == 1
    assert state_of(plane, answer.leaf.spiffe_id.node) == [CertificateState.ISSUED]


def test_the_leaf_lives_as_long_as_configured_from_a_little_before_its_issue(plane: MemoryControlPlane) -> None:
    leaf = granted(plane, Machine(), plane.token()).leaf
    assert leaf.lifetime == timedelta(hours=24)
    assert plane.clock.now() - leaf.not_before == timedelta(minutes=5)


def test_a_short_leaf_begins_a_tenth_of_itself_before_its_issue() -> None:
    plane = MemoryControlPlane(leaf_lifetime=timedelta(seconds=40))
    leaf = granted(plane, Machine(), plane.token()).leaf
    assert leaf.lifetime == timedelta(seconds=40)
    assert plane.clock.now() - leaf.not_before == timedelta(seconds=4)


def test_a_leafs_dates_are_whole_seconds_and_stored_as_issued() -> None:
    plane = MemoryControlPlane(clock=SetClock(START + timedelta(microseconds=999_999)))
    leaf = granted(plane, Machine(), plane.token()).leaf
    (row,) = plane.store.read(lambda r: r.certificates.of_node(leaf.spiffe_id.node))
    assert (row.not_before, row.not_after) == (leaf.not_before, leaf.not_after)


def test_two_nodes_never_get_one_id(plane: MemoryControlPlane) -> None:
    class Stuck:
        """Says the same thing three times, as a generator may once in a very long while."""

        count = 0

        def bytes(self, count: int) -> bytes:
            self.count += 1
            return bytes([max(3, self.count)]) * count

    plane.joins = replace(plane.joins, random=Stuck())
    first = granted(plane, Machine(), plane.token()).leaf.spiffe_id.node
    plane.joins = replace(plane.joins, random=Stuck())
    assert granted(plane, Machine(), plane.token()).leaf.spiffe_id.node != first
    assert len(plane.nodes()) == 2


def test_answers_are_kept_no_longer_than_their_leaves(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token()
    granted(plane, machine, token)
    plane.clock.pass_(hours=24)
    granted(plane, Machine(), plane.token())
    credential = f"token:{token.split('_')[1]}"
    key = sha256(machine.spki).digest()
    assert plane.store.read(lambda r: r.answers.get(credential, key)) is None


def test_a_ramdisk_leaf_lives_two_hours_at_most(plane: MemoryControlPlane) -> None:
    leaf = granted(plane, Machine(), plane.token(role="ramdisk"), role="ramdisk").leaf
    assert leaf.lifetime == timedelta(hours=2)


def test_the_same_request_gets_the_same_bytes_and_no_second_use(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token()
    first = ask(plane, machine, token)
    plane.clock.pass_(hours=20)
    assert ask(plane, machine, token) == first
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [1]
    assert len(plane.nodes()) == 1


def test_another_request_of_the_same_key_gets_the_same_certificate(plane: MemoryControlPlane) -> None:
    key, token = new_key(), plane.token()
    one, two = Machine(key), Machine(key)
    assert one.csr != two.csr
    first = granted(plane, one, token)
    second = granted(plane, two, token)
    assert first.chain == second.chain
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [1]


def test_no_answer_is_repeated_once_its_leaf_expired(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token()
    ask(plane, machine, token)
    plane.clock.pass_(hours=24)
    assert reason(plane, ask(plane, machine, token)) == "token-used-up"


@pytest.mark.parametrize("state", [state for state in CertificateState if state is not CertificateState.ISSUED])
def test_no_answer_is_repeated_once_its_leaf_was_used(plane: MemoryControlPlane, state: CertificateState) -> None:
    machine, token = Machine(), plane.token(uses=2)
    node = granted(plane, machine, token).leaf.spiffe_id.node

    def use(records: Any) -> None:
        (certificate,) = records.certificates.of_node(node)
        records.certificates.put(replace(certificate, state=state))

    plane.store.change(use).result()
    assert reason(plane, ask(plane, machine, token)) == "key-certified-before"


def test_another_key_with_a_used_up_token_is_refused(plane: MemoryControlPlane) -> None:
    token = plane.token()
    granted(plane, Machine(), token)
    assert reason(plane, ask(plane, Machine(), token)) == "token-used-up"


def test_a_token_of_three_uses_lets_three_machines_join(plane: MemoryControlPlane) -> None:
    token = plane.token(uses=3)
    nodes = {granted(plane, Machine(), token).leaf.spiffe_id.node for _ in range(3)}
    assert len(nodes) == 3
    assert reason(plane, ask(plane, Machine(), token)) == "token-used-up"


def test_a_token_ends_at_its_expiry(plane: MemoryControlPlane) -> None:
    token = plane.token(ttl_s=60)
    plane.clock.pass_(seconds=60)
    assert reason(plane, ask(plane, Machine(), token)) == "token-expired"


def test_an_expired_token_still_repeats_the_answer_it_gave(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(ttl_s=60)
    first = ask(plane, machine, token)
    plane.clock.pass_(minutes=2)
    assert ask(plane, machine, token) == first


def test_a_revoked_token_gives_nothing_more(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(uses=2)
    granted(plane, machine, token)
    plane.revoke_token(token)
    assert reason(plane, ask(plane, Machine(), token)) == "token-revoked"
    assert reason(plane, ask(plane, machine, token)) == "token-revoked"


def test_a_key_is_certified_once(plane: MemoryControlPlane) -> None:
    machine = Machine()
    granted(plane, machine, plane.token())
    assert reason(plane, ask(plane, machine, plane.token())) == "key-certified-before"


def test_an_unknown_token_and_a_wrong_secret_are_told_apart_for_the_operator_alone(plane: MemoryControlPlane) -> None:
    token = plane.token()
    other = f"bcjt_{'a' * 10}_{'A' * 43}"
    assert reason(plane, ask(plane, Machine(), other)) == "token-unknown"
    guessed = f"{token[:-43]}{'A' * 43}"
    assert reason(plane, ask(plane, Machine(), guessed)) == "token-secret-wrong"
    assert isinstance(ask(plane, Machine(), token), Granted)


# Known machines


def test_a_known_machine_with_a_plain_token_is_refused(plane: MemoryControlPlane) -> None:
    node = granted(plane, Machine(claims=METAL), plane.token()).leaf.spiffe_id.node
    answer = ask(plane, Machine(claims=replace(METAL, hostname="other")), plane.token())
    assert reason(plane, answer) == "machine-known"
    assert node in plane.refusals()[0].detail


def test_allow_reclaim_gives_a_known_machine_its_id_back_in_a_new_generation(plane: MemoryControlPlane) -> None:
    first = granted(plane, Machine(claims=METAL), plane.token())
    again = granted(plane, Machine(claims=METAL), plane.token(allow_reclaim=True))
    assert again.leaf.spiffe_id == first.leaf.spiffe_id
    assert plane.nodes()[0].generation == 2
    assert sorted(state_of(plane, first.leaf.spiffe_id.node)) == ["issued", "revoked"]


def test_allow_reclaim_lets_an_unknown_machine_join_as_a_new_node(plane: MemoryControlPlane) -> None:
    granted(plane, Machine(claims=METAL), plane.token())
    granted(plane, Machine(claims=replace(METAL, board_serial="CN9999")), plane.token(allow_reclaim=True))
    assert len(plane.nodes()) == 2


@pytest.mark.parametrize(
    "claims",
    [
        replace(METAL, product_uuid="00000000-0000-0000-0000-000000000000"),
        replace(METAL, product_uuid="03000200-0400-0500-0006-000700080009"),
        replace(METAL, product_uuid=""),
        replace(METAL, board_serial="Default string"),
        replace(METAL, board_serial=""),
        replace(METAL, board_serial="", product_uuid="Not Settable", macs=("00:1b:21:aa:bb:cc",)),
    ],
    ids=str,
)
def test_machines_that_share_only_placeholders_are_two_nodes(plane: MemoryControlPlane, claims: Claims) -> None:
    one = granted(plane, Machine(claims=claims), plane.token()).leaf.spiffe_id.node
    two = granted(plane, Machine(claims=claims), plane.token(allow_reclaim=True)).leaf.spiffe_id.node
    assert one != two


def test_the_spelling_of_a_uuid_does_not_make_a_second_machine(plane: MemoryControlPlane) -> None:
    granted(plane, Machine(claims=METAL), plane.token())
    shouted = replace(METAL, product_uuid=METAL.product_uuid.upper(), board_serial=f" {METAL.board_serial} ")
    assert reason(plane, ask(plane, Machine(claims=shouted), plane.token())) == "machine-known"


def test_several_nodes_with_one_machine_cannot_be_reclaimed_without_a_name(plane: MemoryControlPlane) -> None:
    granted(plane, Machine(claims=METAL), plane.token(node_id="one"))
    granted(plane, Machine(claims=METAL), plane.token(node_id="two"))
    assert reason(plane, ask(plane, Machine(claims=METAL), plane.token(allow_reclaim=True))) == "machine-ambiguous"
    assert granted(plane, Machine(claims=METAL), plane.token(node_id="two")).leaf.spiffe_id.node == "two"


def test_a_node_is_not_reclaimed_into_another_site(plane: MemoryControlPlane) -> None:
    granted(plane, Machine(claims=METAL), plane.token(site="lab"))
    answer = ask(plane, Machine(claims=METAL), plane.token(site="barn", allow_reclaim=True))
    assert reason(plane, answer) == "site-mismatch"


# Provisioned tokens


def test_a_provisioned_token_makes_its_node_and_later_reclaims_it(plane: MemoryControlPlane) -> None:
    token = plane.token(node_id="rack1-7", role="ramdisk")
    assert granted(plane, Machine(), token, role="ramdisk", wanted_node_id="rack1-7").leaf.spiffe_id.node == "rack1-7"
    granted(plane, Machine(), plane.token(node_id="rack1-7"), wanted_node_id="rack1-7")
    (node,) = plane.nodes()
    assert (node.generation, node.role) == (2, "node")


def test_a_token_for_a_node_needs_no_wanted_id(plane: MemoryControlPlane) -> None:
    assert granted(plane, Machine(), plane.token(node_id="rack1-7")).leaf.spiffe_id.node == "rack1-7"


def test_a_wanted_id_is_given_only_by_a_token_for_it(plane: MemoryControlPlane) -> None:
    wrong = ask(plane, Machine(), plane.token(node_id="rack1-7"), wanted_node_id="rack1-8")
    assert reason(plane, wrong) == "node-id-mismatch"
    plain = ask(plane, Machine(), plane.token(), wanted_node_id="rack1-8")
    assert reason(plane, plain) == "node-id-mismatch"
    quiet = ask(plane, Machine(), plane.token(node_id="rack1-8"), wanted_node_id="rack1-8", attestor="join-token")
    assert reason(plane, quiet) == "request-malformed"
