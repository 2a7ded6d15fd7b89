"""What every store must answer: lists in their order, rows by what they are found by, counts and what goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.ports.store import Records, Store
from tests.contract.store.clauses import PATIENCE_S, Clause, changed, gathered
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.rows import AT, HOUR

CLAUSES: list[Clause] = []
clause = gathered(CLAUSES)


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
