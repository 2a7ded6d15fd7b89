"""What a TPM shows, fixed for ever: golden.json, "tpm". Keys in software; tpm2_makecredential made the credential.

Worked out here again from the TPM 2.0 Library with integers, hashlib and hmac; only the cipher itself is a library's.
"""

import hmac
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from bcd.domain.model.attestation import Attestation
from bcd.protocol.pki import certificates, csr
from bcd.protocol.tpm2 import attest, credential, names
from bcd.protocol.tpm2.attest import Certified, Quoted
from bcd.protocol.tpm2.structures import Public
from bcd.protocol.tpm2.wire import decode
from tests.contract.wire.test_golden import GOLDEN, G, P, spki_by_hand, times, verifies_by_hand
from tests.fakes import pki

TPM: dict[str, Any] = GOLDEN["tpm"]
EK_SECRET, AK_SECRET, NODE_SECRET = (
    int(secret, 16) for secret in (TPM["ek"]["secret"], TPM["ak"]["secret"], GOLDEN["node_key"]["secret"])
)
# Part 2, 12.2.4: type, nameAlg, attributes, policy, parameters; the point follows.
POLICY_A = "837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa"
EK_HEAD = "0023 000b 000300b2 0020" + POLICY_A + "0006 0080 0043 0010 0003 0010"
AK_HEAD = "0023 000b 00050472 0000 0010 0018 000b 0003 0010"
NODE_HEAD = "0023 000b 00040472 0000 0010 0010 0003 0010"


def raw(*path: str) -> bytes:
    value: Any = TPM
    for name in path:
        value = value[name]
    return bytes.fromhex(value)


def area_by_hand(head: str, secret: int) -> bytes:
    point = times(secret, G)
    assert point is not None
    return bytes.fromhex(head) + b"".join(b"\x00\x20" + part.to_bytes(32) for part in point)


def name_by_hand(area: bytes) -> bytes:
    return b"\x00\x0b" + sha256(area).digest()


def test_the_areas_and_names_are_the_golden_ones() -> None:
    for area, name, head, secret in (
        (raw("ek", "area"), raw("ek", "name"), EK_HEAD, EK_SECRET),
        (raw("ak", "area"), raw("ak", "name"), AK_HEAD, AK_SECRET),
        (raw("node_key_area"), raw("node_key_name"), NODE_HEAD, NODE_SECRET),
    ):
        assert area == area_by_hand(head, secret)
        assert names.name(decode(Public, area)) == name == name_by_hand(area)


def test_an_endorsement_key_is_called_by_its_spki() -> None:
    point = times(EK_SECRET, G)
    assert point is not None
    assert TPM["ek"]["sha256"] == f"sha256:{sha256(spki_by_hand(point)).hexdigest()}"


def test_the_name_beside_a_spiffe_id_is_the_golden_one() -> None:
    text = b"urn:bc:tpm-ak:" + TPM["ak"]["name"].encode()
    by_hand = bytes((0x30, len(text) + 2, 0x0C, len(text))) + text
    assert certificates.permanent_identifier(raw("ak", "name")).value == raw("ak", "permanent_identifier") == by_hand


def seed_by_hand() -> bytes:
    """Part 1, C.6.4 and 11.4.10.3: KDFe over the shared point's x, "IDENTITY", and the two x."""
    encrypted = raw("credential", "encrypted_secret")
    assert (encrypted[:2], encrypted[34:36], len(encrypted)) == (b"\x00\x20", b"\x00\x20", 68)
    x, y = int.from_bytes(encrypted[2:34]), int.from_bytes(encrypted[36:])
    assert (y * y - (x * x * x - 3 * x)) % P == (0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B)
    shared, own = times(EK_SECRET, (x, y)), times(EK_SECRET, G)
    assert shared is not None and own is not None
    parts = (b"\0\0\0\1", shared[0].to_bytes(32), b"IDENTITY\0", x.to_bytes(32), own[0].to_bytes(32))
    return sha256(b"".join(parts)).digest()


def kdf_a(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """Part 1, 11.4.10.2, for one block."""
    return hmac.digest(key, b"\0\0\0\1" + label + b"\0" + context + bits.to_bytes(4), "sha256")[: bits // 8]


def test_the_golden_credential_opens() -> None:
    seed, name = seed_by_hand(), raw("ak", "name")
    made = raw("credential", "credential")
    integrity, encrypted = made[2:34], made[34:]
    assert made[:2] == b"\x00\x20"
    assert integrity == hmac.digest(kdf_a(seed, b"INTEGRITY", b"", 256), encrypted + name, "sha256")
    # CFB: each block of plaintext is the cipher of the ciphertext's block before it, and the ciphertext.
    block = Cipher(AES(kdf_a(seed, b"STORAGE", name, 128)), modes.ECB()).encryptor()
    before, plain = bytes(16), b""
    for at in range(0, len(encrypted), 16):
        part = encrypted[at : at + 16]
        plain += bytes(a ^ b for a, b in zip(part, block.update(before), strict=False))
        before = part
    assert plain == b"\x00\x20" + raw("credential", "secret")
    assert credential.seed_of(pki.private_key(EK_SECRET), raw("credential", "encrypted_secret")) == seed
    assert credential.unwrap(seed, name, made) == raw("credential", "secret")
    assert credential.wrap(seed, name, raw("credential", "secret")) == made


def test_the_golden_quote_holds() -> None:
    quote = TPM["quote"]
    told = raw("quote", "attest")
    values = tuple(bytes.fromhex(value) for value in quote["pcr_values"])
    assert told[:6].hex() == "ff5443478018"
    assert told[6 + 36 : 6 + 36 + 34] == b"\x00\x20" + raw("quote", "nonce")
    assert told[-44:] == bytes.fromhex("00000001 000b 03 ff0000 0020") + sha256(b"".join(values)).digest()
    assert verifies_by_hand(times(AK_SECRET, G), told, raw("quote", "signature"))
    facts = Quoted(
        ak=decode(Public, raw("ak", "area")),
        quote=Attestation(told, raw("quote", "signature")),
        nonce=raw("quote", "nonce"),
        bank=quote["pcr_bank"],
        selection=raw("quote", "pcr_selection"),
        pcr_values=values,
    )
    attest.require(attest.QUOTE, facts)


def test_the_golden_certification_holds() -> None:
    told, request = raw("certification", "attest"), bytes.fromhex(GOLDEN["csr"])
    assert told[:6].hex() == "ff5443478017"
    assert told[6 + 36 : 6 + 36 + 34] == b"\x00\x20" + sha256(request).digest()
    assert told[-72:-36] == b"\x00\x22" + raw("node_key_name")
    assert verifies_by_hand(times(AK_SECRET, G), told, raw("certification", "signature"))
    facts = Certified(
        ak=decode(Public, raw("ak", "area")),
        certification=Attestation(told, raw("certification", "signature")),
        key=decode(Public, raw("node_key_area")),
        spki=csr.key_of(request),
        csr_sha256=sha256(request).digest(),
    )
    attest.require(attest.CERTIFICATION, facts)
