"""A JoinService that answers what a test tells it to, behind a real control plane's own serving certificate."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import join_pb2_grpc as services

Answer = Callable[[pb.JoinRequest, grpc.ServicerContext], pb.JoinReply]


class _Scripted(services.JoinServiceServicer):
    def __init__(self, answer: Answer) -> None:
        self.Join = answer


@contextmanager
def serving(plane: Path, answer: Answer) -> Iterator[int]:
    """The port of a server with the key and chain in the control plane's directory `plane`."""
    server = grpc.server(ThreadPoolExecutor(4))
    services.add_JoinServiceServicer_to_server(_Scripted(answer), server)
    key, chain = ((plane / name).read_bytes() for name in ("serving.key", "serving.pem"))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def pushback(milliseconds: str) -> Answer:
    """UNAVAILABLE with that `grpc-retry-pushback-ms`."""

    def answer(_: pb.JoinRequest, context: grpc.ServicerContext) -> pb.JoinReply:
        context.set_trailing_metadata((("grpc-retry-pushback-ms", milliseconds),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        raise AssertionError("abort raises")

    return answer
