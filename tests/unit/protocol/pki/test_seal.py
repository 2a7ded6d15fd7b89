"""Sealing a join token: readable by one key, and only beside one request."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.pki import csr, ecdsa, seal
from tests.fakes import pki
from tests.fakes.properties import few

RECIPIENT = seal.Recipient(pki.ENCRYPTION_KEY.public_key())
TOKEN = b"bcjt_abcdefghij_" + b"x" * 43
JWK = json.loads(seal.encode_recipient(RECIPIENT))
OTHER_CSR = csr.make_csr(pki.OTHER_KEY)


def jwk(**changes: object) -> bytes:
    """The JWK with members changed; None leaves one out."""
    return json.dumps({k: v for k, v in (JWK | changes).items() if v is not None}).encode()


@few
@given(st.binary(min_size=1, max_size=4096))
def test_what_is_sealed_opens_to_itself(token: bytes) -> None:
    sealed = seal.seal(RECIPIENT, token, pki.CSR)
    assert len(sealed.sealed) == seal.ENC_BYTES + len(token) + seal.TAG_BYTES
    assert seal.open_sealed(pki.ENCRYPTION_KEY, sealed.sealed, pki.CSR) == token
    assert sealed.kid == RECIPIENT.kid == ecdsa.thumbprint(pki.ENCRYPTION_KEY.public_key())


def test_it_opens_for_no_other_key_and_beside_no_other_request() -> None:
    sealed = seal.seal(RECIPIENT, TOKEN, pki.CSR).sealed
    assert seal.open_sealed(pki.ENCRYPTION_KEY, sealed, pki.CSR) == TOKEN
    with pytest.raises(seal.DoesNotOpen):
        seal.open_sealed(pki.OTHER_KEY, sealed, pki.CSR)
    with pytest.raises(seal.DoesNotOpen):
        seal.open_sealed(pki.ENCRYPTION_KEY, sealed, OTHER_CSR)
    with pytest.raises(seal.DoesNotOpen):
        seal.open_sealed(pki.ENCRYPTION_KEY, sealed, pki.CSR + b"\x00")


def test_it_is_another_every_time_and_never_holds_the_token() -> None:
    one, other = (seal.seal(RECIPIENT, TOKEN, pki.CSR) for _ in range(2))
    assert one.sealed != other.sealed
    assert TOKEN not in one.sealed
    assert "sealed=" not in repr(one)


def test_a_sealed_token_torn_or_changed_anywhere_does_not_open() -> None:
    sealed = seal.seal(RECIPIENT, TOKEN, pki.CSR).sealed
    for at in range(len(sealed)):
        with pytest.raises(seal.DoesNotOpen):
            seal.open_sealed(pki.ENCRYPTION_KEY, sealed[:at], pki.CSR)
        changed = bytearray(sealed)
        changed[at] ^= 0x01
        with pytest.raises(seal.DoesNotOpen):
            seal.open_sealed(pki.ENCRYPTION_KEY, bytes(changed), pki.CSR)
    with pytest.raises(seal.DoesNotOpen):
        seal.open_sealed(pki.ENCRYPTION_KEY, sealed + b"\x00", pki.CSR)


@few
@given(st.binary(max_size=200))
def test_any_bytes_do_not_open(data: bytes) -> None:
    with pytest.raises(seal.DoesNotOpen):
        seal.open_sealed(pki.ENCRYPTION_KEY, data, pki.CSR)


@few
@given(st.integers(1, 2**255))
def test_a_recipient_reads_back_from_its_jwk(secret: int) -> None:
    recipient = seal.Recipient(pki.private_key(secret).public_key())
    found = seal.decode_recipient(seal.encode_recipient(recipient))
    assert found.spki == recipient.spki
    assert found.kid == recipient.kid


def test_the_jwk_names_the_suite_it_is_for() -> None:
    """HPKE-0 is P-256 with AES-128-GCM; ours, with AES-256-GCM, is HPKE-7."""
    assert ecdsa.to_jwk(RECIPIENT.key) | {"use": "enc", "alg": "HPKE-7", "kid": RECIPIENT.kid} == JWK


@pytest.mark.parametrize("changes", [{"use": None}, {"kid": None}, {"alg": None}, {"ext": True, "key_ops": []}])
def test_a_jwk_needs_the_key_alone(changes: dict[str, object]) -> None:
    assert seal.decode_recipient(jwk(**changes)).spki == RECIPIENT.spki


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xef\xbb\xbf" + jwk(), "is not JSON"),
        (b"[" * 4000, "is not JSON"),
        (b"[]", "is not a P-256 JWK"),
        (b"null", "is not a P-256 JWK"),
        (b"{}", "is not a P-256 JWK"),
        (jwk() + b" " * 4096, "is not a P-256 JWK"),
        (jwk(kty="RSA"), "is not a P-256 JWK"),
        (jwk(kty=None), "is not a P-256 JWK"),
        (jwk(crv="P-384"), "is not a P-256 JWK"),
        (jwk(crv=None), "is not a P-256 JWK"),
        (jwk(d="AAAA"), "holds a private key"),
        (jwk(use="sig"), "is not for encryption"),
        (jwk(use=1), "is not for encryption"),
        (jwk(kid="another"), "has a kid that is not its thumbprint"),
        (jwk(kid=7), "has a kid that is not its thumbprint"),
        (jwk(alg="HPKE-0"), "is for another suite"),
        (jwk(alg="ECDH-ES"), "is for another suite"),
        (jwk(x=None), "has no x or no y"),
        (jwk(y=None), "has no x or no y"),
        (jwk(y=7), "has no x or no y"),
        (jwk(x="!" * 43), "is not 43 characters of base64url"),
        (jwk(x="é" * 43), "is not 43 characters of base64url"),
        (jwk(x=""), "is not 43 characters of base64url"),
        (jwk(x=JWK["x"][:-1]), "is not 43 characters of base64url"),
        (jwk(x=JWK["x"] + "A"), "is not 43 characters of base64url"),
        (jwk(x=JWK["x"] + "="), "is not 43 characters of base64url"),
        (jwk(x="+" * 43), "is not 43 characters of base64url"),
        (jwk(x=JWK["x"] + "\n"), "is not 43 characters of base64url"),
        (jwk(x="A" * 42 + "B"), "is not 43 characters of base64url"),
        (jwk(x="A" * 43), "is not a point of P-256"),
        (jwk(y="_" * 42 + "8"), "is not a point of P-256"),
    ],
)
def test_nothing_else_is_a_recipient(data: bytes, why: str) -> None:
    with pytest.raises(seal.MalformedJwk, match=why):
        seal.decode_recipient(data)


@few
@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda text: jwk(x=text)))
def test_any_bytes_are_a_recipient_or_malformed(data: bytes) -> None:
    with pytest.raises(seal.MalformedJwk):
        seal.decode_recipient(data)


def test_a_recipient_is_pinned_by_its_spki() -> None:
    assert RECIPIENT.spki == pki.spki(pki.ENCRYPTION_KEY)
    assert isinstance(RECIPIENT.key.curve, ec.SECP256R1)
