"""A gateway over gRPC with mutual TLS in this process: says what a test tells it to, to whoever has a node's leaf."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import NoReturn

import grpc
from cryptography import x509
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from bcd.adapters.keys.file import FileKey
from bcd.ports.gateway import (
    Bundle,
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
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2_grpc as services
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from bcd.protocol.pki.certificates import parse_leaf
from tests.fakes import pki, tls
from tests.fakes.tls import REAL_NOW, ServingCa

DAY = timedelta(days=1)
SERVING = ServingCa.make(3101)
# gRPC has the real clock only, so these are in date now.
NODE_ROOT = pki.certificate(
    subject=pki.common_name("example.org root"),
    issuer=pki.common_name("example.org root"),
    key=pki.ROOT_KEY.public_key(),
    signer=pki.ROOT_KEY,
    extensions=[(x509.BasicConstraints(True, None), True), (pki.key_usage("key_cert_sign", "crl_sign"), True)],
    not_before=REAL_NOW - DAY,
    not_after=REAL_NOW + DAY,
)
NODE_CA = pki.ca(2101, not_before=REAL_NOW - DAY, not_after=REAL_NOW + DAY)


def node_pair(key: object = None) -> Pair:
    """A leaf that is good now, with its key or another."""
    begin = REAL_NOW - timedelta(hours=1)
    chain = pki.chain(NODE_CA, not_before=begin, not_after=begin + DAY)
    return Pair(parse_leaf(chain[0]), chain, key or FileKey(pki.NODE_KEY))  # type: ignore[arg-type]


def error_info(code: grpc.StatusCode, details: str, reason: str, domain: str = "bc.identity") -> tuple[str, bytes]:
    """Trailing metadata with an ErrorInfo."""
    info = any_pb2.Any()
    info.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
    status = status_pb2.Status(code=code.value[0], message=details, details=[info])
    return ("grpc-status-details-bin", status.SerializeToString())


@dataclass
class Behaviour(services.GatewayServicer):
    """`session` and `renew` are what a test wants; each may abort."""

    session: Callable[[pb.Hello, grpc.ServicerContext], Iterator[pb.GatewayMessage]] | None = None
    renew: Callable[[pb.RenewRequest, grpc.ServicerContext], pb.RenewReply] | None = None
    hellos: list[Hello] = field(default_factory=list)
    asked: list[RenewQuestion] = field(default_factory=list)

    def Session(
        self, request_iterator: Iterator[pb.NodeMessage], context: grpc.ServicerContext
    ) -> Iterator[pb.GatewayMessage]:
        hello = next(request_iterator).hello
        self.hellos.append(Hello(hello.journal_id, hello.boot_id, hello.daemon_version, hello.node_key))
        assert self.session is not None
        yield from self.session(hello, context)

    def Renew(self, request: pb.RenewRequest, context: grpc.ServicerContext) -> pb.RenewReply:
        client_time = request.client_time.ToDatetime(tzinfo=UTC)
        proof = request.renew_pop.SerializeToString(deterministic=True)
        self.asked.append(RenewQuestion(request.csr, tuple(request.chain), client_time, proof))
        assert self.renew is not None
        return self.renew(request, context)

    # In the port's words

    def says(self, *heard: Heard) -> None:
        """After each Hello, then the stream stays open until one of them ended it or the node hangs up."""

        def session(hello: pb.Hello, context: grpc.ServicerContext) -> Iterator[pb.GatewayMessage]:
            for one in heard:
                if isinstance(one, Ended | Retired):
                    refuse(context, one)
                yield message(one)
                if isinstance(one, Revoked):
                    return
            stay(context)

        self.session = session

    def answers(self, answer: RenewAnswer) -> None:
        def renew(request: pb.RenewRequest, context: grpc.ServicerContext) -> pb.RenewReply:
            if not isinstance(answer, Renewed):
                refuse(context, answer)
            reply = pb.RenewReply(issued=statements_pb2.SignedStatement.FromString(answer.signed))
            reply.server_time.FromDatetime(answer.server_time)
            return reply

        self.renew = renew


def stay(context: grpc.ServicerContext) -> None:
    """Until the other side, or the server, ends the call."""
    over = threading.Event()
    if context.add_callback(over.set):
        over.wait(60)


def refuse(context: grpc.ServicerContext, answer: Ended | Retired | Revoked) -> NoReturn:
    match answer:
        case Revoked(reason):
            no = grpc.StatusCode.UNAUTHENTICATED
            context.set_trailing_metadata([error_info(no, reason, "CERTIFICATE_REVOKED")])
            context.abort(no, reason)
        case Retired():
            no = grpc.StatusCode.UNAUTHENTICATED
            context.set_trailing_metadata([error_info(no, "retired", "CERTIFICATE_RETIRED")])
            context.abort(no, "retired")
        case Ended(why, pushback_s, never, refused):
            if pushback_s is not None or never:
                asked = "-1" if never else str(round((pushback_s or 0) * 1000))
                context.set_trailing_metadata([("grpc-retry-pushback-ms", asked)])
            context.abort(grpc.StatusCode.PERMISSION_DENIED if refused else grpc.StatusCode.UNAVAILABLE, why)
    raise AssertionError


def message(heard: Heard) -> pb.GatewayMessage:
    match heard:
        case Welcome(server_time, bundle):
            found = pb.GatewayMessage(welcome=pb.Welcome())
            found.welcome.server_time.FromDatetime(server_time)
            if bundle:
                found.welcome.trust_bundle.CopyFrom(statements_pb2.SignedStatement.FromString(bundle))
            return found
        case Bundle(signed):
            return pb.GatewayMessage(trust_bundle=statements_pb2.SignedStatement.FromString(signed))
        case Revoked(reason):
            return pb.GatewayMessage(revoked=pb.RevocationNotice(reason=reason))
        case RenewNow(reason):
            return pb.GatewayMessage(renew_now=pb.RenewNow(reason=reason))
    raise AssertionError(heard)


@contextlib.contextmanager
def gateway_server(
    behaviour: Behaviour,
    ca: ServingCa = SERVING,
    *,
    names: Sequence[str] = ("127.0.0.1", "localhost"),
    present_ca: bool = True,
    port: int = 0,
) -> Iterator[int]:
    """The port of a gateway that presents a certificate for `names` by `ca` and takes leaves below NODE_ROOT."""
    chain = tls.to_pem(ca.leaf(names=names), *([ca.der] if present_ca else []))
    credentials = grpc.ssl_server_credentials(
        [(tls.LEAF_KEY_PEM, chain)], root_certificates=tls.to_pem(NODE_ROOT), require_client_auth=True
    )
    pool = ThreadPoolExecutor(16)
    server = grpc.server(pool, options=[("grpc.so_reuseport", 0)])
    services.add_GatewayServicer_to_server(behaviour, server)  # type: ignore[no-untyped-call]
    bound = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    try:
        yield bound
    finally:
        server.stop(None).wait()
        pool.shutdown()
