"""What a client is told when there is no answer. Nothing else ever leaves."""

import math
import random
from dataclasses import dataclass

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from bcd.controlplane.domain.gateway import Dead, Declined, Full, Malformed, No, NotNow, OutOfDate, Superseded

DOMAIN = "bc.identity"
REFUSAL_ID = "refusal-id"
PUSHBACK = "grpc-retry-pushback-ms"
DETAILS = "grpc-status-details-bin"

Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True)
class Status:
    code: grpc.StatusCode
    text: str
    trailing: Metadata = ()


def join_refused(refusal_id: str) -> Status:
    final = _final(grpc.StatusCode.PERMISSION_DENIED, "Join refused", "ACCESS_DENIED")
    return Status(final.code, final.text, ((REFUSAL_ID, refusal_id), *final.trailing))


def revoked(reason: str) -> Status:
    """As RevocationNotice: the node ends."""
    return _final(grpc.StatusCode.UNAUTHENTICATED, reason or "revoked", "CERTIFICATE_REVOKED")


def _final(code: grpc.StatusCode, text: str, reason: str) -> Status:
    """With our ErrorInfo, which alone makes a status a verdict (docs/protocol.md, "What is final")."""
    info = any_pb2.Any()
    info.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN))
    details = status_pb2.Status(code=code.value[0], message=text, details=[info])
    return Status(code, text, ((DETAILS, details.SerializeToString()),))


def of(no: No) -> Status:
    """What the gateway's refusals look like on the wire."""
    match no:
        case Dead(reason):
            return revoked(reason)
        case Superseded():
            return _final(grpc.StatusCode.ABORTED, "the certificate was replaced", "CERTIFICATE_RETIRED")
        case OutOfDate():
            return Status(grpc.StatusCode.UNAUTHENTICATED, "the certificate's time is over")
        case Malformed(why):
            return Status(grpc.StatusCode.INVALID_ARGUMENT, why)
        case Declined(why):
            return Status(grpc.StatusCode.FAILED_PRECONDITION, why)
        case Full(wait):
            milliseconds = math.ceil(wait.total_seconds() * 1000)
            return Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "renewal quota used up", ((PUSHBACK, str(milliseconds)),))
        case NotNow():
            return unavailable()


def not_a_node() -> Status:
    return Status(grpc.StatusCode.PERMISSION_DENIED, "the client certificate is no node's")


def unavailable() -> Status:
    """For any fault of ours; without ErrorInfo, so that no node takes it for a verdict."""
    return Status(grpc.StatusCode.UNAVAILABLE, "temporarily unavailable")


def busy(pushback_ms: int) -> Status:
    return Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", ((PUSHBACK, str(pushback_ms)),))


def spread(least_ms: int, most_ms: int) -> int:
    """A pushback of its own for each: nodes told the same would all be back at once."""
    return random.randint(least_ms, most_ms)  # noqa: S311 - no secret
