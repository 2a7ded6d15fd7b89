"""What an operator is told after a change that reaches further than it looks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bcd.controlplane.cli import show_changes, show_eks
from bcd.controlplane.domain.admin import DeletedView, RevokedView
from bcd.controlplane.domain.admin_eks import EkRootView, EkView, OtherEkView

AT = datetime(2026, 9, 26, 11, 42, tzinfo=UTC)
EK = f"sha256:{'ab' * 32}"


def row(state: str, joined_as: str | None, *others: OtherEkView) -> EkView:
    return EkView(EK, state, "lab", "node", None, joined_as, "", AT, others)


def test_denying_the_key_of_a_node_says_what_that_does_not_end(capsys: pytest.CaptureFixture[str]) -> None:
    show_eks.denied(row("denied", None))
    assert capsys.readouterr().out == f"{EK} is denied\n"
    show_eks.denied(row("denied", "n-1"))
    assert capsys.readouterr().out == (
        f"{EK} is denied\nit is node n-1, which renews no more; bcd-controlplane nodes revoke n-1 ends it\n"
    )


def test_denying_a_key_says_which_others_go_with_it_and_which_stay(capsys: pytest.CaptureFixture[str]) -> None:
    show_eks.denied(
        row(
            "denied",
            "n-1",
            OtherEkView("sha256:11", "same", "allowed", "n-2"),
            OtherEkView("sha256:22", "showed", "", None),
            OtherEkView("sha256:33", "shown", "", None),
            OtherEkView("sha256:44", "shown", "denied", None),
        )
    )
    assert capsys.readouterr().out.splitlines()[2:] == [
        "sha256:11 is of the same TPM, and kept out with it",
        "it is node n-2, which renews no more; bcd-controlplane nodes revoke n-2 ends it",
        "sha256:22 is of the same TPM, and kept out with it",
        "its TPM showed sha256:33 too, which proves nothing; bcd-controlplane ek deny sha256:33 keeps that out as well",
    ]


def test_allowing_a_key_says_what_still_keeps_it_out(capsys: pytest.CaptureFixture[str]) -> None:
    others = [
        OtherEkView("sha256:11", "same", "denied", None),
        OtherEkView("sha256:22", "shown", "denied", None),
        OtherEkView("sha256:33", "showed", "denied", None),
        OtherEkView("sha256:44", "same", "", None),
    ]
    show_eks.allowed(row("allowed", None, *others))
    assert capsys.readouterr().out.splitlines() == [
        f"{EK} may join site lab, role node",
        "not yet: sha256:11 of the same TPM is denied; bcd-controlplane ek allow that one too",
        "not yet: sha256:22 of the same TPM is denied; bcd-controlplane ek allow that one too",
    ]


def test_the_list_says_which_allowed_key_another_one_keeps_out(capsys: pytest.CaptureFixture[str]) -> None:
    out, stays = OtherEkView("sha256:11", "same", "denied", None), OtherEkView("sha256:11", "showed", "denied", None)
    show_eks.keys((row("allowed", None, out), row("allowed", None, stays), row("denied", None, out)))
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.removeprefix(EK).split("lab")[0].strip() for line in lines] == ["kept out", "allowed", "denied"]


def test_who_is_revoked_or_deleted_and_may_come_back_by_its_tpm_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = f"its TPM may join again; bcd-controlplane ek deny {EK} keeps it out"
    show_changes.revoked_node(RevokedView("n-1", 2, EK))
    show_changes.deleted_node(DeletedView("n-1", EK))
    assert [line for line in capsys.readouterr().out.splitlines() if "TPM" in line] == [told, told]
    show_changes.revoked_node(RevokedView("n-1", 2))
    show_changes.deleted_node(DeletedView("n-1"))
    assert "TPM" not in capsys.readouterr().out


def test_a_list_shows_who_a_key_is_and_what_a_ca_admits(capsys: pytest.CaptureFixture[str]) -> None:
    show_eks.keys((row("allowed", "n-1"),))
    head, line = capsys.readouterr().out.splitlines()
    assert line.split() == [EK, "allowed", "lab", "node", "-", "n-1", "-"]
    assert line.index("n-1") == head.index("JOINED AS")
    show_eks.roots((EkRootView(EK, "CN=Maker", "CN=Maker", None, None, "lab", "ramdisk", AT),))
    assert capsys.readouterr().out.splitlines()[1].split() == [EK, "lab", "ramdisk", "-", "CN=Maker"]
