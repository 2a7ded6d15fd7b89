"""What a join is answered, decided in memory: real keys and certificates, no file, no socket, no sleep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain.approvals import MAX_PENDING_PER_TOKEN, PENDING_FOR
from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.joining import Granted, JoinAnswer, Refused, Waiting
from bcd.controlplane.ports.signing import CannotIssue
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.domain.model.claims import MAX_CLAIM, MAX_CLAIMS_OF_A_KIND, Claims
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import SealedToken
from bcd.protocol.pki import csr
from tests.fakes.controlplane.control_plane import START, MemoryControlPlane, SetClock
from tests.fakes.controlplane.machine import Machine, new_key

METAL = Claims(
    product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="CN7016", hostname="metal", boot_id="b-1"
)


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


def ask(plane: MemoryControlPlane, machine: Machine, token: str, **changes: Any) -> JoinAnswer:
    return plane.join(machine.request(plane.recipient, token, **changes))


def granted(plane: MemoryControlPlane, machine: Machine, token: str, **changes: Any) -> Any:
    """The opened answer, checked as a node checks it."""
    answer = ask(plane, machine, token, **changes)
    assert isinstance(answer, Granted), plane.refusals()[0]
    role = Role(changes.get("role", "node"))
    return machine.check(answer.signed, plane.signing_pin, role, changes.get("wanted_node_id", ""))


def reason(plane: MemoryControlPlane, answer: JoinAnswer) -> str:
    """Why it was refused, as the operator finds it by the id the node was given."""
    assert isinstance(answer, Refused)
    row = plane.refusals()[0]
    assert row.id == answer.id
    return row.reason


def state_of(plane: MemoryControlPlane, node: NodeId) -> list[str]:
    return [row.state for row in plane.store.read(lambda r: r.certificates.of_node(node))]


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


# The request's form


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"attestor": "x509pop"}, "attestor-unknown"),
        ({"attestor": "tpm"}, "request-malformed"),
        ({"attestor": ""}, "attestor-unknown"),
        ({"attestor": "x" * 65}, "request-malformed"),
        ({"attestor": "join-token\n"}, "request-malformed"),
        ({"attestor": "provisioned"}, "node-id-missing"),
        ({"role": "admin"}, "role-unknown"),
        ({"role": "site"}, "role-mismatch"),
        ({"wanted_node_id": "a/b"}, "node-id-malformed"),
        ({"wanted_node_id": ".."}, "node-id-malformed"),
        ({"csr": b""}, "csr-malformed"),
        ({"csr": b"x" * 5000}, "csr-malformed"),
        ({"sealed": None}, "token-missing"),
        ({"sealed": SealedToken("", b"")}, "token-missing"),
        ({"sealed": SealedToken("other", b"x" * 200)}, "seal-key-unknown"),
        ({"sealed": SealedToken("other", b"x" * 5000)}, "request-malformed"),
        ({"sealed": SealedToken("k" * 65, b"x" * 200)}, "request-malformed"),
        ({"daemon_version": "v" * 257}, "request-malformed"),
        ({"pending_id": "\x1b[2J"}, "request-malformed"),
        ({"claims": Claims(hostname="h" * (MAX_CLAIM + 1))}, "claims-malformed"),
        ({"claims": Claims(product_serial="\x1b[2J")}, "claims-malformed"),
        ({"claims": Claims(product_uuid="\u202e")}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc",) * (MAX_CLAIMS_OF_A_KIND + 1))}, "claims-malformed"),
        ({"claims": Claims(gpu_uuids=("g" * (MAX_CLAIM + 1),))}, "claims-malformed"),
        ({"claims": Claims(gpu_uuids=("4c4c4544-0042-3510-8052-b4c04f4d3532",))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1B:21:aa:bb:cc",))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc", "00:1b:21:aa:bb:cb"))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc",) * 2)}, "claims-malformed"),
    ],
    ids=str,
)
def test_a_request_that_is_not_in_order_is_refused(
    plane: MemoryControlPlane, changes: dict[str, Any], want: str
) -> None:
    token = plane.token()
    assert reason(plane, ask(plane, Machine(), token, **changes)) == want
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [0]


def test_the_largest_claims_are_taken(plane: MemoryControlPlane) -> None:
    macs = tuple(f"00:1b:21:aa:bb:{last:02x}" for last in range(MAX_CLAIMS_OF_A_KIND))
    claims = Claims(hostname="h" * MAX_CLAIM, macs=macs)
    granted(plane, Machine(claims=claims), plane.token())


def test_a_token_sealed_beside_another_request_does_not_open(plane: MemoryControlPlane) -> None:
    stolen = Machine().request(plane.recipient, plane.token()).sealed
    assert reason(plane, ask(plane, Machine(), "unused", sealed=stolen)) == "seal-does-not-open"


def test_what_was_sealed_is_a_token(plane: MemoryControlPlane) -> None:
    assert reason(plane, ask(plane, Machine(), plane.token()[:-1])) == "token-malformed"
    assert reason(plane, ask(plane, Machine(), plane.token() + "\n")) == "token-malformed"


def test_a_request_on_another_curve_is_refused(plane: MemoryControlPlane) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509.oid import NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, csr.SUBJECT)])
    key = ec.generate_private_key(ec.SECP384R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    other = Machine(csr=request.public_bytes(serialization.Encoding.DER))
    assert reason(plane, ask(plane, other, plane.token())) == "csr-malformed"


def test_what_is_no_request_at_all_is_refused_too(plane: MemoryControlPlane) -> None:
    answer = plane.exchange(b"\xff\xff\xff")
    assert isinstance(answer, Refused)
    assert plane.refusals()[0].reason == "request-malformed"


# Approvals


def test_an_approval_is_waited_for_and_then_issued(plane: MemoryControlPlane) -> None:
    machine, token = Machine(claims=METAL), plane.token(require_approval=True)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    assert ask(plane, machine, token) == waiting
    (question,) = plane.approvals()
    assert (question.key_pin, question.site, question.claims.hostname) == (machine.pin, "lab", "metal")
    assert question.token_id == token.split("_")[1]
    plane.approve(waiting.id)
    granted(plane, machine, token)
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [1]


def test_an_approval_is_for_one_key(plane: MemoryControlPlane) -> None:
    machine, thief, token = Machine(), Machine(), plane.token(require_approval=True)
    mine, theirs = ask(plane, machine, token), ask(plane, thief, token)
    assert isinstance(mine, Waiting) and isinstance(theirs, Waiting)
    assert mine.id != theirs.id
    plane.approve(mine.id)
    assert isinstance(ask(plane, thief, token), Waiting)
    granted(plane, machine, token)
    assert reason(plane, ask(plane, thief, token)) == "token-used-up"


def test_a_denied_join_is_refused(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    plane.deny(waiting.id)
    assert reason(plane, ask(plane, machine, token)) == "approval-denied"
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [0]


def test_a_question_asked_in_time_outlives_the_token(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True, ttl_s=60)
    waiting = ask(plane, machine, token)
    assert isinstance(waiting, Waiting)
    plane.clock.pass_(days=3)
    assert reason(plane, ask(plane, Machine(), token)) == "token-expired"
    plane.approve(waiting.id)
    granted(plane, machine, token)


def test_a_question_nobody_answers_lapses(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    ask(plane, machine, token)
    plane.clock.pass_(seconds=PENDING_FOR.total_seconds())
    assert reason(plane, ask(plane, machine, token)) == "approval-lapsed"
    assert plane.approvals()[0].state == "lapsed"


def test_a_token_waits_for_so_many_approvals_and_no_more(plane: MemoryControlPlane) -> None:
    token = plane.token(require_approval=True)
    first = Machine()
    for machine in [first, *(Machine() for _ in range(MAX_PENDING_PER_TOKEN - 1))]:
        assert isinstance(ask(plane, machine, token), Waiting)
    assert reason(plane, ask(plane, Machine(), token)) == "approvals-too-many"
    assert isinstance(ask(plane, first, token), Waiting)


def test_the_longer_a_node_waits_the_rarer_it_asks(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(require_approval=True)
    waits = []
    for _ in range(3):
        waiting = ask(plane, machine, token)
        assert isinstance(waiting, Waiting)
        waits.append(waiting.retry_after_s)
        plane.clock.pass_(minutes=5)
    assert waits == [2, 30, 60]


def test_the_approver_sees_that_a_node_would_come_back(plane: MemoryControlPlane) -> None:
    node = granted(plane, Machine(claims=METAL), plane.token()).leaf.spiffe_id.node
    ask(plane, Machine(claims=METAL), plane.token(allow_reclaim=True, require_approval=True))
    (question,) = plane.approvals()
    assert (question.node_id, question.reclaims) == (node, True)


# What must not be decided half


@pytest.mark.parametrize("changes", [{}, {"attestor": "tpm"}], ids=["join", "refusal"])
def test_a_store_that_fails_decides_nothing(plane: MemoryControlPlane, changes: dict[str, Any]) -> None:
    machine, token = Machine(), plane.token()
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        ask(plane, machine, token, **changes)
    assert not plane.nodes() and not plane.refusals()
    # Nothing that did not happen stands in the log.
    assert not plane.log.lines
    granted(plane, machine, token)


def test_a_leaf_that_would_outlive_its_ca_is_not_issued_and_uses_nothing_up(plane: MemoryControlPlane) -> None:
    machine, token = Machine(), plane.token(ttl_s=90 * 86400)
    ends = plane.issuing.certificate.not_valid_after_utc

    def later(records: Any) -> None:
        (row,) = records.tokens.all()
        records.tokens.put(replace(row, expires=ends))

    plane.store.change(later).result()
    plane.clock.at = ends - timedelta(hours=1)
    with pytest.raises(CannotIssue):
        ask(plane, machine, token)
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [0]


# What is left behind


def test_each_join_and_refusal_is_in_the_audit_log_and_no_secret_is(plane: MemoryControlPlane) -> None:
    token = plane.token()
    granted(plane, Machine(), token)
    ask(plane, Machine(), token)
    events = plane.store.read(lambda r: r.audit.latest(10))
    kinds = [row.event.kind.value for row in events]
    assert kinds == ["store.created", "token.created", "node.joined", "join.refused"]
    joined = events[2].event
    assert joined.actor == "node:192.0.2.1"
    assert joined.detail["token"] == token.split("_")[1]
    assert joined.detail["nodeKey"] == "unattested"
    secret = token.split("_", 2)[2]
    assert secret not in repr(plane.store.read(lambda r: [r.tokens.all(), events]))
    assert secret not in repr(plane.log.lines)


def test_a_refusal_says_nothing_but_its_id(plane: MemoryControlPlane) -> None:
    answer = ask(plane, Machine(), plane.token(), role="site")
    assert isinstance(answer, Refused)
    assert vars(answer) == {"id": answer.id}
    assert len(answer.id) == 32
    assert set(answer.id) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("source", "kept"),
    [(lambda n: "192.0.2.1", 60), (lambda n: f"192.0.2.{n % 250}", 600)],
    ids=["one source", "many sources"],
)
def test_refusal_rows_are_capped(plane: MemoryControlPlane, source: Callable[[int], str], kept: int) -> None:
    request = Machine().request(plane.recipient, plane.token(), attestor="tpm")
    ids = {plane.join(request, source(n)) for n in range(kept + 5)}
    assert len(ids) == kept + 5
    assert len(plane.refusals()) == kept
    assert (
        sum(row.event.kind.value == "join.refused" for row in plane.store.read(lambda r: r.audit.latest(2000))) == kept
    )
    plane.clock.pass_(hours=1, seconds=1)
    plane.join(request, "192.0.2.1")
    assert len(plane.refusals()) == kept + 1


def test_refusals_are_forgotten_after_thirty_days(plane: MemoryControlPlane) -> None:
    request = Machine().request(plane.recipient, plane.token(), attestor="tpm")
    plane.join(request)
    plane.clock.pass_(days=30, seconds=1)
    plane.join(request)
    assert len(plane.refusals()) == 1


def test_a_refusal_keeps_no_claims_that_would_not_print(plane: MemoryControlPlane) -> None:
    ask(plane, Machine(), plane.token(), claims=Claims(hostname="\x1b]0;owned\x07", boot_id="b"))
    assert plane.refusals()[0].claims.hostname == ""
    assert "\x1b" not in repr(plane.refusals()[0])
