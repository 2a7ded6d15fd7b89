"""Opening a join response: the numbered checks of docs/protocol.md, "Checking a join response"."""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from google.protobuf.message import DecodeError

from bcd.domain.model.identity import Leaf, Trust
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import certificates, statements, trust_bundle


class DoesNotVerify(Exception):
    """Check `number` refused the answer; `why` in words."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"check {number}: {why}")
        self.number = number
        self.why = why


class SigningKeyIsAnother(Exception):
    """Check 2: the answer is signed by a key that is not pinned."""

    def __init__(self, presented: Pin) -> None:
        super().__init__(f"signed by {presented}")
        self.presented = presented


@dataclass(frozen=True)
class Expected:
    """What the node asked for. `spki` is the requested key; without `node_id` any node will do."""

    csr: bytes
    spki: bytes
    role: Role
    node_id: NodeId | None
    pins: Pins


@dataclass(frozen=True)
class JoinResponse:
    """A verified answer. `signed` is the statement as received, for root's record."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    trust: Trust
    server_time: datetime
    signed: bytes


def open_join_response(signed: bytes, expected: Expected) -> JoinResponse:
    """The answer in `signed` (a serialized SignedStatement); DoesNotVerify or SigningKeyIsAnother otherwise."""
    # 1. It is a statement, and not larger than one may be.
    envelope = pb.SignedStatement()
    if len(signed) > statements.MAX_STATEMENT_BYTES:
        raise DoesNotVerify(1, "it is larger than an answer may be")
    try:
        envelope.ParseFromString(signed)
    except DecodeError:
        raise DoesNotVerify(1, "it is not a signed statement") from None
    # 2. Its signer is pinned; 3. its kid is the signer's; 4. its signature is one for a join response.
    try:
        statement = statements.verify(statements.Purpose.JOIN_RESPONSE, envelope, expected.pins)
    except statements.SignerIsAnother as error:
        raise SigningKeyIsAnother(error.presented) from None
    except statements.BadStatement as error:
        raise DoesNotVerify(1 + error.number, str(error)) from None
    # 5. Its payload is a join response with a server time.
    response = pb.JoinResponse()
    try:
        response.ParseFromString(statement.payload)
        server_time = response.server_time.ToDatetime(tzinfo=UTC)
    except (DecodeError, ValueError, OverflowError):
        raise DoesNotVerify(5, "its payload is not a join response") from None
    if not response.HasField("server_time"):
        raise DoesNotVerify(5, "its payload has no server time")
    # 6. It answers this request.
    if response.csr_sha256 != sha256(expected.csr).digest():
        raise DoesNotVerify(6, "it answers another request")
    # 7. The chain: the leaf's profile, each certificate signed by the next, all in date at the server's time.
    try:
        leaf = certificates.check_chain(response.chain, server_time)
    except certificates.MalformedCertificate as error:
        raise DoesNotVerify(7, str(error)) from None
    # 8. The leaf certifies the key that was asked for.
    if leaf.spki != expected.spki:
        raise DoesNotVerify(8, "the certificate does not certify this node's key")
    # 9. The leaf names the node that was asked for, when one was.
    if expected.node_id is not None and leaf.spiffe_id.node != expected.node_id:
        raise DoesNotVerify(9, f"the certificate is for node {leaf.spiffe_id.node}, not {expected.node_id}")
    # 10. The leaf gives the role that was asked for.
    if leaf.role is not expected.role:
        raise DoesNotVerify(10, f"the certificate is for role {leaf.role.value}, not {expected.role.value}")
    # 11. The trust bundle is by the same key and of the leaf's trust domain.
    try:
        trust = trust_bundle.open_bundle(response.trust_bundle, expected.pins, leaf.spiffe_id.trust_domain)
    except trust_bundle.BadBundle as error:
        raise DoesNotVerify(11, str(error)) from None
    return JoinResponse(leaf, tuple(response.chain), trust, server_time, signed)
