"""What crosses the admin socket, and what --json prints."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_type_hints

import pytest

from bcd.controlplane.adapters.admin import codec
from bcd.controlplane.domain import admin, admin_eks, failures
from bcd.controlplane.domain.failures import Failure
from bcd.controlplane.domain.messages import Message

AT = datetime(2026, 9, 26, 11, 42, 0, 120000, tzinfo=UTC)
COMMANDS: list[admin.Command] = [
    admin.CreateToken("lab", "node", "n-1", True, False, 60, 1),
    admin.CreateToken("lab", "node", None, False, True, 60, 5),
    admin.ListTokens(),
    admin.RevokeToken("aaaaaaaaaa"),
    admin.ListNodes(),
    admin.ShowNode("n-1"),
    admin.RevokeNode("n-1", "stolen"),
    admin.DeleteNode("n-1"),
    admin.AskRenewal("n-1", "moved"),
    admin.AskRenewal(None, "moved"),
    admin.ShowTrust(),
    admin.AddRoot("00ff"),
    admin.RemoveRoot("sha256:00"),
    admin.AddApprover("Änne", "00ff"),
    admin.RemoveApprover("Änne"),
    admin.Restored(5),
    admin.ListRefusals(5),
    admin.ShowRefusal("00"),
    admin.TailAudit(5, None),
    admin.TailAudit(5, 7),
    admin_eks.ImportEkRoots(("3000", "3001")),
    admin_eks.ListEkRoots(),
    admin_eks.AdmitEkRoot("sha256:00", "lab", "node"),
    admin_eks.WithdrawEkRoot("sha256:00"),
    admin_eks.RemoveEkRoot("sha256:00"),
    admin_eks.AllowEk("sha256:01", "lab", "node", None, "räck 7"),
    admin_eks.DenyEk("sha256:01", None),
    admin_eks.RemoveEk("sha256:01"),
    admin_eks.ListEks(),
    admin_eks.ImportEks("eks.csv", (admin_eks.EkRow(2, "sha256:01", "lab", "node", "n-1", ""),)),
    admin.ListApprovals(),
    admin.DecideApproval("a-1", True),
]
CLAIMS = admin.ClaimsView("u", "p", "b", "c", ("m1", "m2"), (), "hôst", "")
NODE = admin.NodeView(
    "n-1",
    "lab",
    "node",
    "spiffe://…",
    2,
    "h",
    "0.1",
    "t",
    AT,
    AT,
    "current",
    None,
    True,
    AT,
    None,
    "tpm",
    "sha256:00",
    "000b",
)
CERTIFICATE = admin.CertificateView("0a", 1, "current", AT, "pin", AT, AT, AT, "192.0.2.1", "")
RESULTS: dict[type, Any] = {
    admin_eks.EkRootsImported: admin_eks.EkRootsImported(2, 1),
    admin_eks.EkRootView: admin_eks.EkRootView("sha256:00", "CN=Ä", "CN=B", None, AT, None, "node", AT),
    admin_eks.EkRootRemovedView: admin_eks.EkRootRemovedView("sha256:00", "CN=Ä"),
    admin_eks.EkView: admin_eks.EkView(
        "sha256:01",
        "denied",
        None,
        "node",
        None,
        "n-1",
        "räck 7",
        AT,
        (admin_eks.OtherEkView("sha256:02", "same", "", "n-2"), admin_eks.OtherEkView("sha256:03", "shown", "", None)),
    ),
    admin_eks.EkRemovedView: admin_eks.EkRemovedView("sha256:01"),
    admin_eks.EksImported: admin_eks.EksImported(3, 2, 1),
    admin.NewToken: admin.NewToken("bcjt_…", "aaaaaaaaaa", AT),
    admin.TokenView: admin.TokenView("t", "lab", "node", None, True, False, "usable", 1, 0, AT, AT, None),
    admin.NodeView: NODE,
    admin.NodeDetail: admin.NodeDetail(NODE, CLAIMS, (CERTIFICATE,)),
    admin.RevokedView: admin.RevokedView("n-1", 2, "sha256:00"),
    admin.DeletedView: admin.DeletedView("n-1", "sha256:00"),
    admin.RenewalsView: admin.RenewalsView(3, 1),
    admin.TrustView: admin.TrustView(3, ("sha256:00",), (admin.ApproverView("Änne", "sha256:01"),), 0),
    admin.RestoredView: admin.RestoredView(AT, 1001),
    admin.RefusalView: admin.RefusalView("00", AT, "r", "d", "w", "s", "a", "t", CLAIMS),
    admin.EventView: admin.EventView(1, AT, "operator", "node.joined", {"a": "x", "n": 3, "yes": True}),
    admin.ApprovalView: admin.ApprovalView(
        "a", "pending", AT, None, "t", "lab", "node", None, False, "pin", "s", "0.1", CLAIMS, "sha256:00", "sha256:01"
    ),
}


def test_every_command_is_tried_here() -> None:
    assert {type(command) for command in COMMANDS} == set(codec.RESULTS)
    assert set(codec.RESULTS) == set(admin.Command.__args__)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_arrives_as_it_was_sent(command: admin.Command) -> None:
    assert codec.decode_command(codec.encode_command(command)) == command


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_result_arrives_as_it_was_sent(command: admin.Command) -> None:
    hint = codec.RESULTS[type(command)]
    result = RESULTS[hint] if hint in RESULTS else (RESULTS[hint.__args__[0]],) * 2
    line = codec.encode_result(result)
    assert line.count(b"\n") == 1
    assert codec.decode_answer(command, line) == result


@pytest.mark.parametrize("kind", [failures.Usage, failures.NotPermitted, failures.TryLater, failures.FixDirectory])
def test_a_failure_arrives_as_it_was_raised(kind: type[Failure]) -> None:
    line = codec.encode_failure(kind(Message.NO_SUCH_NODE, id="n-1"))
    with pytest.raises(kind) as caught:
        codec.decode_answer(admin.ListNodes(), line)
    assert str(caught.value) == "no node n-1: see bcd-controlplane nodes list"
    assert caught.value.exit == kind.exit


def test_json_has_camel_case_names_and_utc_times() -> None:
    value = codec.to_json(RESULTS[admin.ApprovalView])
    assert value["tokenId"] == "t"
    assert value["asked"] == "2026-09-26T11:42:00.12Z"
    assert value["claims"]["gpuUuids"] == []
    assert value["nodeId"] is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"command": "Nothing"}',
        b'{"command": "ShowNode"}',
        b'{"command": "ShowNode", "with": {"id": 5}}',
        b'{"command": "TailAudit", "with": {"limit": true, "after": null}}',
        b"[" * 100_000,
        b"\xff",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_is_not_a_command_is_malformed(line: bytes) -> None:
    with pytest.raises(codec.Malformed):
        codec.decode_command(line)


def test_an_answer_of_another_shape_is_malformed() -> None:
    answers: list[dict[str, Any]] = [{"result": {}}, {"result": [{}]}, {"failure": "Nothing"}]
    for answer in [*answers, {"failure": "Usage", "message": "NO", "fields": {}}]:
        with pytest.raises(codec.Malformed):
            codec.decode_answer(admin.ListTokens(), json.dumps(answer).encode())


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_view_can_cross(kind: type) -> None:
    hints = get_type_hints(kind)
    assert {field.name for field in fields(kind)} == set(hints)


def test_every_message_can_be_formatted_from_its_fields_as_texts() -> None:
    for message in Message:
        names = {part.split("}")[0] for part in message.value.split("{")[1:]}
        assert str(failures.Internal(message, **dict.fromkeys(names, "x")))
