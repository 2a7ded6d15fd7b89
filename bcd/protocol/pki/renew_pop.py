"""The proof of possession in a Renew: the current key signs for the next one's request (purpose `renew-pop`)."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from bcd.domain.model.identity import Leaf
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa, statements


class BadProof(ValueError):
    """Not a proof by the leaf's key for this request; the message says why."""


def make_renew_pop(
    csr: bytes, leaf: bytes, client_time: datetime, spki: bytes, sign: Callable[[bytes], bytes]
) -> pb.SignedStatement:
    """The statement about the request `csr` (PKCS#10 DER) by the key of `leaf` (DER), whose public half is `spki` and
    whose signatures `sign` makes (P1363)."""
    stamp = Timestamp()
    stamp.FromDatetime(client_time)
    payload = pb.RenewPop(csr_sha256=sha256(csr).digest(), leaf_sha256=sha256(leaf).digest(), client_time=stamp)
    signed = payload.SerializeToString(deterministic=True)
    return statements.make(statements.Purpose.RENEW_POP, signed, ecdsa.public_key(spki), sign)


def open_renew_pop(signed: bytes, csr: bytes, leaf: Leaf) -> datetime:
    """The client's time, once `signed` (a serialized SignedStatement) proves that the key of `leaf` asks for `csr`."""
    payload = pb.RenewPop()
    try:
        statement = statements.verify(
            statements.Purpose.RENEW_POP, statements.parse(signed), Pins((Pin.of(leaf.spki),))
        )
        payload.ParseFromString(statement.payload)
        client_time = payload.client_time.ToDatetime(tzinfo=UTC)
    except statements.SignerIsAnother:
        raise BadProof("the proof is by another key than the certificate's") from None
    except statements.BadStatement as error:
        raise BadProof(f"the proof does not verify: {error}") from None
    except statements.MalformedStatement as error:
        raise BadProof(f"the proof {error}") from None
    except (DecodeError, ValueError, OverflowError):
        raise BadProof("the proof is not a RenewPop") from None
    if payload.csr_sha256 != sha256(csr).digest():
        raise BadProof("the proof is for another request")
    if payload.leaf_sha256 != leaf.sha256:
        raise BadProof("the proof is for another certificate")
    return client_time
