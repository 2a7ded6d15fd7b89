"""What a gRPC status means: the one table (docs/protocol.md, "What is final and what is retried")."""

from typing import cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from bcd.domain.model.joining import Failed, JoinDenied

DOMAIN = "bc.identity"
ACCESS_DENIED = "ACCESS_DENIED"
CERTIFICATE_REVOKED = "CERTIFICATE_REVOKED"
CERTIFICATE_RETIRED = "CERTIFICATE_RETIRED"
REFUSAL_ID = "refusal-id"
PUSHBACK = "grpc-retry-pushback-ms"
_STATUS_DETAILS = "grpc-status-details-bin"
# How grpcio shows a pushback it could not parse (tried).
_UNPARSABLE = -(2**63)
# Words of grpc-core's and BoringSSL's for what an operator can do something about.
_CAUSES = (
    ("certificate is not yet valid", "the server's certificate is not yet valid: this clock or the server's is wrong"),
    ("certificate has expired", "the server's certificate has expired, or this clock is ahead"),
    ("Hostname Verification Check failed", "the server's certificate is for another host name"),
    ("CERTIFICATE_VERIFY_FAILED", "the server's certificate is not by the pinned CA"),
    ("Domain name not found", "the host name does not resolve"),
    # grpc-core cuts its own texts: the rest of HANDSHAKE_FAILURE is not always there.
    ("SSLV3_ALERT_HAND", "no TLS 1.3 there, which is all that is spoken here"),
    ("WRONG_VERSION_NUMBER", "no TLS there: is that the join port?"),
    ("Connection refused", "connection refused"),
    ("Socket closed", "the connection was closed"),
)


def join_answer(error: grpc.RpcError, target: str) -> Failed | JoinDenied:
    """The answer an unsuccessful Join is. Only our own ErrorInfo makes it final."""
    # What a synchronous call raises is its Call as well, whatever the types say.
    call = cast(grpc.Call, error)
    code, details = call.code(), call.details() or ""
    trailing: dict[str, str | bytes] = dict(call.trailing_metadata() or ())
    if reason(trailing) == ACCESS_DENIED:
        return JoinDenied(_printable(trailing.get(REFUSAL_ID, ""), 64))
    why = f"{target}: {cause(code, details)}"
    match pushback_ms(trailing):
        case None:
            return Failed(why)
        case negative if negative < 0:
            return Failed(why, never=True)
        case milliseconds:
            return Failed(why, pushback_s=milliseconds / 1000)


def cause(code: grpc.StatusCode, details: str) -> str:
    """A status in words for an operator; the server's text is cut and made printable."""
    for words, meaning in _CAUSES:
        if words in details:
            return meaning
    shown = _printable(details, 200)
    return f"{code.name}: {shown}" if shown else code.name


def reason(trailing: dict[str, str | bytes]) -> str:
    """The reason of our ErrorInfo among the status details, or empty: without it nothing is final."""
    raw = trailing.get(_STATUS_DETAILS, b"")
    status = status_pb2.Status()
    try:
        status.ParseFromString(raw if isinstance(raw, bytes) else b"")
        for detail in status.details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return str(info.reason)
    except DecodeError:
        return ""
    return ""


def pushback_ms(trailing: dict[str, str | bytes]) -> int | None:
    """Milliseconds the server asks to wait; negative: not to ask again; None: it asked for nothing that parses."""
    raw = trailing.get(PUSHBACK)
    try:
        found = int(raw) if raw is not None else None
    except ValueError:
        return None
    return None if found == _UNPARSABLE else found


def _printable(text: str | bytes, limit: int) -> str:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return "".join(c if c.isprintable() else "?" for c in shown)[:limit]
