"""The proof of possession in a Renew: the current key signs for the next one's request (purpose `renew-pop`)."""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from google.protobuf.timestamp_pb2 import Timestamp

from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa, statements


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
