"""Protobuf to the domain's values and back."""

from dataclasses import asdict
from datetime import datetime

from google.protobuf.message import DecodeError

from bcd.controlplane.domain.joining import Challenged, Granted, JoinRequest, Waiting
from bcd.domain.model.claims import Claims
from bcd.domain.model.pending import SealedToken
from bcd.protocol import attestation
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2


class MalformedMessage(ValueError):
    """The bytes are no message of this type."""


def decode_request(data: bytes) -> JoinRequest:
    try:
        message = pb.JoinRequest.FromString(data)
    except DecodeError:
        raise MalformedMessage("not a JoinRequest") from None
    claims = message.claims
    sealed = SealedToken(message.sealed_token.kid, message.sealed_token.sealed)
    return JoinRequest(
        attestor=message.attestor,
        csr=message.csr,
        sealed=sealed if message.HasField("sealed_token") else None,
        wanted_node_id=message.wanted_node_id,
        role=message.role,
        claims=Claims(
            product_uuid=claims.product_uuid,
            product_serial=claims.product_serial,
            board_serial=claims.board_serial,
            chassis_serial=claims.chassis_serial,
            macs=tuple(claims.macs),
            gpu_uuids=tuple(claims.gpu_uuids),
            hostname=claims.hostname,
            boot_id=claims.boot_id,
        ),
        daemon_version=message.daemon_version,
        pending_id=message.pending_id,
        evidence=attestation.evidence(message.tpm_evidence) if message.HasField("tpm_evidence") else None,
        answer=attestation.answer(message.challenge_answer) if message.HasField("challenge_answer") else None,
    )


def encode_request(request: JoinRequest) -> bytes:
    message = pb.JoinRequest(
        attestor=request.attestor,
        csr=request.csr,
        wanted_node_id=request.wanted_node_id,
        role=request.role,
        claims=pb.Claims(**asdict(request.claims)),
        daemon_version=request.daemon_version,
        pending_id=request.pending_id,
    )
    if request.sealed is not None:
        message.sealed_token.CopyFrom(pb.SealedToken(kid=request.sealed.kid, sealed=request.sealed.sealed))
    if request.evidence is not None:
        message.tpm_evidence.CopyFrom(attestation.evidence_message(request.evidence))
    if request.answer is not None:
        message.challenge_answer.CopyFrom(attestation.answer_message(request.answer))
    return message.SerializeToString(deterministic=True)


def encode_reply(answer: Granted | Waiting | Challenged, now: datetime) -> bytes:
    reply = pb.JoinReply()
    reply.server_time.FromDatetime(now)
    match answer:
        case Granted(signed):
            reply.issued.CopyFrom(statements_pb2.SignedStatement.FromString(signed))
        case Waiting(approval_id, retry_after_s):
            reply.pending.CopyFrom(pb.JoinPending(id=approval_id, retry_after_s=retry_after_s))
        case Challenged(challenge):
            reply.challenge.CopyFrom(attestation.challenge_message(challenge))
    return reply.SerializeToString(deterministic=True)
