"""Sealing is RFC 9180, pinned from two sides.

What is pinned by what: RFC 9180 has no vector for DHKEM(P-256, HKDF-SHA256) + HKDF-SHA256 + AES-256-GCM. Its appendix
A.3.1 has the same KEM and KDF with AES-128-GCM, base mode. Its ciphertexts have an aad, which the library's public call
does not take; so the library is given the vector's enc and a ciphertext made with the vector's key and nonce, and opens
it only when it comes to the same two. The vector itself, aad and all, is opened by an opener written below from the RFC
with hashlib, hmac, P-256 ECDH and AES-GCM alone, and every step of it is compared. That opener, told AES-256-GCM
instead, then opens what the product seals: that pins our suite, our info string and the empty aad.
"""

import hmac
import json
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from bcd.protocol.pki import seal
from tests.fakes import pki

AES_128_GCM, AES_256_GCM = (1, 16), (2, 32)

# RFC 9180, A.3.1 and A.3.1.1, sequence number 0.
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
SK_R = 0xF3CE7FDAE57E1A310D87F1EBBDE6F328BE0A99CDBCADF4D6589CF29DE4B8FFD2
PK_R = bytes.fromhex(
    "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0"
)
ENC = bytes.fromhex(
    "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4"
)
SHARED_SECRET = bytes.fromhex("c0d26aeab536609a572b07695d933b589dcf363ff9d93c93adea537aeabb8cb8")
BASE_KEY = bytes.fromhex("868c066ef58aae6dc589b6cfdd18f97e")
BASE_NONCE = bytes.fromhex("4e0bc5018beba4bf004cca59")
PLAINTEXT = b"Beauty is truth, truth beauty"
AAD = b"Count-0"
CIPHERTEXT = bytes.fromhex("5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab2523f39513434")


def extract(salt: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), ikm, sha256)


def expand(prk: bytes, info: bytes, length: int) -> bytes:
    made, block = b"", b""
    while len(made) < length:
        block = hmac.digest(prk, block + info + bytes((len(made) // 32 + 1,)), sha256)
        made += block
    return made[:length]


def labeled_extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + ikm)


def labeled_expand(suite: bytes, prk: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return expand(prk, length.to_bytes(2) + b"HPKE-v1" + suite + label + info, length)


def decapsulate(enc: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
    """RFC 9180, section 4.1, Decap, for KEM 0x0010."""
    suite = b"KEM" + (0x0010).to_bytes(2)
    dh = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), enc))
    eae_prk = labeled_extract(suite, b"", b"eae_prk", dh)
    return labeled_expand(suite, eae_prk, b"shared_secret", enc + point(key), 32)


def key_schedule(shared_secret: bytes, info: bytes, aead: tuple[int, int]) -> tuple[bytes, bytes]:
    """RFC 9180, section 5.1, base mode: key and base nonce."""
    aead_id, key_bytes = aead
    suite = b"HPKE" + (0x0010).to_bytes(2) + (0x0001).to_bytes(2) + aead_id.to_bytes(2)
    psk_id_hash = labeled_extract(suite, b"", b"psk_id_hash", b"")
    info_hash = labeled_extract(suite, b"", b"info_hash", info)
    context = b"\x00" + psk_id_hash + info_hash
    secret = labeled_extract(suite, shared_secret, b"secret", b"")
    return (
        labeled_expand(suite, secret, b"key", context, key_bytes),
        labeled_expand(suite, secret, b"base_nonce", context, 12),
    )


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def opened(
    sealed: bytes, key: ec.EllipticCurvePrivateKey, info: bytes, aead: tuple[int, int], aad: bytes = b""
) -> bytes:
    aes_key, nonce = key_schedule(decapsulate(sealed[:65], key), info, aead)
    return AESGCM(aes_key).decrypt(nonce, sealed[65:], aad)


def test_the_library_comes_to_the_rfcs_key_and_nonce() -> None:
    suite = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
    sealed = ENC + AESGCM(BASE_KEY).encrypt(BASE_NONCE, PLAINTEXT, b"")
    assert suite.decrypt(sealed, pki.private_key(SK_R), info=INFO) == PLAINTEXT
    with pytest.raises(InvalidTag):
        suite.decrypt(sealed, pki.private_key(SK_R), info=INFO + b"x")


def test_the_opener_written_here_agrees_with_the_rfc_at_every_step() -> None:
    key = pki.private_key(SK_R)
    assert point(key) == PK_R
    assert decapsulate(ENC, key) == SHARED_SECRET
    assert key_schedule(SHARED_SECRET, INFO, AES_128_GCM) == (BASE_KEY, BASE_NONCE)
    assert opened(ENC + CIPHERTEXT, key, INFO, AES_128_GCM, AAD) == PLAINTEXT


@pytest.mark.parametrize("length", [1, 59, 4096])
def test_the_opener_opens_what_the_product_seals(length: int) -> None:
    token = b"t" * length
    sealed = seal.seal(seal.Recipient(pki.ENCRYPTION_KEY.public_key()), token, pki.CSR)
    info = b"bc-join-seal-v1\x00" + sha256(pki.CSR).digest()
    assert opened(sealed.sealed, pki.ENCRYPTION_KEY, info, AES_256_GCM) == token


@pytest.mark.parametrize(
    ("info", "aead", "aad"),
    [
        (b"bc-join-seal-v1" + sha256(pki.CSR).digest(), AES_256_GCM, b""),
        (b"bc-join-seal-v1\x00" + pki.CSR, AES_256_GCM, b""),
        (b"bc-join-seal-v1\x00" + sha256(pki.CSR).digest(), AES_128_GCM, b""),
        (b"bc-join-seal-v1\x00" + sha256(pki.CSR).digest(), AES_256_GCM, b"aad"),
    ],
)
def test_no_other_info_suite_or_aad_opens_it(info: bytes, aead: tuple[int, int], aad: bytes) -> None:
    sealed = seal.seal(seal.Recipient(pki.ENCRYPTION_KEY.public_key()), b"token", pki.CSR)
    with pytest.raises(InvalidTag):
        opened(sealed.sealed, pki.ENCRYPTION_KEY, info, aead, aad)


def test_the_opener_opens_the_golden_sealed_token() -> None:
    golden = json.loads((Path(__file__).parent / "golden.json").read_bytes())
    key = pki.private_key(int(golden["encryption_key"]["secret"], 16))
    info, sealed = (bytes.fromhex(golden["sealed_token"][name]) for name in ("info", "sealed"))
    assert opened(sealed, key, info, AES_256_GCM).decode() == golden["sealed_token"]["token"]
