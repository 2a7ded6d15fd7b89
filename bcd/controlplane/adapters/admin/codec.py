"""Commands, views and failures as JSON and back, by the types of their fields. Names are camelCase, times RFC 3339 UTC.

The same encoding is what `--json` prints."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from bcd.controlplane.domain import admin, admin_eks, failures
from bcd.controlplane.domain.failures import Failure
from bcd.controlplane.domain.messages import Message
from bcd.protocol.files.encoding import MalformedFile, from_time, to_time

# What each command is answered with.
RESULTS: dict[type, Any] = {
    admin.CreateToken: admin.NewToken,
    admin.ListTokens: tuple[admin.TokenView, ...],
    admin.RevokeToken: admin.TokenView,
    admin.ListNodes: tuple[admin.NodeView, ...],
    admin.ShowNode: admin.NodeDetail,
    admin.RevokeNode: admin.RevokedView,
    admin.DeleteNode: admin.DeletedView,
    admin.AskRenewal: admin.RenewalsView,
    admin.ShowTrust: admin.TrustView,
    admin.AddRoot: admin.TrustView,
    admin.RemoveRoot: admin.TrustView,
    admin.AddApprover: admin.TrustView,
    admin.RemoveApprover: admin.TrustView,
    admin.Restored: admin.RestoredView,
    admin.ListRefusals: tuple[admin.RefusalView, ...],
    admin.ShowRefusal: admin.RefusalView,
    admin.TailAudit: tuple[admin.EventView, ...],
    admin.ListApprovals: tuple[admin.ApprovalView, ...],
    admin.DecideApproval: admin.ApprovalView,
    admin_eks.ImportEkRoots: admin_eks.EkRootsImported,
    admin_eks.ListEkRoots: tuple[admin_eks.EkRootView, ...],
    admin_eks.AdmitEkRoot: admin_eks.EkRootView,
    admin_eks.WithdrawEkRoot: admin_eks.EkRootView,
    admin_eks.RemoveEkRoot: admin_eks.EkRootRemovedView,
    admin_eks.AllowEk: admin_eks.EkView,
    admin_eks.DenyEk: admin_eks.EkView,
    admin_eks.RemoveEk: admin_eks.EkRemovedView,
    admin_eks.ListEks: tuple[admin_eks.EkView, ...],
    admin_eks.ImportEks: admin_eks.EksImported,
}
_COMMANDS = {kind.__name__: kind for kind in RESULTS}
_FAILURES: dict[str, type[Failure]] = {
    kind.__name__: kind
    for kind in (failures.Usage, failures.TryLater, failures.NotPermitted, failures.FixDirectory, failures.Internal)
}


class Malformed(ValueError):
    """Not what the other side of the socket says."""


def encode_command(command: admin.Command) -> bytes:
    return _line({"command": type(command).__name__, "with": to_json(command)})


def decode_command(line: bytes) -> admin.Command:
    value = _object(line)
    kind = _COMMANDS.get(str(value.get("command")))
    if kind is None:
        raise Malformed("no such command")
    command: admin.Command = from_json(kind, value.get("with"))
    return command


def encode_result(result: object) -> bytes:
    return _line({"result": to_json(result)})


def encode_failure(failure: Failure) -> bytes:
    given = {name: str(value) for name, value in failure.fields.items()}
    return _line({"failure": type(failure).__name__, "message": failure.message.name, "fields": given})


def decode_answer(command: admin.Command, line: bytes) -> object:
    """The result of `command`; the failure when it was one, as if it had happened here."""
    value = _object(line)
    if "failure" in value:
        try:
            kind, message = _FAILURES[value["failure"]], Message[value["message"]]
            failure = kind(message, **value["fields"])
        except (KeyError, TypeError, IndexError):
            raise Malformed("an unknown failure") from None
        raise failure
    return from_json(RESULTS[type(command)], value.get("result"))


def to_json(value: object) -> Any:
    match value:
        case datetime():
            return to_time(value)
        case tuple() | list():
            return [to_json(item) for item in value]
        case Mapping():
            return {str(name): to_json(item) for name, item in value.items()}
    if is_dataclass(value):
        return {camel(field.name): to_json(getattr(value, field.name)) for field in fields(value)}
    return value


def from_json(hint: Any, value: Any) -> Any:
    """`value` as a `hint`; Malformed when it is none."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        (inner,) = [arg for arg in args if arg is not NoneType]
        return None if value is None else from_json(inner, value)
    if origin is tuple:
        if not isinstance(value, list):
            raise Malformed("not a list")
        return tuple(from_json(args[0], item) for item in value)
    if hint is datetime:
        try:
            return from_time(value, "value")
        except MalformedFile:
            raise Malformed("not a time") from None
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise Malformed("not an object")
        hints = get_type_hints(hint)
        return hint(**{f.name: from_json(hints[f.name], value.get(camel(f.name))) for f in fields(hint)})  # type: ignore[operator]
    if origin is not None:
        # Mapping[str, str | int | bool]
        if not isinstance(value, dict) or not all(isinstance(item, str | int) for item in value.values()):
            raise Malformed("not an object of plain values")
        return value
    if type(value) is not hint:
        raise Malformed(f"not of type {hint.__name__}")
    return value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise Malformed("not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("not an object")
    return value
