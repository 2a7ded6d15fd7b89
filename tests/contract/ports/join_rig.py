"""A join port over gRPC, a transport that asks there, and what comes back."""

from dataclasses import dataclass, field

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from bcd.adapters.grpc.join import GrpcJoinTransport
from bcd.domain.model.claims import Claims
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.joining import Answer, Failed
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.domain.model.pins import Pins
from bcd.ports.clock import Clock
from bcd.ports.join_transport import JoinQuestion
from bcd.protocol.files.config import Address
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pki import csr, seal
from tests.fakes import pki, tls
from tests.fakes.clock import ManualClock
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.tls import REAL_NOW, ServingCa

CLAIMS = Claims(
    product_uuid="8f2a4c1e-77b0-4d3e-9a51-0c6de5b1f2a3",
    product_serial="P-1",
    board_serial="B-1",
    chassis_serial="C-1",
    macs=("3c:ec:ef:00:00:01", "3c:ec:ef:00:00:02"),
    gpu_uuids=("gpu-5e2b1c0d-8f3a-4c6e-9b1d-7a2f0e4c8d55",),
    hostname="rack-3-7",
    boot_id="1d5e9c72-40aa-4b6f-8f03-b2a9c1d7e6f4",
)
CONFIG = "/etc/bcd/config.toml"
SOON_S = 0.3


def question(plane: MemoryControlPlane, token: str, number: int = 5001, node: str | None = None) -> JoinQuestion:
    key = pki.private_key(number)
    request = csr.make_csr(key)
    sealed = seal.seal(plane.recipient, token.encode(), request)
    pending = PendingJoin(
        attestor="join-token" if node is None else "provisioned",
        role=Role.NODE,
        node_id=None if node is None else NodeId(node),
        key=b"the node's secret, which is not to leave it",
        csr=request,
        sealed=SealedToken(sealed.kid, sealed.sealed),
        pending_id="",
        begun=pki.NOW,
    )
    return JoinQuestion(pending, CLAIMS, "0.1.0")


@dataclass
class Service:
    """What stands behind the join port."""

    plane: MemoryControlPlane = field(default_factory=MemoryControlPlane)
    asked: list[JoinQuestion] = field(default_factory=list)
    scripted: list[Answer] = field(default_factory=list)

    def __call__(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        self.asked.append(decoded(pb.JoinRequest.FromString(data)))
        assert b"secret" not in data
        if self.scripted:
            failed = self.scripted.pop(0)
            assert isinstance(failed, Failed)
            if failed.never:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", "-1"),))
            if failed.pushback_s is not None:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", str(round(failed.pushback_s * 1000))),))
            context.abort(grpc.StatusCode.UNAVAILABLE, failed.why)
        reply = self.plane.exchange(data)
        if isinstance(reply, bytes):
            return reply
        refuse(context, refusal_id=reply.id)
        raise AssertionError("abort raises")


def decoded(request: pb.JoinRequest) -> JoinQuestion:
    claims = {name: getattr(request.claims, name) for name in ("hostname", "boot_id", "product_uuid")}
    claims |= {name: getattr(request.claims, name) for name in ("product_serial", "board_serial", "chassis_serial")}
    sealed = SealedToken(request.sealed_token.kid, request.sealed_token.sealed)
    pending = PendingJoin(
        attestor=request.attestor,
        role=Role(request.role),
        node_id=NodeId(request.wanted_node_id) if request.wanted_node_id else None,
        key=b"",
        csr=request.csr,
        sealed=sealed if request.HasField("sealed_token") else None,
        pending_id=request.pending_id,
        begun=pki.NOW,
    )
    many = {"macs": tuple(request.claims.macs), "gpu_uuids": tuple(request.claims.gpu_uuids)}
    return JoinQuestion(pending, Claims(**claims, **many), request.daemon_version)


def details(reason: str = "ACCESS_DENIED", domain: str = "bc.identity") -> bytes:
    inside = any_pb2.Any()
    inside.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
    return status_pb2.Status(code=7, message="Join refused", details=[inside]).SerializeToString()


def refuse(
    context: grpc.ServicerContext,
    code: grpc.StatusCode = grpc.StatusCode.PERMISSION_DENIED,
    *,
    info: bytes | None = None,
    refusal_id: str = "r-1",
) -> None:
    trailing = (("grpc-status-details-bin", details() if info is None else info), ("refusal-id", refusal_id))
    context.set_trailing_metadata(trailing)
    context.abort(code, "Join refused")


CA = ServingCa.make(3100)
NEXT_CA = ServingCa.make(3101, "next serving CA")


def transport(
    port: int,
    pins: Pins = CA.pins,
    *,
    host: str = "127.0.0.1",
    clock: Clock | None = None,
    ca_file: bytes | None = None,
    timeout_s: float = 10.0,
) -> GrpcJoinTransport:
    return GrpcJoinTransport(
        Address(host, port),
        pins,
        CONFIG,
        clock or ManualClock(REAL_NOW),
        lambda: ca_file,
        call_timeout_s=timeout_s,
        probe_timeout_s=timeout_s,
    )


PLANE = MemoryControlPlane()
QUESTION = question(PLANE, "bcjt_0123456789_a-token-nobody-opens")


def ask(handler: tls.Handler, timeout_s: float = 10.0) -> Answer:
    with tls.grpc_server(handler, [CA.leaf(), CA.der]) as port:
        return transport(port, timeout_s=timeout_s).join(QUESTION)


def served(*chain: bytes, host: str = "127.0.0.1", name: str | None = None, **how: object) -> Answer:
    """The answer of a server with this chain to a good question."""
    service = Service()
    with tls.grpc_server(service, chain, host) as port:
        where = transport(port, host=name or host.strip("[]"), **how)  # type: ignore[arg-type]
        return where.join(question(service.plane, service.plane.token()))


def failed(answer: Answer) -> str:
    assert isinstance(answer, Failed)
    assert answer.why.isprintable()
    return answer.why


def mismatch(*chain: bytes, **how: object) -> FixConfiguration:
    with pytest.raises(FixConfiguration) as caught:
        served(*chain, **how)
    assert caught.value.message is Message.SERVING_PIN
    return caught.value
