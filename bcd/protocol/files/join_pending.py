"""`join.pending` (decision 8), JSON: everything of a request that is under way. Secret: it holds the new key."""

from typing import Any

from bcd.domain.model import names
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.protocol.files.encoding import (
    MalformedFile,
    from_base64,
    from_time,
    json_object,
    text,
    to_base64,
    to_json,
    to_time,
)

_VERSION = 1


def decode(data: bytes) -> PendingJoin:
    """The pending join in `data`, or MalformedFile."""
    value = json_object(data)
    version = value.get("version")
    if version != _VERSION or isinstance(version, bool):
        raise MalformedFile("is of another version of bcd")
    try:
        role = names.role(text(value, "role"))
        node_id = names.node_id(text(value, "nodeId")) if "nodeId" in value else None
    except names.MalformedName as error:
        raise MalformedFile(f"has a name that is {error}") from None
    sealed = None
    if "sealedToken" in value or "sealedTokenKid" in value:
        sealed = SealedToken(text(value, "sealedTokenKid"), from_base64(value.get("sealedToken"), "sealedToken"))
    return PendingJoin(
        attestor=text(value, "attestor"),
        role=role,
        node_id=node_id,
        key=text(value, "key").encode(),
        csr=from_base64(value.get("csr"), "csr"),
        sealed=sealed,
        pending_id=text(value, "pendingId") if "pendingId" in value else "",
        begun=from_time(value.get("begun"), "begun"),
    )


def encode(pending: PendingJoin) -> bytes:
    """The whole file, JSON; a secret, as the key in it is one."""
    value: dict[str, Any] = {
        "version": _VERSION,
        "begun": to_time(pending.begun),
        "attestor": pending.attestor,
        "role": pending.role.value,
        "key": pending.key.decode(),
        "csr": to_base64(pending.csr),
    }
    if pending.node_id is not None:
        value["nodeId"] = pending.node_id
    if pending.sealed is not None:
        value["sealedTokenKid"] = pending.sealed.kid
        value["sealedToken"] = to_base64(pending.sealed.sealed)
    if pending.pending_id:
        value["pendingId"] = pending.pending_id
    return to_json(value)
