"""What every store must do with work: all of it or none, in order, seen by what follows; rows whole."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from bcd.controlplane.domain.approvals import ApprovalState
from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.ports.store import Records, Store, StoreUnavailable
from bcd.domain.model.names import NodeId, Role, SiteId
from tests.contract.store.clauses import PATIENCE_S, Clause, Spoiled, changed, gathered
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.rows import AT, HOUR

CLAUSES: list[Clause] = []
clause = gathered(CLAUSES)


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
