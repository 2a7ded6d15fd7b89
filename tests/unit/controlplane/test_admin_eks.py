"""The operator's commands about endorsement keys, in memory."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from bcd.controlplane.domain import admin, admin_eks
from bcd.controlplane.domain.eks import MAX_NOTE
from bcd.controlplane.domain.failures import Failure, NotPermitted, Usage
from bcd.controlplane.domain.messages import Message
from tests.fakes import manufacturer as maker
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.control_plane import MemoryControlPlane

ROOT = maker.root()
ISSUING = ROOT.below(9003, "Maker Issuing CA")
DIGITS = "ab" * 32
EK = f"sha256:{DIGITS}"


def fingerprint(der: bytes) -> str:
    return f"sha256:{sha256(der).hexdigest()}"


def told(plane: MemoryControlPlane) -> list[tuple[str, dict[str, Any]]]:
    """The events of these commands."""
    return [event for event in plane.audit() if event[0].startswith("ek")]


def refused(plane: MemoryControlPlane, command: admin.Command) -> Failure:
    before = plane.snapshot()
    with pytest.raises(Failure) as caught:
        plane.admin(command)
    after = plane.snapshot()
    assert vars(after.eks) == vars(before.eks)
    assert vars(after.ek_roots) == vars(before.ek_roots)
    assert vars(after.audit) == vars(before.audit)
    return caught.value


def imported(plane: MemoryControlPlane, *ders: bytes) -> Any:
    return plane.admin(admin_eks.ImportEkRoots(tuple(der.hex() for der in ders)))


def roots(plane: MemoryControlPlane) -> Any:
    return plane.admin(admin_eks.ListEkRoots())


def allow(plane: MemoryControlPlane, ek: str = EK, site: str = "lab", node: str | None = None, note: str = "") -> Any:
    return plane.admin(admin_eks.AllowEk(ek, site, "node", node, note))


def keys(plane: MemoryControlPlane) -> Any:
    return plane.admin(admin_eks.ListEks())


# ---- manufacturers' CAs


def test_cas_are_imported_once(plane: MemoryControlPlane) -> None:
    assert imported(plane, ROOT.der, ISSUING.der, ROOT.der) == admin_eks.EkRootsImported(2, 0)
    assert imported(plane, ISSUING.der, ISSUING.der) == admin_eks.EkRootsImported(0, 1)
    found = {row.fingerprint: row for row in roots(plane)}
    assert set(found) == {fingerprint(ROOT.der), fingerprint(ISSUING.der)}
    row = found[fingerprint(ISSUING.der)]
    assert (row.subject, row.issuer) == (
        "CN=Maker Issuing CA, O=Maker Ltd, C=XX",
        "CN=Maker Root CA, O=Maker Ltd, C=XX",
    )
    assert (row.admits_site, row.admits_role) == (None, None)
    assert f"{row.not_after:%Y-%m-%d}" == "2030-01-01"
    assert told(plane) == [
        ("ek-root.added", {"root": fingerprint(ca.der), "subject": f"CN={name}, O=Maker Ltd, C=XX"})
        for ca, name in ((ROOT, "Maker Root CA"), (ISSUING, "Maker Issuing CA"))
    ]


def test_a_ca_is_kept_without_what_stood_around_it(plane: MemoryControlPlane) -> None:
    imported(plane, maker.padded(ROOT.der))
    assert [row.fingerprint for row in roots(plane)] == [fingerprint(ROOT.der)]


def test_a_ca_whose_name_is_out_of_order_is_imported(plane: MemoryControlPlane) -> None:
    imported(plane, maker.root(9009, subject=maker.name("Odd CA", one_set=True, sorted_=False)).der)
    assert "CN=Odd CA" in roots(plane)[0].subject


@pytest.mark.parametrize(
    "wrong",
    ["", "zz", "3000", ROOT.ek(maker.rsa_spki(maker.modulus(1))).hex()],
    ids=["empty", "no hex", "no certificate", "no CA"],
)
def test_what_is_no_ca_is_not_imported_nor_what_came_with_it(plane: MemoryControlPlane, wrong: str) -> None:
    assert refused(plane, admin_eks.ImportEkRoots((ROOT.der.hex(), wrong))).message is Message.USAGE


def test_a_ca_admits_until_that_is_withdrawn(plane: MemoryControlPlane) -> None:
    imported(plane, ROOT.der)
    openssls = fingerprint(ROOT.der).removeprefix("sha256:").upper()
    view: Any = plane.admin(admin_eks.AdmitEkRoot(openssls, "lab", "ramdisk"))
    assert (view.admits_site, view.admits_role) == ("lab", "ramdisk")
    plane.admin(admin_eks.AdmitEkRoot(openssls, "lab", "ramdisk"))
    assert [row.admits_site for row in roots(plane)] == ["lab"]
    # Importing it again takes nothing back.
    imported(plane, ROOT.der)
    assert [row.admits_site for row in roots(plane)] == ["lab"]
    plane.admin(admin_eks.AdmitEkRoot(openssls, "barn", "node"))
    assert [(row.admits_site, row.admits_role) for row in roots(plane)] == [("barn", "node")]
    plane.admin(admin_eks.WithdrawEkRoot(openssls))
    plane.admin(admin_eks.WithdrawEkRoot(openssls))
    assert [(row.admits_site, row.admits_role) for row in roots(plane)] == [(None, None)]
    assert [(kind, detail.get("site")) for kind, detail in told(plane)] == [
        ("ek-root.added", None),
        ("ek-root.admits", "lab"),
        ("ek-root.admits", "barn"),
        ("ek-root.withdrawn", "barn"),
    ]


def test_a_ca_that_is_removed_is_gone(plane: MemoryControlPlane) -> None:
    imported(plane, ROOT.der, ISSUING.der)
    view: Any = plane.admin(admin_eks.RemoveEkRoot(fingerprint(ROOT.der)))
    assert view.subject == "CN=Maker Root CA, O=Maker Ltd, C=XX"
    assert [row.fingerprint for row in roots(plane)] == [fingerprint(ISSUING.der)]
    assert told(plane)[-1] == ("ek-root.removed", {"root": fingerprint(ROOT.der), "subject": view.subject})


@pytest.mark.parametrize(
    "command",
    [
        admin_eks.AdmitEkRoot(EK, "lab", "node"),
        admin_eks.WithdrawEkRoot(EK),
        admin_eks.RemoveEkRoot(EK),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_ca_that_is_not_there_is_told(plane: MemoryControlPlane, command: admin.Command) -> None:
    failure = refused(plane, command)
    assert isinstance(failure, Usage)
    assert str(failure) == f"no manufacturer CA {EK}: see bcd-controlplane ek-roots list"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (admin_eks.AdmitEkRoot("12", "lab", "node"), "ek-roots admit: want sha256: and 64 hexadecimal digits"),
        (admin_eks.AdmitEkRoot(EK, "a/b", "node"), "ek-roots admit: "),
        (admin_eks.AdmitEkRoot(EK, "lab", "admin"), "ek-roots admit: "),
        (admin_eks.WithdrawEkRoot(""), "ek-roots withdraw: want"),
        (admin_eks.RemoveEkRoot("sha1:00"), "ek-roots remove: want"),
        (admin_eks.AllowEk(DIGITS + "00", "lab", "node", None, ""), "ek allow: want"),
        (admin_eks.AllowEk(EK, "", "node", None, ""), "ek allow: "),
        (admin_eks.AllowEk(EK, "lab", "", None, ""), "ek allow: "),
        (admin_eks.AllowEk(EK, "lab", "node", "..", ""), "ek allow: "),
        (admin_eks.AllowEk(EK, "lab", "node", None, "x" * 201), "ek allow: a note is"),
        (admin_eks.AllowEk(EK, "lab", "node", None, "a\nb"), "ek allow: a note is"),
        (admin_eks.DenyEk("x", None), "ek deny: want"),
        (admin_eks.DenyEk(EK, "a\x1bb"), "ek deny: a note is"),
        (admin_eks.RemoveEk("x"), "ek remove: want"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_not_done(plane: MemoryControlPlane, command: admin.Command, what: str) -> None:
    failure = refused(plane, command)
    assert isinstance(failure, Usage)
    assert str(failure).startswith(f"bcd-controlplane {what}")


# ---- the allow-list


def test_a_key_is_allowed_as_identify_shows_it_or_as_others_write_it(plane: MemoryControlPlane) -> None:
    for text in (EK, DIGITS, DIGITS.upper(), ":".join(["AB"] * 32), f" {EK} "):
        view = allow(plane, text, note="räck 7 ")
        assert view.public_key_sha256 == EK
    (row,) = keys(plane)
    assert (row.state, row.site, row.role, row.node_id, row.joined_as) == ("allowed", "lab", "node", None, None)
    assert row.note == "räck 7"
    assert told(plane) == [("ek.allowed", {"ek": EK, "site": "lab", "role": "node", "node": "", "note": "räck 7"})]


def test_a_note_is_as_long_as_it_may_be(plane: MemoryControlPlane) -> None:
    assert allow(plane, note="x" * MAX_NOTE).note == "x" * MAX_NOTE


def test_allowing_again_says_where_anew(plane: MemoryControlPlane) -> None:
    allow(plane)
    first = keys(plane)[0].listed
    plane.clock.pass_(hours=1)
    allow(plane, site="barn", node="rack-7")
    (row,) = keys(plane)
    assert (row.site, row.node_id, row.listed) == ("barn", "rack-7", first)
    assert [detail["site"] for _, detail in told(plane)] == ["lab", "barn"]


def test_a_denied_key_keeps_its_row_until_it_is_allowed_again(plane: MemoryControlPlane) -> None:
    allow(plane, node="rack-7", note="rack 7")
    denied: Any = plane.admin(admin_eks.DenyEk(DIGITS, None))
    assert (denied.state, denied.site, denied.node_id, denied.note) == ("denied", "lab", "rack-7", "rack 7")
    plane.admin(admin_eks.DenyEk(EK, None))
    plane.admin(admin_eks.DenyEk(EK, "stolen"))
    assert keys(plane)[0].note == "stolen"
    assert allow(plane).state == "allowed"
    assert [kind for kind, _ in told(plane)] == ["ek.allowed", "ek.denied", "ek.denied", "ek.allowed"]


def test_a_key_may_be_denied_before_anybody_saw_it(plane: MemoryControlPlane) -> None:
    view: Any = plane.admin(admin_eks.DenyEk(EK, "stolen"))
    assert (view.state, view.site, view.note) == ("denied", None, "stolen")
    assert told(plane) == [("ek.denied", {"ek": EK, "note": "stolen"})]


def test_a_row_that_is_removed_is_gone(plane: MemoryControlPlane) -> None:
    allow(plane)
    assert plane.admin(admin_eks.RemoveEk(DIGITS)) == admin_eks.EkRemovedView(EK)
    assert keys(plane) == ()
    assert told(plane)[-1] == ("ek.removed", {"ek": EK})
    failure = refused(plane, admin_eks.RemoveEk(DIGITS))
    assert str(failure) == f"no endorsement key {EK}: see bcd-controlplane ek list"


def test_the_list_shows_which_node_a_key_is(plane: MemoryControlPlane) -> None:
    plane.store.change(lambda r: r.nodes.put(rows.node("n-1", ek=EK))).result()
    assert allow(plane).joined_as == "n-1"
    assert [row.joined_as for row in keys(plane)] == ["n-1"]


def test_a_key_is_not_listed_for_a_node_of_another_site(plane: MemoryControlPlane) -> None:
    plane.store.change(lambda r: r.nodes.put(rows.node("n-1"))).result()
    failure = refused(plane, admin_eks.AllowEk(EK, "barn", "node", "n-1", ""))
    assert isinstance(failure, NotPermitted) and failure.message is Message.NODE_OF_ANOTHER_SITE
    assert allow(plane, node="n-1").node_id == "n-1"


def waits(plane: MemoryControlPlane, id_: str = "a-1", ek: str = EK) -> None:
    """A machine with this key has asked, and nobody listed it."""
    question = rows.approval(id_, credential=f"ek:{ek}", token_id="", site="", asked=plane.clock.now())
    plane.store.change(lambda r: r.approvals.put(question)).result()


def answers(plane: MemoryControlPlane) -> dict[str, tuple[str, str]]:
    return {view.id: (view.state, view.site) for view in plane.approvals()}


def test_allowing_a_key_answers_the_machine_that_waits(plane: MemoryControlPlane) -> None:
    waits(plane)
    waits(plane, "a-2", f"sha256:{'cd' * 32}")
    allow(plane)
    assert answers(plane) == {"a-1": ("approved", "lab"), "a-2": ("pending", "")}
    assert plane.audit()[-1] == ("approval.given", {"approval": "a-1", "ek": EK, "source": "192.0.2.1"})
    plane.admin(admin_eks.ImportEks("eks.csv", (row(2, "cd" * 32),)))
    assert answers(plane)["a-2"] == ("approved", "lab")


def test_a_question_that_lapsed_or_was_denied_stays_what_it_is(plane: MemoryControlPlane) -> None:
    waits(plane)
    waits(plane, "a-2")
    plane.deny("a-2")
    plane.clock.pass_(days=8)
    allow(plane)
    assert {id_: state for id_, (state, _) in answers(plane).items()} == {"a-1": "lapsed", "a-2": "denied"}


def test_denying_a_key_answers_the_machine_that_waits(plane: MemoryControlPlane) -> None:
    """Whoever finds the question later does not let the key in again unawares."""
    waits(plane)
    waits(plane, "a-2", f"sha256:{'cd' * 32}")
    plane.admin(admin_eks.DenyEk(EK, "stolen"))
    assert answers(plane) == {"a-1": ("denied", ""), "a-2": ("pending", "")}
    assert plane.audit()[-1] == ("approval.denied", {"approval": "a-1", "ek": EK, "source": "192.0.2.1"})
    with pytest.raises(NotPermitted) as caught:
        plane.admin(admin.DecideApproval("a-1", True, "lab"))
    assert caught.value.message is Message.ALREADY_DECIDED
    assert keys(plane)[0].state == "denied"


def test_an_approval_is_given_once(plane: MemoryControlPlane) -> None:
    waits(plane)
    plane.admin(admin.DecideApproval("a-1", True, "lab"))
    assert [kind for kind, _ in plane.audit() if kind.startswith(("ek", "approval"))] == [
        "ek.allowed",
        "approval.given",
    ]


# ---- a file of them


def row(line: int, ek: str, site: str = "lab", node: str | None = None, note: str = "") -> admin_eks.EkRow:
    return admin_eks.EkRow(line, ek, site, "node", node, note)


def test_a_file_is_imported_and_says_what_changed(plane: MemoryControlPlane) -> None:
    others = [f"sha256:{number:064x}" for number in range(3)]
    allow(plane)
    allow(plane, others[0])
    given = (row(2, EK), row(3, others[0], "barn"), row(4, others[1]), row(5, others[2], node="n-5", note="five"))
    assert plane.admin(admin_eks.ImportEks("eks.csv", given)) == admin_eks.EksImported(2, 1, 1)
    assert {view.public_key_sha256: (view.site, view.node_id, view.note) for view in keys(plane)} == {
        EK: ("lab", None, ""),
        others[0]: ("barn", None, ""),
        others[1]: ("lab", None, ""),
        others[2]: ("lab", "n-5", "five"),
    }
    assert len(told(plane)) == 5
    assert plane.admin(admin_eks.ImportEks("eks.csv", given)) == admin_eks.EksImported(0, 0, 4)
    assert len(told(plane)) == 5


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (row(9, "x"), "want sha256: and 64 hexadecimal digits"),
        (row(9, EK, "a/b"), "not a site id: 'a/b'"),
        (row(9, EK, "barn", "n-1"), "node n-1 is of site lab, not barn: give its site with --site lab"),
        (row(9, f"sha256:{'0' * 64}"), f"sha256:{'0' * 64} is denied"),
        (row(9, EK, note="x" * 201), "a note is at most 200 printable characters"),
    ],
    ids=["no digest", "no site", "a node of another site", "denied", "a long note"],
)
def test_a_file_with_a_wrong_line_changes_nothing(plane: MemoryControlPlane, wrong: admin_eks.EkRow, why: str) -> None:
    plane.store.change(lambda r: r.nodes.put(rows.node("n-1"))).result()
    plane.admin(admin_eks.DenyEk("0" * 64, None))
    failure = refused(plane, admin_eks.ImportEks("eks.csv", (row(2, "cd" * 32), wrong)))
    assert failure.message is Message.EK_FILE_LINE
    assert str(failure).startswith("eks.csv, line 9: ")
    assert why in str(failure) or "site" in why
