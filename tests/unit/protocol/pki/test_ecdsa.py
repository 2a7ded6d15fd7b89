"""P-256 keys and signatures on the wire."""

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.pki import ecdsa
from tests.fakes import pki
from tests.fakes.properties import few

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
KEY = pki.NODE_KEY
PUBLIC = KEY.public_key()
DER, SPKI = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
SECRETS = st.integers(1, ORDER - 1)


def compressed(key: ec.EllipticCurvePublicKey) -> bytes:
    """The same key with a compressed point: well-formed, and not the one encoding."""
    point = key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    head = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
    bits = b"\x03" + bytes((len(point) + 1,)) + b"\x00" + point
    return b"\x30" + bytes((len(head) + len(bits),)) + head + bits


@few
@given(SECRETS)
def test_a_key_reads_back_from_its_spki(secret: int) -> None:
    spki = pki.spki(pki.private_key(secret))
    assert len(spki) == 91
    assert ecdsa.spki_of(ecdsa.public_key(spki)) == spki


@few
@given(st.binary(max_size=120))
def test_any_bytes_are_a_key_or_malformed(data: bytes) -> None:
    try:
        assert ecdsa.spki_of(ecdsa.public_key(data)) == data
    except ecdsa.MalformedKey:
        pass


@few
@given(st.integers(0, 90), st.integers(1, 255))
def test_one_byte_changed_is_another_key_or_malformed(at: int, change: int) -> None:
    data = bytearray(pki.spki(KEY))
    data[at] ^= change
    try:
        assert ecdsa.spki_of(ecdsa.public_key(bytes(data))) == bytes(data) != pki.spki(KEY)
    except ecdsa.MalformedKey:
        pass


@pytest.mark.parametrize(
    "spki",
    [
        b"",
        pki.spki(KEY)[:-1],
        pki.spki(KEY) + b"\x00",
        ec.derive_private_key(7, ec.SECP384R1()).public_key().public_bytes(DER, SPKI),
        ec.derive_private_key(7, ec.SECP256K1()).public_key().public_bytes(DER, SPKI),
        ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32).public_key().public_bytes(DER, SPKI),
        rsa.RSAPublicNumbers(65537, (1 << 2047) + 9).public_key().public_bytes(DER, SPKI),
        pki.spki(KEY)[:26] + b"\x04" + b"\x01" * 64,
        pki.spki(KEY)[:26] + b"\x04" + b"\xff" * 64,
        # An algorithm nobody knows.
        bytes.fromhex("300d300706052a030405060302000102")[:15],
        bytes.fromhex("300c3006060428030405030200ff"),
    ],
    ids=["empty", "torn", "longer", "p384", "k256", "ed25519", "rsa", "off", "too-big", "broken", "unknown"],
)
def test_nothing_but_a_p256_key_is_one(spki: bytes) -> None:
    assert ecdsa.public_key(pki.spki(KEY))
    with pytest.raises(ecdsa.MalformedKey):
        ecdsa.public_key(spki)


def test_a_second_encoding_of_one_key_is_refused() -> None:
    """It would give the key a second pin."""
    serialization.load_der_public_key(compressed(PUBLIC))
    with pytest.raises(ecdsa.MalformedKey, match="another encoding"):
        ecdsa.public_key(compressed(PUBLIC))


@few
@given(SECRETS, st.binary(max_size=100))
def test_a_signature_verifies_for_its_key_and_message_alone(secret: int, message: bytes) -> None:
    key = pki.private_key(secret)
    signature = ecdsa.sign(key, message)
    assert len(signature) == 64
    assert ecdsa.verifies(key.public_key(), message, signature)
    assert not ecdsa.verifies(key.public_key(), message + b"\x00", signature)
    assert not ecdsa.verifies(pki.private_key(secret % 1000 + 1).public_key(), message, signature) or secret <= 1000


def test_high_s_and_low_s_are_accepted_alike() -> None:
    signature = ecdsa.sign(KEY, b"message")
    s = int.from_bytes(signature[32:])
    twin = signature[:32] + (ORDER - s).to_bytes(32)
    assert ecdsa.verifies(PUBLIC, b"message", signature)
    assert ecdsa.verifies(PUBLIC, b"message", twin)


@pytest.mark.parametrize("half", [0, ORDER, ORDER + 1, 2**256 - 1])
@pytest.mark.parametrize("which", ["r", "s"])
def test_a_half_outside_1_to_n_minus_1_never_verifies(half: int, which: str) -> None:
    signature = ecdsa.sign(KEY, b"message")
    wrong = half.to_bytes(32)
    made = wrong + signature[32:] if which == "r" else signature[:32] + wrong
    assert not ecdsa.verifies(PUBLIC, b"message", made)


def test_a_half_is_taken_as_it_is_and_not_modulo_the_order() -> None:
    """Some secret gives an s small enough that s + n still fits 32 bytes; it must not count as s."""
    message = b"message"
    for n in range(1, 50):
        signature = ecdsa.sign(KEY, message + bytes((n,)))
        r = int.from_bytes(signature[:32])
        if r + ORDER < 2**256:
            assert not ecdsa.verifies(PUBLIC, message + bytes((n,)), (r + ORDER).to_bytes(32) + signature[32:])


@pytest.mark.parametrize("length", [0, 1, 32, 63, 65, 128])
def test_no_other_length_is_a_signature(length: int) -> None:
    signature = ecdsa.sign(KEY, b"message")
    assert not ecdsa.verifies(PUBLIC, b"message", (signature * 2)[:length])


def test_a_signature_with_a_zero_put_in_is_another_length() -> None:
    """The numbers stay the same; a second form of one signature would give a statement other bytes."""
    signature = ecdsa.sign(KEY, b"message")
    assert not ecdsa.verifies(PUBLIC, b"message", signature[:32] + b"\x00" + signature[32:])
    assert not ecdsa.verifies(PUBLIC, b"message", b"\x00" + signature)


def test_a_der_signature_is_not_one_on_the_wire() -> None:
    der = KEY.sign(b"message", ec.ECDSA(hashes.SHA256()))
    assert not ecdsa.verifies(PUBLIC, b"message", der)
    assert ecdsa.verifies(PUBLIC, b"message", ecdsa.p1363(der))


def test_p1363_keeps_leading_zeros() -> None:
    assert ecdsa.p1363(bytes.fromhex("3006020101020102")) == bytes(31) + b"\x01" + bytes(31) + b"\x02"
    der = KEY.sign(b"message", ec.ECDSA(hashes.SHA256()))
    r, s = decode_dss_signature(der)
    assert ecdsa.p1363(der) == r.to_bytes(32) + s.to_bytes(32)


def test_the_digest_is_sha256() -> None:
    der = KEY.sign(b"message", ec.ECDSA(hashes.SHA384()))
    assert not ecdsa.verifies(PUBLIC, b"message", ecdsa.p1363(der))


@few
@given(SECRETS)
def test_a_kid_is_43_characters_of_base64url(secret: int) -> None:
    kid = ecdsa.thumbprint(pki.private_key(secret).public_key())
    assert len(kid) == 43
    assert set(kid) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert (kid == ecdsa.thumbprint(PUBLIC)) is (secret == 1001)


def test_a_jwk_holds_the_members_of_the_thumbprint_alone() -> None:
    assert set(ecdsa.to_jwk(PUBLIC)) == {"crv", "kty", "x", "y"}
    assert all(len(ecdsa.to_jwk(pki.private_key(n).public_key())["x"]) == 43 for n in range(1, 30))
