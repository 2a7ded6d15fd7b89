"""What a client is told when there is no answer: one refusal, one fault, one "busy". Nothing else ever leaves."""

from dataclasses import dataclass

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

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
    text = "Join refused"
    info = any_pb2.Any()
    info.Pack(error_details_pb2.ErrorInfo(reason="ACCESS_DENIED", domain=DOMAIN))
    code = grpc.StatusCode.PERMISSION_DENIED
    details = status_pb2.Status(code=code.value[0], message=text, details=[info])
    return Status(code, text, ((REFUSAL_ID, refusal_id), (DETAILS, details.SerializeToString())))


def unavailable() -> Status:
    """For any fault of ours; without ErrorInfo, so that no node takes it for a verdict."""
    return Status(grpc.StatusCode.UNAVAILABLE, "temporarily unavailable")


def busy(pushback_ms: int) -> Status:
    return Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", ((PUSHBACK, str(pushback_ms)),))
