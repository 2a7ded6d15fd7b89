"""What a join leaves behind: nothing that is half decided, audit entries, and rows of refusals that are bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bcd.controlplane.domain.joining import Refused
from bcd.controlplane.ports.signing import CannotIssue
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.domain.model.claims import Claims
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.joins import ask, granted
from tests.fakes.controlplane.machine import Machine


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
