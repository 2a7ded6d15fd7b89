"""Whom an endorsement key lets in: those the operator named; any other genuine TPM waits."""

from __future__ import annotations

from hashlib import sha256
from itertools import product

import pytest

from bcd.controlplane.domain.ek_admission import (
    Admitted,
    Denied,
    OfferedEk,
    Pending,
    Verdict,
    judge_ek,
    judge_offered,
    roots_in_question,
    vouch,
)
from bcd.controlplane.domain.ek_chain import MAX_SIGNATURES
from bcd.controlplane.domain.eks import EkRoot, ListedEk
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import WAY_BACK, Reason
from bcd.domain.model.names import NodeId, Role, SiteId
from tests.fakes import manufacturer as maker
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.memory_store import MemoryStore
from tests.fakes.manufacturer import Ca

LAB, BARN = SiteId("lab"), SiteId("barn")
ROOT = maker.root()
ISSUING = ROOT.below(9003, "Maker Issuing CA")
NO_CA = maker.basic_constraints(False)
RSA, ECC = maker.rsa_spki(maker.modulus(1)), maker.spki_of(maker.ec_key(8001))


def offered(spki: bytes = RSA, certificate: bytes | None = None, *chain: bytes) -> OfferedEk:
    return OfferedEk(spki, ISSUING.ek(spki) if certificate is None else certificate, chain)


def root(ca: Ca, site: SiteId | None = None, role: Role | None = None) -> EkRoot:
    return rows.ek_root(der=ca.der, fingerprint=f"sha256:{sha256(ca.der).hexdigest()}", site=site, role=role)


def listed(one: OfferedEk, **changes: object) -> ListedEk:
    return rows.listed_ek(ek=one.ek, **changes)


ONE, BARE = offered(), offered(certificate=b"")
ROOTS = [root(ROOT), root(ISSUING)]


def reason(verdict: Verdict) -> Reason:
    assert isinstance(verdict, Denied), verdict
    return verdict.reason


def test_a_genuine_tpm_nobody_spoke_of_waits() -> None:
    assert judge_ek([ONE], ROOTS, [], []) == Pending(ONE, (ROOTS[1].fingerprint, ROOTS[0].fingerprint))


def test_a_listed_key_is_admitted_with_the_rows_site_and_role() -> None:
    row = listed(ONE, site=BARN, role=Role.SITE)
    assert judge_ek([ONE], [], [row], []) == Admitted(ONE, BARN, Role.SITE, None, None)
    row = listed(ONE, node_id=NodeId("rack-7"))
    assert judge_ek([ONE], [], [row], []) == Admitted(ONE, LAB, Role.NODE, NodeId("rack-7"), None)


@pytest.mark.parametrize(
    "certificate",
    [b"", b"\xff" * 1600, ISSUING.ek(ECC), maker.root(9100, "Stranger").ek(RSA), ROOT.der],
    ids=["none", "padding", "of another key", "of a stranger", "a CA's"],
)
def test_a_key_that_is_known_needs_no_certificate(certificate: bytes) -> None:
    one = offered(certificate=certificate)
    assert judge_ek([one], ROOTS, [listed(one)], []) == Admitted(one, LAB, Role.NODE, None, None)
    node = rows.node("n-1", ek=one.ek, site=BARN)
    assert judge_ek([one], ROOTS, [], [node]) == Admitted(one, BARN, Role.SITE, node.id, None)


def test_a_key_that_owns_a_node_is_that_node() -> None:
    node = rows.node("n-1", ek=ONE.ek)
    assert judge_ek([ONE], [], [], [node]) == Admitted(ONE, LAB, Role.SITE, node.id, None)
    assert judge_ek([ONE], [root(ROOT, BARN, Role.NODE)], [], [node]) == Admitted(ONE, LAB, Role.SITE, node.id, None)
    row = listed(ONE, site=BARN)
    assert judge_ek([ONE], [], [row], [node]) == Admitted(ONE, BARN, Role.NODE, node.id, None)
    row = listed(ONE, node_id=node.id)
    assert judge_ek([ONE], [], [row], [node]) == Admitted(ONE, LAB, Role.NODE, node.id, None)


def test_a_key_listed_for_one_node_that_owns_another_is_refused() -> None:
    verdict = judge_ek([ONE], ROOTS, [listed(ONE, node_id=NodeId("n-2"))], [rows.node("n-1", ek=ONE.ek)])
    assert verdict == Denied(Reason.EK_NODE_MISMATCH, "listed for n-2, and it is n-1")


def test_a_denied_key_is_refused_whatever_else_speaks_for_it() -> None:
    denied = listed(ONE, denied=True)
    node = rows.node("n-1", ek=ONE.ek)
    admitting = [root(ROOT, LAB, Role.NODE), root(ISSUING)]
    for nodes, roots in product(([], [node]), ([], admitting)):
        assert judge_ek([ONE], roots, [denied], nodes) == Denied(Reason.EK_DENIED, ONE.ek)
    bare_row = listed(ONE, denied=True, site=None)
    assert judge_ek([ONE], admitting, [bare_row], [node]) == Denied(Reason.EK_DENIED, ONE.ek)


def test_a_tpm_with_a_denied_key_does_not_get_in_by_its_other_key() -> None:
    other = offered(ECC)
    for both in ([ONE, other], [other, ONE]):
        verdict = judge_ek(both, [root(ISSUING, LAB, Role.NODE)], [listed(ONE, denied=True), listed(other)], [])
        assert verdict == Denied(Reason.EK_DENIED, ONE.ek)


def test_an_admitting_root_admits_what_it_vouches_for() -> None:
    roots = [root(ROOT), root(ISSUING, BARN, Role.RAMDISK)]
    assert judge_ek([ONE], roots, [], []) == Admitted(ONE, BARN, Role.RAMDISK, None, roots[1].fingerprint)
    roots = [root(ROOT, LAB, Role.NODE), root(ISSUING)]
    assert judge_ek([ONE], roots, [], []) == Admitted(ONE, LAB, Role.NODE, None, roots[0].fingerprint)


def test_of_two_admitting_roots_the_nearer_one_says_where() -> None:
    roots = [root(ROOT, LAB, Role.NODE), root(ISSUING, BARN, Role.SITE)]
    assert judge_ek([ONE], roots, [], []) == Admitted(ONE, BARN, Role.SITE, None, roots[1].fingerprint)


def test_an_admitting_root_admits_nobody_elses() -> None:
    stranger = maker.root(9100, "Stranger")
    roots = [root(stranger, LAB, Role.NODE), root(ISSUING)]
    assert judge_ek([ONE], roots, [], []) == Pending(ONE, (roots[1].fingerprint,))
    assert reason(judge_ek([BARE], [root(ISSUING, LAB, Role.NODE)], [], [])) is Reason.EK_CERTIFICATE_MISSING


def test_a_certificate_is_of_the_key_that_is_offered() -> None:
    swapped = offered(RSA, ISSUING.ek(ECC))
    verdict = judge_ek([swapped], [root(ISSUING, LAB, Role.NODE)], [], [])
    assert reason(verdict) is Reason.EK_CERTIFICATE_MISMATCH
    assert isinstance(verdict, Denied) and swapped.ek in verdict.detail and offered(ECC).ek in verdict.detail


def test_a_certificate_as_chips_hold_it_counts() -> None:
    odd = ISSUING.ek(maker.rsa_spki(maker.modulus(1), maker.RSAES_OAEP, b""), serial=b"\x00\x00\xff")
    one = offered(RSA, maker.padded(maker.with_tcg_header(odd)), maker.padded(ISSUING.der))
    assert judge_ek([one], [root(ROOT)], [], []) == Pending(one, (root(ROOT).fingerprint,))


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (b"", Reason.EK_CERTIFICATE_MISSING),
        (b"\xff" * 1600, Reason.EK_CERTIFICATE_MALFORMED),
        (ISSUING.ek(ECC), Reason.EK_CERTIFICATE_MISMATCH),
        (ISSUING.ek(RSA, extensions=()), Reason.EK_CERTIFICATE_CA),
        (ISSUING.ek(RSA, extensions=(NO_CA, maker.purposes("1.2.3"))), Reason.EK_CERTIFICATE_PURPOSE),
        (ISSUING.ek(RSA, extensions=(NO_CA, maker.extension("1.2.3", b""))), Reason.EK_CERTIFICATE_EXTENSION),
        (maker.root(9100, "Stranger").ek(RSA), Reason.EK_CA_UNKNOWN),
        (ISSUING.ek(RSA)[:-1] + b"\x00", Reason.EK_SIGNATURE_WRONG),
        (ISSUING.ek(RSA, algorithm="1.2.3"), Reason.EK_SIGNATURE_UNKNOWN),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "",
)  # fmt: skip
def test_each_thing_wrong_with_a_certificate_is_a_reason_of_its_own(certificate: bytes, why: Reason) -> None:
    assert reason(judge_ek([offered(certificate=certificate)], [root(ISSUING, LAB, Role.NODE)], [], [])) is why


def test_the_reasons_have_a_way_back() -> None:
    assert set(WAY_BACK) == set(Reason)


def test_of_several_keys_the_one_that_is_known_counts() -> None:
    other = offered(ECC, b"")
    assert judge_ek([ONE, other], ROOTS, [listed(other)], []) == Admitted(other, LAB, Role.NODE, None, None)
    node = rows.node("n-1", ek=other.ek)
    both = judge_ek([ONE, other], ROOTS, [listed(ONE, node_id=NodeId("n-2"))], [node])
    assert both == Admitted(other, LAB, Role.SITE, node.id, None)


def test_of_several_keys_the_one_with_a_good_certificate_counts() -> None:
    bad = offered(RSA, b"\xff" * 100)
    good = offered(ECC)
    assert judge_ek([bad, good], ROOTS, [], []) == Pending(good, (ROOTS[1].fingerprint, ROOTS[0].fingerprint))
    assert isinstance(judge_ek([bad, good], [root(ISSUING, LAB, Role.NODE)], [], []), Admitted)


def test_what_is_wrong_with_a_certificate_is_told_before_that_another_key_has_none() -> None:
    keys = [offered(ECC, b""), offered(RSA, b"\xff" * 100)]
    assert reason(judge_ek(keys, ROOTS, [], [])) is Reason.EK_CERTIFICATE_MALFORMED


def test_what_was_asked_before_is_not_asked_again() -> None:
    found = vouch([ONE], ROOTS)
    assert found == ((ROOTS[1].fingerprint, ROOTS[0].fingerprint),)
    # By a certificate that would not do: nothing is verified here.
    spoiled = offered(certificate=b"")
    assert judge_ek([spoiled], ROOTS, [], [], found) == Pending(spoiled, found[0])
    opened = [root(ROOT, LAB, Role.NODE), ROOTS[1]]
    assert judge_ek([spoiled], opened, [], [], found) == Admitted(spoiled, LAB, Role.NODE, None, ROOTS[0].fingerprint)


def test_a_ca_that_was_removed_since_it_was_asked_vouches_no_more() -> None:
    found = vouch([ONE], ROOTS)
    assert judge_ek([ONE], ROOTS[:1], [], [], found) == Pending(ONE, (ROOTS[0].fingerprint,))
    assert judge_ek([ONE], [], [], [], found) == Denied(
        Reason.EK_CA_UNKNOWN, f"{ROOTS[1].fingerprint} was removed a moment ago"
    )


def test_no_ca_is_asked_about_a_key_that_is_known() -> None:
    store = MemoryStore()
    store.change(lambda r: r.ek_roots.put(ROOTS[1])).result()
    other = offered(ECC)
    assert store.read(lambda r: roots_in_question(r, [ONE, other])) == [ROOTS[1]]
    store.change(lambda r: r.nodes.put(rows.node("n-1", ek=other.ek))).result()
    assert store.read(lambda r: roots_in_question(r, [ONE, other])) is None
    assert store.read(lambda r: roots_in_question(r, [ONE])) == [ROOTS[1]]
    store.change(lambda r: r.eks.put(listed(ONE, denied=True))).result()
    assert store.read(lambda r: roots_in_question(r, [ONE])) is None


def test_a_machine_that_offers_many_keys_gets_no_more_signatures_verified_than_one() -> None:
    namesakes = tuple(ROOT.below(9300 + number, "Maker Issuing CA").der for number in range(MAX_SIGNATURES // 8))
    keys = [maker.spki_of(maker.ec_key(8100 + number)) for number in range(8)]
    wrong = [OfferedEk(key, ISSUING.ek(key), namesakes) for key in keys]
    last = offered(ECC, None, ISSUING.der)
    assert vouch([*wrong[1:], last], ROOTS[:1])[-1] == (ROOTS[0].fingerprint,)
    assert isinstance(vouch([*wrong, last], ROOTS[:1])[-1], No)


def test_a_tpm_without_keys_is_refused() -> None:
    assert judge_ek([], ROOTS, [listed(ONE)], []) == Denied(Reason.EK_MISSING)


def test_rows_and_nodes_of_other_keys_are_passed_over() -> None:
    other = offered(ECC)
    verdict = judge_ek([ONE], ROOTS, [listed(other), listed(other, denied=True)], [rows.node(ek=other.ek), rows.node()])
    assert isinstance(verdict, Pending)


def test_the_store_is_asked_for_what_is_needed() -> None:
    store = MemoryStore()
    other = offered(ECC)
    store.change(lambda r: r.ek_roots.put(ROOTS[1])).result()
    store.change(lambda r: r.nodes.put(rows.node("n-9"))).result()
    assert store.read(lambda r: judge_offered(r, [ONE])) == Pending(ONE, (ROOTS[1].fingerprint,))
    store.change(lambda r: r.nodes.put(rows.node("n-1", ek=ONE.ek))).result()
    assert store.read(lambda r: judge_offered(r, [other, ONE])) == Admitted(ONE, LAB, Role.SITE, NodeId("n-1"), None)
    store.change(lambda r: r.eks.put(listed(other, denied=True))).result()
    assert store.read(lambda r: judge_offered(r, [ONE, other])) == Denied(Reason.EK_DENIED, other.ek)
