"""What a join response and a renew response have in common: the first seven checks of docs/protocol.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from google.protobuf.message import DecodeError

from bcd.domain.model.identity import Leaf, Trust
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
class Issued:
    """A certificate that was issued for a request, its trust bundle not yet looked at."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    server_time: datetime
    signed_bundle: pb.SignedStatement


_PAYLOADS: dict[statements.Purpose, type[pb.JoinResponse] | type[pb.RenewResponse]] = {
    statements.Purpose.JOIN_RESPONSE: pb.JoinResponse,
    statements.Purpose.RENEW_RESPONSE: pb.RenewResponse,
}


def open_issued(purpose: statements.Purpose, signed: bytes, csr: bytes, pins: Pins) -> Issued:
    """The answer in `signed` (a serialized SignedStatement) to the request `csr` (PKCS#10 DER), checks 1 to 7."""
    what = purpose.value.replace("-", " ")
    # 1. It is a statement, and not larger than one may be.
    envelope = pb.SignedStatement()
    if len(signed) > statements.MAX_STATEMENT_BYTES:
        raise DoesNotVerify(1, "it is larger than an answer may be")
    try:
        envelope.ParseFromString(signed)
    except DecodeError:
        raise DoesNotVerify(1, "it is not a signed statement") from None
    # 2. Its signer is pinned; 3. its kid is the signer's; 4. its signature is one for this purpose.
    try:
        statement = statements.verify(purpose, envelope, pins)
    except statements.SignerIsAnother as error:
        raise SigningKeyIsAnother(error.presented) from None
    except statements.BadStatement as error:
        raise DoesNotVerify(1 + error.number, str(error)) from None
    # 5. Its payload is an answer of that kind, with a server time.
    response = _PAYLOADS[purpose]()
    try:
        response.ParseFromString(statement.payload)
        server_time = response.server_time.ToDatetime(tzinfo=UTC)
    except (DecodeError, ValueError, OverflowError):
        raise DoesNotVerify(5, f"its payload is not a {what}") from None
    if not response.HasField("server_time"):
        raise DoesNotVerify(5, "its payload has no server time")
    # 6. It answers this request.
    if response.csr_sha256 != sha256(csr).digest():
        raise DoesNotVerify(6, "it answers another request")
    # 7. The chain: the leaf's profile, each certificate signed by the next, all in date at the server's time.
    leaf = _leaf(response.chain, server_time)
    return Issued(leaf, tuple(response.chain), server_time, response.trust_bundle)


def open_bundle(number: int, issued: Issued, pins: Pins) -> Trust:
    """Check `number`, the last: the trust bundle is by the same key and of the leaf's trust domain."""
    try:
        return trust_bundle.open_bundle(issued.signed_bundle, pins, issued.leaf.spiffe_id.trust_domain)
    except trust_bundle.BadBundle as error:
        raise DoesNotVerify(number, str(error)) from None


def _leaf(chain: Sequence[bytes], server_time: datetime) -> Leaf:
    try:
        return certificates.check_chain(chain, server_time)
    except certificates.MalformedCertificate as error:
        raise DoesNotVerify(7, str(error)) from None
