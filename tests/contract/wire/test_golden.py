"""Bytes that are fixed for ever: whoever writes the other side can check theirs against golden.json.

The expected values are worked out here again from the RFCs with integers, hashlib and base64 alone, so neither the file
nor the library is believed.
"""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bcd.domain.model.pins import Pin
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, seal, statements
from tests.fakes import pki

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden.json").read_bytes())
KEY = pki.private_key(int(GOLDEN["node_key"]["secret"], 16))
ENCRYPTION_KEY = pki.private_key(int(GOLDEN["encryption_key"]["secret"], 16))
STATEMENT = GOLDEN["statement"]
SEALED = GOLDEN["sealed_token"]

# SEC 2, section 2.4.2: P-256.
P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
A = P - 3
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int] | None


def plus(one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    slope = (3 * x1 * x1 + A) * pow(2 * y1, -1, P) if one == other else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def times(scalar: int, point: Point) -> Point:
    total: Point = None
    while scalar:
        if scalar & 1:
            total = plus(total, point)
        point, scalar = plus(point, point), scalar >> 1
    return total


def spki_by_hand(point: tuple[int, int]) -> bytes:
    """RFC 5480: SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING 04 x y }."""
    head = "3059" + "3013" + "06072a8648ce3d0201" + "06082a8648ce3d030107" + "034200" + "04"
    return bytes.fromhex(head) + point[0].to_bytes(32) + point[1].to_bytes(32)


def b64u(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def kid_by_hand(point: tuple[int, int]) -> str:
    """RFC 7638, section 3: the required members in order, no white space."""
    x, y = (b64u(n.to_bytes(32)) for n in point)
    return b64u(sha256(f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'.encode()).digest())


def verifies_by_hand(point: Point, message: bytes, signature: bytes) -> bool:
    """FIPS 186-5, section 6.4.2."""
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    digest, inverse = int.from_bytes(sha256(message).digest()), pow(s, -1, N)
    found = plus(times(digest * inverse % N, G), times(r * inverse % N, point))
    return found is not None and found[0] % N == r


@pytest.mark.parametrize("name", ["node_key", "encryption_key"])
def test_a_keys_spki_pin_and_kid_are_the_golden_ones(name: str) -> None:
    golden = GOLDEN[name]
    point = times(int(golden["secret"], 16), G)
    assert point is not None
    key = pki.private_key(int(golden["secret"], 16))
    assert pki.spki(key).hex() == golden["spki"] == spki_by_hand(point).hex()
    pin = f"sha256:{sha256(bytes.fromhex(golden['spki'])).hexdigest()}"
    assert str(Pin.of(pki.spki(key))) == golden["pin"] == pin
    assert ecdsa.thumbprint(key.public_key()) == golden["kid"] == kid_by_hand(point)


def test_a_jwk_is_the_golden_one() -> None:
    assert ecdsa.to_jwk(KEY.public_key()) == GOLDEN["node_key"]["jwk"]
    recipient = seal.Recipient(ENCRYPTION_KEY.public_key())
    assert recipient.kid == GOLDEN["encryption_key"]["kid"]


def test_the_kid_of_a_published_key_is_what_rfc_7638_gives() -> None:
    """The P-256 key of RFC 7515, appendix A.3. RFC 7638's own example is an RSA key."""
    x, y = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    secret = int.from_bytes(base64.urlsafe_b64decode("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI="))
    key = pki.private_key(secret).public_key()
    assert ecdsa.to_jwk(key) == {"crv": "P-256", "kty": "EC", "x": x, "y": y}
    text = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    assert ecdsa.thumbprint(key) == b64u(sha256(text.encode()).digest())


def test_a_published_signature_verifies() -> None:
    """RFC 6979, appendix A.2.5: P-256, SHA-256, message "sample"; its s is a high one."""
    r = "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716"
    s = "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"
    key = pki.private_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721).public_key()
    assert ecdsa.verifies(key, b"sample", bytes.fromhex(r + s))
    assert not ecdsa.verifies(key, b"Sample", bytes.fromhex(r + s))
    assert not ecdsa.verifies(key, b"sample", bytes.fromhex(s + r))


def test_the_key_of_the_golden_request_is_the_golden_key() -> None:
    assert csr.key_of(bytes.fromhex(GOLDEN["csr"])).hex() == GOLDEN["node_key"]["spki"]
    # Everything before the signature is the same in each request for a key.
    signed = 2 + 1 + 2 + 0x75
    assert csr.make_csr(KEY)[3:signed] == bytes.fromhex(GOLDEN["csr"])[3:signed]


def test_what_is_signed_is_the_golden_bytes() -> None:
    payload = bytes.fromhex(STATEMENT["payload"])
    told = statements.to_be_signed(statements.Purpose(STATEMENT["purpose"]), payload)
    assert told.hex() == STATEMENT["to_be_signed"]
    assert told == b"bc-statement-v1" + b"\x00" + STATEMENT["purpose"].encode() + b"\x00" + payload


def test_the_golden_statement_verifies_and_is_the_golden_message() -> None:
    payload, signature = (bytes.fromhex(STATEMENT[name]) for name in ("payload", "signature"))
    assert verifies_by_hand(times(int(GOLDEN["node_key"]["secret"], 16), G), told := STATEMENT_TBS, signature)
    assert not verifies_by_hand(times(5, G), told, signature)
    made = statements.make(statements.Purpose.RENEW_POP, payload, KEY.public_key(), lambda message: signature)
    assert made.SerializeToString(deterministic=True).hex() == STATEMENT["wire"]
    read = pb.SignedStatement.FromString(bytes.fromhex(STATEMENT["wire"]))
    found = statements.verify(statements.Purpose.RENEW_POP, read, pki.Pins((Pin(GOLDEN["node_key"]["pin"]),)))
    assert found.payload == payload


STATEMENT_TBS = bytes.fromhex(STATEMENT["to_be_signed"])


def test_the_golden_sealed_token_opens() -> None:
    request = bytes.fromhex(GOLDEN["csr"])
    found = seal.open_sealed(ENCRYPTION_KEY, bytes.fromhex(SEALED["sealed"]), request)
    assert found.decode() == SEALED["token"]
    assert bytes.fromhex(SEALED["info"]) == b"bc-join-seal-v1\x00" + sha256(request).digest()
