"""What an operator is told after a change that reaches further than it looks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bcd.controlplane.cli import show_eks
from bcd.controlplane.domain.admin_eks import EkRootView, EkView

AT = datetime(2026, 9, 26, 11, 42, tzinfo=UTC)
EK = f"sha256:{'ab' * 32}"


def row(state: str, joined_as: str | None) -> EkView:
    return EkView(EK, state, "lab", "node", None, joined_as, "", AT)


def test_denying_the_key_of_a_node_says_what_that_does_not_end(capsys: pytest.CaptureFixture[str]) -> None:
    show_eks.denied(row("denied", None))
    assert capsys.readouterr().out == f"{EK} is denied\n"
    show_eks.denied(row("denied", "n-1"))
    assert capsys.readouterr().out == (
        f"{EK} is denied\nit is node n-1, which renews no more; bcd-controlplane nodes revoke n-1 ends it\n"
    )


def test_a_list_shows_who_a_key_is_and_what_a_ca_admits(capsys: pytest.CaptureFixture[str]) -> None:
    show_eks.keys((row("allowed", "n-1"),))
    head, line = capsys.readouterr().out.splitlines()
    assert line.split() == [EK, "allowed", "lab", "node", "-", "n-1", "-"]
    assert line.index("n-1") == head.index("JOINED AS")
    show_eks.roots((EkRootView(EK, "CN=Maker", "CN=Maker", None, None, "lab", "ramdisk", AT),))
    assert capsys.readouterr().out.splitlines()[1].split() == [EK, "lab", "ramdisk", "-", "CN=Maker"]
