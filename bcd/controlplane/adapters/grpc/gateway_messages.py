"""The gateway's protobuf to the domain's values and back."""

from datetime import datetime

from google.protobuf.message import DecodeError

from bcd.controlplane.adapters.grpc.messages import MalformedMessage
from bcd.controlplane.domain.gateway import Greeting, Renewed, RenewRequest, Welcomed
from bcd.controlplane.domain.settings import SignedBundle
from bcd.protocol import attestation
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2


def decode_hello(data: bytes) -> Greeting:
    """A session's first message."""
    try:
        message = pb.NodeMessage.FromString(data)
    except DecodeError:
        raise MalformedMessage("not a NodeMessage") from None
    if not message.HasField("hello"):
        raise MalformedMessage("a session begins with Hello")
    hello = message.hello
    return Greeting(hello.journal_id, hello.boot_id, hello.daemon_version, hello.node_key)


def decode_renew(data: bytes) -> RenewRequest:
    try:
        message = pb.RenewRequest.FromString(data)
    except DecodeError:
        raise MalformedMessage("not a RenewRequest") from None
    given = message.HasField("key_attestation")
    return RenewRequest(
        csr=message.csr,
        chain=tuple(message.chain),
        renew_pop=message.renew_pop.SerializeToString(deterministic=True),
        key_attestation=attestation.key_attestation(message.key_attestation) if given else None,
    )


def encode_renewed(answer: Renewed) -> bytes:
    reply = pb.RenewReply(issued=statements_pb2.SignedStatement.FromString(answer.signed))
    reply.server_time.FromDatetime(answer.server_time)
    return reply.SerializeToString(deterministic=True)


def encode_welcome(answer: Welcomed) -> bytes:
    welcome = pb.Welcome(trust_bundle=statements_pb2.SignedStatement.FromString(answer.bundle.signed))
    welcome.server_time.FromDatetime(answer.server_time)
    return _message(pb.GatewayMessage(welcome=welcome))


def encode_revoked(reason: str, at: datetime) -> bytes:
    notice = pb.RevocationNotice(reason=reason)
    notice.revoked_at.FromDatetime(at)
    return _message(pb.GatewayMessage(revoked=notice))


def encode_renew_now(reason: str) -> bytes:
    return _message(pb.GatewayMessage(renew_now=pb.RenewNow(reason=reason)))


def encode_bundle(bundle: SignedBundle) -> bytes:
    return _message(pb.GatewayMessage(trust_bundle=statements_pb2.SignedStatement.FromString(bundle.signed)))


def _message(message: pb.GatewayMessage) -> bytes:
    return message.SerializeToString(deterministic=True)
