"""Port `Gateway` over gRPC with mutual TLS: one channel a pair, for its session and its renewals."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import cast

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from bcd.adapters.grpc import answers, pinned
from bcd.adapters.grpc.answers import cause, pushback_ms, reason
from bcd.adapters.grpc.channel import CALL_TIMEOUT_S, OPTIONS
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.grpc.signer import Signer
from bcd.domain.model.failures import FixConfiguration
from bcd.ports.gateway import (
    Bundle,
    Connection,
    Ended,
    Heard,
    Hello,
    Pair,
    RenewAnswer,
    Renewed,
    RenewNow,
    RenewQuestion,
    Retired,
    Revoked,
    Welcome,
)
from bcd.protocol import attestation
from bcd.protocol.files.config import Address
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2_grpc as services
from bcd.protocol.pb.bc.identity.v1 import statements_pb2

# As much of a reason as a log line takes.
_REASON = 200
_NO = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
# docs/protocol.md, "Renew": asked again, the same request is answered the same way.
_DECLINED = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)


class GrpcGateway:
    """`signed` is called with the public key (SPKI DER) each time a handshake was signed."""

    def __init__(self, address: Address, roots: Roots, signed: Callable[[bytes], None]) -> None:
        self._address = address
        self._roots = roots
        self._signed = signed

    def connect(self, pair: Pair) -> Connection | Ended:
        try:
            root = self._roots.find()
        except (pinned.CannotProbe, FixConfiguration) as error:
            # A pin that does not match is waited out like anything else: the wrong server must not end a node.
            return Ended(str(error))
        signer = Signer(pair, lambda: self._signed(pair.leaf.spki))
        channel = grpc.secure_channel(str(self._address), signer.credentials(root.pem), options=OPTIONS)
        return GrpcConnection(channel, str(self._address), signer, self._roots)


class GrpcConnection:
    def __init__(self, channel: grpc.Channel, target: str, signer: Signer, roots: Roots) -> None:
        self._channel = channel
        self._stub = services.GatewayStub(channel)  # type: ignore[no-untyped-call]
        self._target = target
        self._signer = signer
        self._roots = roots
        self._closed = threading.Event()

    def start(self, hello: Hello, deliver: Callable[[Heard], None]) -> None:
        threading.Thread(target=self._read, args=(hello, deliver), name="bcd-session", daemon=True).start()

    def renew(self, question: RenewQuestion) -> RenewAnswer:
        sent = Timestamp()
        sent.FromDatetime(question.client_time)
        proof = statements_pb2.SignedStatement.FromString(question.renew_pop)
        request = pb.RenewRequest(csr=question.csr, chain=question.chain, client_time=sent, renew_pop=proof)
        if question.key_attestation is not None:
            request.key_attestation.CopyFrom(attestation.key_attestation_message(question.key_attestation))
        try:
            reply = self._stub.Renew(request, timeout=CALL_TIMEOUT_S)
        except grpc.RpcError as error:
            return self._ended(error)
        except ValueError:
            # The channel was closed under the call.
            return Ended(f"{self._target}: the connection was closed")
        self._roots.verified()
        if not reply.HasField("server_time"):
            return Ended(f"{self._target}: answered without its time")
        try:
            return Renewed(reply.issued.SerializeToString(deterministic=True), _time(reply.server_time))
        except _NoTime:
            return Ended(f"{self._target}: told a time that is none")

    def close(self) -> None:
        self._closed.set()
        self._channel.close()

    def _read(self, hello: Hello, deliver: Callable[[Heard], None]) -> None:
        last: Ended | Revoked | Retired
        try:
            if self._listen(hello, deliver):
                return
            last = Ended(f"{self._target}: the gateway ended the session")
        except grpc.RpcError as error:
            last = self._ended(error)
        except _NoTime:
            last = Ended(f"{self._target}: told a time that is none")
        except Exception as error:  # noqa: BLE001 - a session that nobody reads must not look like one that is up
            # A closed channel is a ValueError, and nobody listens by then.
            last = Ended(f"{self._target}: internal error ({type(error).__name__}: {error})")
        if not self._closed.is_set():
            deliver(last)

    def _listen(self, hello: Hello, deliver: Callable[[Heard], None]) -> bool:
        """Delivers what comes until the stream ends; whether the last word was delivered."""
        for message in self._stub.Session(self._outgoing(hello)):
            self._roots.verified()
            heard = _heard(message)
            if heard is not None and not self._closed.is_set():
                deliver(heard)
            if isinstance(heard, Revoked):
                return True
        return False

    def _outgoing(self, hello: Hello) -> Iterator[pb.NodeMessage]:
        yield pb.NodeMessage(
            hello=pb.Hello(
                journal_id=hello.journal_id,
                boot_id=hello.boot_id,
                daemon_version=hello.daemon_version,
                node_key=hello.node_key,
            )
        )
        # The stream is the session: it stays open until one side ends it.
        self._closed.wait()

    def _ended(self, error: grpc.RpcError) -> Ended | Revoked | Retired:
        call = cast(grpc.Call, error)
        code, details = call.code(), call.details() or ""
        trailing: dict[str, str | bytes] = dict(call.trailing_metadata() or ())
        match reason(trailing):
            case answers.CERTIFICATE_REVOKED:
                return Revoked(details[:_REASON] or "revoked")
            case answers.CERTIFICATE_RETIRED:
                return Retired()
        # Only what TLS itself says: an answer that speaks of certificates came through a server that verified.
        if code is grpc.StatusCode.UNAVAILABLE and "certificate" in details.lower():
            self._roots.did_not_verify()
        why = f"{self._target}: {self._signer.trouble or cause(code, details)}"
        pushback = pushback_ms(trailing)
        return Ended(
            why,
            pushback_s=pushback / 1000 if pushback is not None and pushback >= 0 else None,
            never=pushback is not None and pushback < 0,
            refused=code in _NO,
            declined=code in _DECLINED,
        )


class _NoTime(Exception):
    """A timestamp outside of what a calendar has."""


def _time(told: Timestamp) -> datetime:
    try:
        return told.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _NoTime from None


def _heard(message: pb.GatewayMessage) -> Heard | None:
    match message.WhichOneof("message"):
        case "welcome" if message.welcome.HasField("server_time"):
            welcome = message.welcome
            bundle = welcome.trust_bundle.SerializeToString(deterministic=True)
            return Welcome(_time(welcome.server_time), bundle if welcome.HasField("trust_bundle") else b"")
        case "revoked":
            return Revoked(message.revoked.reason[:_REASON])
        case "renew_now":
            return RenewNow(message.renew_now.reason[:_REASON])
        case "trust_bundle":
            return Bundle(message.trust_bundle.SerializeToString(deterministic=True))
    # A kind of message a later gateway has.
    return None
