"""Port `JoinTransport` over gRPC on the join port: TLS 1.3, the server's CA pinned, no client certificate."""

from collections.abc import Callable
from datetime import UTC

import grpc

from bcd.adapters.grpc import pinned
from bcd.adapters.grpc.answers import join_answer
from bcd.adapters.grpc.channel import CALL_TIMEOUT_S, OPTIONS
from bcd.adapters.grpc.roots import Roots
from bcd.domain.model.claims import Claims
from bcd.domain.model.joining import Answer, Challenged, Failed, Issued, Pending
from bcd.domain.model.pins import Pins
from bcd.ports.clock import Clock
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol import attestation
from bcd.protocol.files.config import Address
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import join_pb2_grpc as services


class GrpcJoinTransport:
    def __init__(
        self,
        address: Address,
        pins: Pins,
        config_path: str,
        clock: Clock,
        ca_file: Callable[[], bytes | None],
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        probe_timeout_s: float = pinned.CONNECT_TIMEOUT_S,
    ) -> None:
        self._address = address
        self._call_timeout_s = call_timeout_s
        self._roots = Roots(
            address, pins=pins, config_path=config_path, clock=clock, ca_file=ca_file, timeout_s=probe_timeout_s
        )

    def join(self, question: JoinQuestion) -> Answer:
        try:
            first = self._roots.at_hand()
            if first is not None:
                answer = self._ask(first, question)
                if not isinstance(answer, Failed) or not _is_verification(answer):
                    return answer
            # No CA at hand, or the one at hand did not verify the server: look at what the server presents now.
            root = self._roots.probe()
        except pinned.CannotProbe as error:
            return Failed(str(error))
        return self._ask(root, question)

    def close(self) -> None:
        """Each call closes its own channel."""

    def _ask(self, root: pinned.ServingCa, question: JoinQuestion) -> Answer:
        if not root.pem:
            # Empty roots are the system's roots to gRPC.
            raise ValueError("no root certificate")
        credentials = grpc.ssl_channel_credentials(root_certificates=root.pem)
        target = str(self._address)
        with grpc.secure_channel(target, credentials, options=OPTIONS) as channel:
            try:
                stub = services.JoinServiceStub(channel)  # type: ignore[no-untyped-call]
                reply = stub.Join(_request(question), timeout=self._call_timeout_s)
            except grpc.RpcError as error:
                return join_answer(error, target)
        return _answer(reply, target)


def _is_verification(answer: Failed) -> bool:
    return "certificate" in answer.why


def _request(question: JoinQuestion) -> pb.JoinRequest:
    pending = question.pending
    return pb.JoinRequest(
        attestor=pending.attestor,
        csr=pending.csr,
        sealed_token=None
        if pending.sealed is None
        else pb.SealedToken(kid=pending.sealed.kid, sealed=pending.sealed.sealed),
        wanted_node_id=pending.node_id or "",
        role=pending.role.value,
        claims=_claims(question.claims),
        daemon_version=question.daemon_version,
        pending_id=pending.pending_id,
        tpm_evidence=None if question.evidence is None else attestation.evidence_message(question.evidence),
        challenge_answer=None if question.answer is None else attestation.answer_message(question.answer),
    )


def _claims(claims: Claims) -> pb.Claims:
    return pb.Claims(
        product_uuid=claims.product_uuid,
        product_serial=claims.product_serial,
        board_serial=claims.board_serial,
        chassis_serial=claims.chassis_serial,
        macs=claims.macs,
        gpu_uuids=claims.gpu_uuids,
        hostname=claims.hostname,
        boot_id=claims.boot_id,
    )


def _answer(reply: pb.JoinReply, target: str) -> Answer:
    match reply.WhichOneof("answer"):
        case "issued":
            return Issued(reply.issued.SerializeToString(deterministic=True))
        case "pending":
            return Pending(reply.pending.id, float(reply.pending.retry_after_s))
        case "challenge":
            return _challenged(reply, target)
    return Failed(f"{target}: answered neither with a certificate nor with an approval to wait for")


def _challenged(reply: pb.JoinReply, target: str) -> Answer:
    try:
        challenge = attestation.challenge(reply.challenge)
        told = reply.server_time.ToDatetime(tzinfo=UTC)
    except (attestation.MalformedChallenge, ValueError, OverflowError):
        return Failed(f"{target}: answered with a challenge that is none")
    # By the server's own clock, however ours stands.
    return Challenged(challenge, (challenge.not_after - told).total_seconds())
