"""What every store must do. Each clause gets a fresh, empty store and fails by an assertion."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from bcd.controlplane.domain.approvals import ApprovalState
from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.ports.store import Records, Store, StoreUnavailable
from bcd.domain.model.names import NodeId, Role, SiteId
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.rows import AT, HOUR

T = TypeVar("T")
Clause = Callable[[Store], None]
CLAUSES: list[Clause] = []
PATIENCE_S = 20.0


class Spoiled(Exception):
    """What a piece of work raises to undo itself."""


def clause(check: Clause) -> Clause:
    CLAUSES.append(check)
    return check


def changed(store: Store, work: Callable[[Records], T]) -> T:
    return store.change(work).result(PATIENCE_S)


@clause
def rows_come_back_as_they_were_put(store: Store) -> None:
    token = rows.token(node_id="n-1", revoked=AT)
    node = rows.node(
        last_seen=AT, renew_asked=AT + HOUR, renew_reason="moved", ek=f"sha256:{'e' * 64}", ak_name=b"\x00\x0bname"
    )
    certificate = rows.certificate(first_used=AT, first_used_from="192.0.2.1", reason="operator: stolen")
    answer, restoration = rows.answer(), Restoration(AT)
    approval, refusal = rows.approval(decided=AT, state=ApprovalState.DENIED), rows.refusal()
    bundle = SignedBundle(1, b"\x00\xff")
    root, open_root = rows.ek_root(1), rows.ek_root(2, site=SiteId("lab"), role=Role.SITE)
    listed = rows.listed_ek(1, node_id=NodeId("n-1"), role=Role.RAMDISK)
    denied = rows.listed_ek(2, site=None, denied=True, note="")
    shown, proved = TpmKey("000b00", "sha256:01", False), TpmKey("000b00", "sha256:02", True)
    challenge, answered = rows.challenge(1), rows.challenge(2, answered=AT, serial="0a" * 16)

    def work(r: Records) -> None:
        r.tokens.put(token)
        r.nodes.put(node)
        r.certificates.put(certificate)
        r.answers.put(answer)
        r.approvals.put(approval)
        r.refusals.add(refusal)
        r.bundles.add(bundle)
        r.restorations.add(restoration)
        r.ek_roots.put(root)
        r.ek_roots.put(open_root)
        r.eks.put(listed)
        r.eks.put(denied)
        r.tpm_keys.put(shown)
        r.tpm_keys.put(proved)
        r.challenges.put(challenge)
        r.challenges.put(answered)

    changed(store, work)
    assert store.read(lambda r: r.tokens.get(token.id)) == token
    assert store.read(lambda r: r.nodes.get(node.id)) == node
    assert store.read(lambda r: r.certificates.get(certificate.serial)) == certificate
    assert store.read(lambda r: r.answers.get(answer.credential, answer.spki_sha256)) == answer
    assert store.read(lambda r: r.approvals.get(approval.id)) == approval
    assert store.read(lambda r: r.refusals.get(refusal.id)) == refusal
    assert store.read(lambda r: r.bundles.newest()) == bundle
    assert store.read(lambda r: r.restorations.newest()) == restoration
    for kept in (root, open_root):
        assert store.read(lambda r, kept=kept: r.ek_roots.get(kept.fingerprint)) == kept  # type: ignore[misc]
    for row in (listed, denied):
        assert store.read(lambda r, row=row: r.eks.get(row.ek)) == row  # type: ignore[misc]
    assert store.read(lambda r: r.tpm_keys.of_ak("000b00")) == [shown, proved]
    assert store.read(lambda r: r.challenges.of_request(challenge.csr_sha256)) == [challenge, answered]


@clause
def what_is_not_there_is_none_or_nothing(store: Store) -> None:
    def look(r: Records) -> list[Any]:
        return [
            r.tokens.get(rows.token().id),
            r.nodes.get(rows.node().id),
            r.certificates.get("00"),
            r.certificates.newest(rows.node().id),
            r.answers.get("token:x", b""),
            r.approvals.get(rows.approval().id),
            r.approvals.asked("token:x", b""),
            r.refusals.get(rows.refusal().id),
            r.bundles.newest(),
            r.restorations.newest(),
            r.ek_roots.get(rows.ek_root().fingerprint),
            r.eks.get(rows.listed_ek().ek),
            r.challenges.get(rows.challenge().id),
        ]

    node_id = rows.node().id
    assert store.read(look) == [None] * 13
    assert store.read(lambda r: [*r.certificates.open(node_id), *r.certificates.renewals_since(node_id, AT)]) == []
    changed(store, lambda r: r.nodes.remove(node_id))
    changed(store, lambda r: r.ek_roots.remove(rows.ek_root().fingerprint))
    changed(store, lambda r: r.eks.remove(rows.listed_ek().ek))
    changed(store, lambda r: r.challenges.remove(rows.challenge().id))
    assert store.read(lambda r: (*r.challenges.of_request(b"c" * 32), r.challenges.count())) == (0,)
    assert store.read(lambda r: [*r.tokens.all(), *r.nodes.all(), *r.approvals.all(), *r.audit.latest(5)]) == []
    assert store.read(lambda r: [*r.ek_roots.all(), *r.eks.all(), *r.nodes.of_ek("sha256:00")]) == []
    assert store.read(lambda r: [*r.tpm_keys.of_ak("000b"), *r.tpm_keys.of_ek("sha256:00")]) == []


@clause
def putting_again_replaces(store: Store) -> None:
    def work(r: Records) -> None:
        r.tokens.put(rows.token(used=0))
        r.tokens.put(rows.token(used=2))
        r.nodes.put(rows.node())
        r.nodes.put(rows.node(generation=2))
        r.certificates.put(rows.certificate())
        r.certificates.put(rows.certificate(state=CertificateState.CURRENT))
        r.answers.put(rows.answer())
        r.answers.put(rows.answer(signed=b"other"))
        r.approvals.put(rows.approval())
        r.approvals.put(rows.approval(state=ApprovalState.APPROVED))
        r.ek_roots.put(rows.ek_root(site=SiteId("lab"), role=Role.NODE))
        r.ek_roots.put(rows.ek_root())
        r.eks.put(rows.listed_ek())
        r.eks.put(rows.listed_ek(denied=True))
        r.tpm_keys.put(TpmKey("000b", "sha256:01", False))
        r.tpm_keys.put(TpmKey("000b", "sha256:01", True))
        r.challenges.put(rows.challenge())
        r.challenges.put(rows.challenge(answered=AT))

    changed(store, work)
    assert [token.used for token in store.read(lambda r: r.tokens.all())] == [2]
    assert [node.generation for node in store.read(lambda r: r.nodes.all())] == [2]
    of_node = store.read(lambda r: r.certificates.of_node(rows.node().id))
    assert [row.state for row in of_node] == [CertificateState.CURRENT]
    found = store.read(lambda r: r.answers.get(rows.answer().credential, rows.answer().spki_sha256))
    assert found is not None and found.signed == b"other"
    assert [row.state for row in store.read(lambda r: r.approvals.all())] == [ApprovalState.APPROVED]
    assert store.read(lambda r: r.ek_roots.all()) == [rows.ek_root()]
    assert store.read(lambda r: r.eks.all()) == [rows.listed_ek(denied=True)]
    assert store.read(lambda r: r.tpm_keys.of_ek("sha256:01")) == [TpmKey("000b", "sha256:01", True)]
    assert store.read(lambda r: r.challenges.get(rows.challenge().id)) == rows.challenge(answered=AT)


@clause
def work_that_raises_leaves_nothing_behind(store: Store) -> None:
    changed(store, lambda r: r.tokens.put(rows.token(used=1)))

    def work(r: Records) -> None:
        r.tokens.put(rows.token(used=2))
        r.nodes.put(rows.node())
        r.audit.add(rows.event())
        raise Spoiled

    try:
        changed(store, work)
    except Spoiled:
        pass
    else:
        raise AssertionError("what the work raised did not reach its caller")
    assert [token.used for token in store.read(lambda r: r.tokens.all())] == [1]
    assert not store.read(lambda r: [*r.nodes.all(), *r.audit.latest(5)])


@clause
def one_work_that_raises_does_not_take_its_neighbours_along(store: Store) -> None:
    def spoiled(r: Records) -> None:
        r.nodes.put(rows.node("n-spoiled"))
        raise Spoiled

    futures = []
    for number in range(40):
        futures.append(store.change(lambda r, n=number: r.nodes.put(rows.node(f"n-{n:02}"))))  # type: ignore[misc]
        futures.append(store.change(spoiled))
    outcomes = [future.exception(PATIENCE_S) for future in futures]
    assert outcomes[0::2] == [None] * 40
    assert all(isinstance(outcome, Spoiled) for outcome in outcomes[1::2])
    assert [node.id for node in store.read(lambda r: r.nodes.all())] == [f"n-{n:02}" for n in range(40)]


@clause
def a_work_sees_its_own_changes(store: Store) -> None:
    def work(r: Records) -> int:
        r.tokens.put(rows.token(used=1))
        found = r.tokens.get(rows.token().id)
        return found.used if found else 0

    assert changed(store, work) == 1


@clause
def what_is_answered_can_be_read(store: Store) -> None:
    for number in range(20):
        changed(store, lambda r, n=number: r.nodes.put(rows.node(f"n-{n}")))  # type: ignore[misc]
        assert store.read(lambda r, n=number: r.nodes.get(rows.node(f"n-{n}").id)) is not None  # type: ignore[misc]


@clause
def no_use_of_a_token_is_lost_between_threads(store: Store) -> None:
    changed(store, lambda r: r.tokens.put(rows.token(uses=1000)))
    # Everybody's first read lies before anybody's write, unless the store has them take turns.
    together = threading.Barrier(8)

    def use(r: Records) -> None:
        token = r.tokens.get(rows.token().id)
        assert token is not None
        r.tokens.put(replace(token, used=token.used + 1))

    def many() -> None:
        together.wait(PATIENCE_S)
        for _ in range(10):
            changed(store, use)

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [token.used for token in store.read(lambda r: r.tokens.all())] == [80]


@clause
def works_are_done_in_the_order_they_came(store: Store) -> None:
    futures = [
        store.change(lambda r, n=number: r.audit.add(rows.event(actor=str(n))))  # type: ignore[misc]
        for number in range(50)
    ]
    places = [future.result(PATIENCE_S) for future in futures]
    assert places == sorted(set(places))
    logged = store.read(lambda r: r.audit.latest(50))
    assert [row.event.actor for row in logged] == [str(n) for n in range(50)]


@clause
def lists_have_their_order(store: Store) -> None:
    later = AT + HOUR

    def work(r: Records) -> None:
        r.tokens.put(rows.token("bbbbbbbbbb", created=later))
        r.tokens.put(rows.token("cccccccccc"))
        for name in ("n-b", "n-a", "n-c"):
            r.nodes.put(rows.node(name))
        r.certificates.put(rows.certificate("02" * 16, issued=later))
        r.certificates.put(rows.certificate("03" * 16))
        r.approvals.put(rows.approval("a-aaaaaaaaaa", asked=later))
        r.approvals.put(rows.approval("a-bbbbbbbbbb"))
        for number in (2, 1, 3):
            r.refusals.add(rows.refusal(number))
            r.ek_roots.put(rows.ek_root(number, fingerprint=f"sha256:{number:064x}"))
            r.eks.put(rows.listed_ek(number))
        r.ek_roots.put(rows.ek_root(4, fingerprint=f"sha256:{0:064x}", added=later))
        r.eks.put(rows.listed_ek(0, listed=later))

    changed(store, work)
    assert [row.id for row in store.read(lambda r: r.tokens.all())] == ["cccccccccc", "bbbbbbbbbb"]
    assert [row.id for row in store.read(lambda r: r.nodes.all())] == ["n-a", "n-b", "n-c"]
    of_node = store.read(lambda r: r.certificates.of_node(rows.node().id))
    assert [row.serial for row in of_node] == ["03" * 16, "02" * 16]
    newest = store.read(lambda r: r.certificates.newest(rows.node().id))
    assert newest is not None and newest.serial == "02" * 16
    assert [row.id for row in store.read(lambda r: r.approvals.all())] == ["a-bbbbbbbbbb", "a-aaaaaaaaaa"]
    assert store.read(lambda r: r.refusals.latest(2)) == [rows.refusal(3), rows.refusal(2)]
    in_order = [f"sha256:{number:064x}" for number in (1, 2, 3, 0)]
    assert [row.fingerprint for row in store.read(lambda r: r.ek_roots.all())] == in_order
    assert [row.ek for row in store.read(lambda r: r.eks.all())] == in_order


@clause
def refusals_of_one_instant_have_the_order_they_came_in(store: Store) -> None:
    numbers = (7, 2, 9, 4)
    for number in numbers:
        changed(store, lambda r, n=number: r.refusals.add(rows.refusal(n, at=AT)))  # type: ignore[misc]
    latest = store.read(lambda r: r.refusals.latest(10))
    assert [row.id for row in latest] == [rows.refusal(n).id for n in reversed(numbers)]
    changed(store, lambda r: r.refusals.trim(AT, 2))
    assert [row.id for row in store.read(lambda r: r.refusals.latest(10))] == [row.id for row in latest[:2]]


@clause
def machines_without_a_name_are_never_one(store: Store) -> None:
    def work(r: Records) -> None:
        r.nodes.put(rows.node("n-a"))
        r.nodes.put(rows.node("n-b"))
        r.nodes.put(rows.node("n-c", machine="uuid board"))

    changed(store, work)
    assert not store.read(lambda r: r.nodes.of_machine(""))
    assert [row.id for row in store.read(lambda r: r.nodes.of_machine("uuid board"))] == ["n-c"]
    assert not store.read(lambda r: r.nodes.of_machine("uuid"))


@clause
def nodes_without_an_endorsement_key_are_never_one(store: Store) -> None:
    def work(r: Records) -> None:
        r.nodes.put(rows.node("n-c", ek="sha256:01"))
        for name in ("n-a", "n-b"):
            r.nodes.put(rows.node(name))

    changed(store, work)
    assert not store.read(lambda r: r.nodes.of_ek(""))
    assert [row.id for row in store.read(lambda r: r.nodes.of_ek("sha256:01"))] == ["n-c"]
    changed(store, lambda r: r.nodes.remove(rows.node("n-c").id))
    assert not store.read(lambda r: r.nodes.of_ek("sha256:01"))


@clause
def a_root_or_a_row_of_the_allow_list_is_removed_alone(store: Store) -> None:
    def work(r: Records) -> None:
        for number in (1, 2):
            r.ek_roots.put(rows.ek_root(number))
            r.eks.put(rows.listed_ek(number))
        r.nodes.put(rows.node(ek=rows.listed_ek(1).ek))

    changed(store, work)
    changed(store, lambda r: r.ek_roots.remove(rows.ek_root(1).fingerprint))
    changed(store, lambda r: r.eks.remove(rows.listed_ek(1).ek))
    assert store.read(lambda r: r.ek_roots.all()) == [rows.ek_root(2)]
    assert store.read(lambda r: r.eks.all()) == [rows.listed_ek(2)]
    assert len(store.read(lambda r: r.nodes.of_ek(rows.listed_ek(1).ek))) == 1


@clause
def a_certificate_is_found_by_node_and_by_key(store: Store) -> None:
    def work(r: Records) -> None:
        r.certificates.put(rows.certificate("01" * 16, spki_sha256=b"1" * 32))
        r.certificates.put(rows.certificate("02" * 16, spki_sha256=b"2" * 32, node_id="n-other"))

    changed(store, work)
    assert [row.serial for row in store.read(lambda r: r.certificates.of_key(b"2" * 32))] == ["02" * 16]
    assert [row.serial for row in store.read(lambda r: r.certificates.of_node(rows.node("n-other").id))] == ["02" * 16]
    assert not store.read(lambda r: r.certificates.of_key(b"3" * 32))


@clause
def open_certificates_are_those_issued_and_current(store: Store) -> None:
    def work(r: Records) -> None:
        for number, state in enumerate(CertificateState):
            r.certificates.put(rows.certificate(f"{number:032x}", state=state, issued=AT + number * HOUR))
        r.certificates.put(rows.certificate("0b" * 16, node_id="n-other"))

    changed(store, work)
    node_id = rows.node().id
    found = store.read(lambda r: r.certificates.open(node_id))
    assert [row.state for row in found] == [CertificateState.ISSUED, CertificateState.CURRENT]
    current = found[1]
    changed(store, lambda r: r.certificates.put(replace(current, state=CertificateState.RETIRED)))
    assert [row.state for row in store.read(lambda r: r.certificates.open(node_id))] == [CertificateState.ISSUED]


@clause
def renewals_are_told_from_an_instant_on_and_without_joins(store: Store) -> None:
    def work(r: Records) -> None:
        r.certificates.put(rows.certificate("01" * 16, issued=AT + 4 * HOUR))
        for number in (3, 1, 2):
            issued = AT + number * HOUR
            r.certificates.put(rows.certificate(f"{number:032x}", issued=issued, parent="01" * 16))
        r.certificates.put(rows.certificate("0b" * 16, node_id="n-other", issued=AT + 2 * HOUR, parent="01" * 16))

    changed(store, work)
    since = store.read(lambda r: r.certificates.renewals_since(rows.node().id, AT + 2 * HOUR))
    assert since == [AT + 2 * HOUR, AT + 3 * HOUR]


@clause
def a_node_that_is_removed_leaves_its_certificates(store: Store) -> None:
    def work(r: Records) -> None:
        r.nodes.put(rows.node("n-a", machine="uuid board"))
        r.nodes.put(rows.node("n-b"))
        r.certificates.put(rows.certificate(node_id="n-a"))

    changed(store, work)
    changed(store, lambda r: r.nodes.remove(rows.node("n-a").id))
    assert store.read(lambda r: r.nodes.get(rows.node("n-a").id)) is None
    assert not store.read(lambda r: r.nodes.of_machine("uuid board"))
    assert [row.id for row in store.read(lambda r: r.nodes.all())] == ["n-b"]
    assert len(store.read(lambda r: r.certificates.of_node(rows.node("n-a").id))) == 1


@clause
def the_newest_restoration_is_the_last_one_told(store: Store) -> None:
    for at in (AT + HOUR, AT):
        changed(store, lambda r, at=at: r.restorations.add(Restoration(at)))  # type: ignore[misc]
    # The clock may have been set back between them.
    assert store.read(lambda r: r.restorations.newest()) == Restoration(AT)


@clause
def an_answer_is_for_one_credential_and_one_key(store: Store) -> None:
    changed(store, lambda r: r.answers.put(rows.answer("token:a", b"k" * 32)))
    assert store.read(lambda r: r.answers.get("token:a", b"k" * 32)) is not None
    assert store.read(lambda r: r.answers.get("token:b", b"k" * 32)) is None
    assert store.read(lambda r: r.answers.get("token:a", b"j" * 32)) is None


@clause
def answers_end_with_their_leaf(store: Store) -> None:
    def work(r: Records) -> None:
        r.answers.put(rows.answer("token:a", not_after=AT))
        r.answers.put(rows.answer("token:b", not_after=AT + timedelta(microseconds=1)))

    changed(store, work)
    assert changed(store, lambda r: r.answers.remove_expired(AT)) == 1
    assert store.read(lambda r: r.answers.get("token:a", b"k" * 32)) is None
    assert store.read(lambda r: r.answers.get("token:b", b"k" * 32)) is not None


@clause
def a_question_is_found_by_credential_and_key(store: Store) -> None:
    def work(r: Records) -> None:
        r.approvals.put(rows.approval("a-1", credential="token:a", spki_sha256=b"1" * 32))
        r.approvals.put(rows.approval("a-2", credential="token:a", spki_sha256=b"2" * 32, asked=AT + HOUR))
        r.approvals.put(rows.approval("a-3", credential="token:b", spki_sha256=b"1" * 32))

    changed(store, work)
    found = store.read(lambda r: r.approvals.asked("token:a", b"1" * 32))
    assert found is not None and found.id == "a-1"
    assert store.read(lambda r: r.approvals.asked("token:b", b"2" * 32)) is None
    assert [row.id for row in store.read(lambda r: r.approvals.of_credential("token:a"))] == ["a-1", "a-2"]


@clause
def refusals_are_counted_from_an_instant_on(store: Store) -> None:
    def work(r: Records) -> None:
        for number, source in ((1, "192.0.2.1"), (2, "192.0.2.2"), (3, "192.0.2.1")):
            r.refusals.add(rows.refusal(number, source=source))

    changed(store, work)
    since = rows.refusal(2).at
    assert store.read(lambda r: r.refusals.count_since(since)) == 2
    assert store.read(lambda r: r.refusals.count_since(since, "192.0.2.1")) == 1
    assert store.read(lambda r: r.refusals.count_since(AT, "192.0.2.9")) == 0


@clause
def the_oldest_refusals_go(store: Store) -> None:
    def work(r: Records) -> None:
        for number in range(1, 11):
            r.refusals.add(rows.refusal(number))

    changed(store, work)
    assert changed(store, lambda r: r.refusals.trim(rows.refusal(3).at, 100)) == 2
    assert changed(store, lambda r: r.refusals.trim(AT, 5)) == 3
    assert changed(store, lambda r: r.refusals.trim(AT, 5)) == 0
    left = store.read(lambda r: r.refusals.latest(100))
    assert left == [rows.refusal(number) for number in (10, 9, 8, 7, 6)]


@clause
def keys_of_tpms_are_found_by_either_key(store: Store) -> None:
    def work(r: Records) -> None:
        for ak, ek in (("b", "y"), ("b", "x"), ("a", "x"), ("c", "z")):
            r.tpm_keys.put(TpmKey(ak, ek, ak == "b"))

    changed(store, work)
    assert store.read(lambda r: r.tpm_keys.of_ak("b")) == [TpmKey("b", "x", True), TpmKey("b", "y", True)]
    assert store.read(lambda r: r.tpm_keys.of_ek("x")) == [TpmKey("a", "x", False), TpmKey("b", "x", True)]


@clause
def challenges_are_counted_found_and_removed_each_by_itself(store: Store) -> None:
    def work(r: Records) -> None:
        for number, source in ((1, "192.0.2.1"), (2, "192.0.2.2"), (3, "192.0.2.1")):
            ends = AT + number * HOUR
            r.challenges.put(rows.challenge(number, source=source, csr_sha256=source.encode(), not_after=ends))
        r.challenges.put(rows.challenge(4, source="192.0.2.3", issued=AT - HOUR, csr_sha256=b"192.0.2.1"))

    changed(store, work)
    assert [store.read(lambda r, s=s: r.challenges.count(s)) for s in (None, "192.0.2.1", "192.0.2.9")] == [4, 2, 0]  # type: ignore[misc]
    mine = store.read(lambda r: r.challenges.of_request(b"192.0.2.1"))
    assert [row.id for row in mine] == [rows.challenge(number).id for number in (4, 1, 3)]
    assert changed(store, lambda r: r.challenges.remove_ended(AT + HOUR)) == 2
    assert changed(store, lambda r: r.challenges.remove_ended(AT + HOUR)) == 0
    changed(store, lambda r: r.challenges.remove(rows.challenge(2).id))
    assert [row.id for row in store.read(lambda r: r.challenges.of_request(b"192.0.2.1"))] == [rows.challenge(3).id]
    assert store.read(lambda r: r.challenges.count()) == 1


@clause
def the_log_is_read_from_its_end_and_onward_from_a_place(store: Store) -> None:
    first = rows.event()
    places = [changed(store, lambda r: r.audit.add(first)) for _ in range(3)]
    places += [changed(store, lambda r, n=n: r.audit.add(rows.event(actor=str(n)))) for n in range(3)]  # type: ignore[misc]
    assert places == sorted(set(places))
    latest = store.read(lambda r: r.audit.latest(2))
    assert [(row.seq, row.event.actor) for row in latest] == [(places[4], "1"), (places[5], "2")]
    assert [row.seq for row in store.read(lambda r: r.audit.after(places[0], 3))] == places[1:4]
    assert not store.read(lambda r: r.audit.after(places[-1], 3))
    assert store.read(lambda r: r.audit.latest(6))[0].event == first


@clause
def a_bundles_version_only_rises(store: Store) -> None:
    changed(store, lambda r: r.bundles.add(SignedBundle(2, b"two")))
    for version in (1, 2):
        future = store.change(lambda r, v=version: r.bundles.add(SignedBundle(v, b"other")))  # type: ignore[misc]
        assert isinstance(future.exception(PATIENCE_S), ValueError)
    changed(store, lambda r: r.bundles.add(SignedBundle(3, b"three")))
    assert store.read(lambda r: r.bundles.newest()) == SignedBundle(3, b"three")


@clause
def a_closed_store_says_so(store: Store) -> None:
    begun = store.change(lambda r: r.nodes.put(rows.node()))
    store.close()
    assert begun.exception(PATIENCE_S) is None
    assert isinstance(store.change(lambda r: None).exception(PATIENCE_S), StoreUnavailable)
    try:
        store.read(lambda r: None)
    except StoreUnavailable:
        pass
    else:
        raise AssertionError("a closed store was read")
    store.close()
