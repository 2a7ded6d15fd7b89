"""The signed statement (docs/protocol.md, "Signed statement")."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.message import DecodeError

from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa

_PREFIX = b"bc-statement-v1\x00"
# gRPC messages end at 1 MiB, and a statement is a part of one.
MAX_STATEMENT_BYTES = 1 << 20


class Purpose(StrEnum):
    """What a signature is for; a verifier puts in the one it expects."""

    JOIN_RESPONSE = "join-response"
    RENEW_RESPONSE = "renew-response"
    TRUST_BUNDLE = "trust-bundle"
    RENEW_POP = "renew-pop"
    DISCOVERY_ASSERTION = "discovery-assertion"


class SignerIsAnother(Exception):
    """The statement is by a key that is not pinned."""

    def __init__(self, presented: Pin) -> None:
        super().__init__(f"signed by {presented}")
        self.presented = presented


class BadStatement(Exception):
    """The statement does not verify; `number` is the check that refused it (docs/protocol.md), from 1."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


class MalformedStatement(Exception):
    """Not a statement at all; the message completes "it …"."""


@dataclass(frozen=True)
class Statement:
    """As in the proto file; `raw` is the serialized message, which is what gets stored."""

    raw: bytes
    payload: bytes
    signer_spki: bytes


def to_be_signed(purpose: Purpose, payload: bytes) -> bytes:
    """The bytes under a statement's signature (protocol, "Signed statement"): no payload is signed for two purposes."""
    return _PREFIX + purpose.value.encode() + b"\x00" + payload


def make(
    purpose: Purpose, payload: bytes, signer: ec.EllipticCurvePublicKey, sign: Callable[[bytes], bytes]
) -> pb.SignedStatement:
    """`payload` signed by `sign` (message in, P1363 out), the private half of `signer`."""
    return pb.SignedStatement(
        purpose=purpose.value,
        payload=payload,
        kid=ecdsa.thumbprint(signer),
        signature=sign(to_be_signed(purpose, payload)),
        signer_spki=ecdsa.spki_of(signer),
    )


def parse(data: bytes) -> pb.SignedStatement:
    """The statement in `data`; MalformedStatement when it is none, or larger than one may be."""
    if len(data) > MAX_STATEMENT_BYTES:
        raise MalformedStatement("is larger than a statement may be")
    try:
        return pb.SignedStatement.FromString(data)
    except DecodeError:
        raise MalformedStatement("is not a signed statement") from None


def verify(purpose: Purpose, statement: pb.SignedStatement, pins: Pins) -> Statement:
    """The payload, after the checks of docs/protocol.md in their order: signer, kid, signature."""
    # 1. The signer is the one that is pinned.
    spki = statement.signer_spki
    if not pins.match(spki):
        raise SignerIsAnother(Pin.of(spki))
    try:
        key = ecdsa.public_key(spki)
    except ecdsa.MalformedKey as error:
        raise BadStatement(1, f"the signer's key is {error}") from None
    # 2. The kid is the signer's.
    if statement.kid != ecdsa.thumbprint(key):
        raise BadStatement(2, "the kid is not the signer's")
    # 3. The signature is over the purpose that is expected here, whatever purpose the statement names.
    if not ecdsa.verifies(key, to_be_signed(purpose, statement.payload), statement.signature):
        raise BadStatement(3, f"the signature is not one for {purpose.value}")
    return Statement(statement.SerializeToString(deterministic=True), statement.payload, spki)
