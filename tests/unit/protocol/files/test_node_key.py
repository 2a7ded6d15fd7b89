"""`node.key`: a PKCS#8 PEM or the record of a TPM key, whole or told (B06)."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.files.node_key import TpmRecord, decode, encode_file_key
from tests.fakes import pki
from tests.fakes.properties import few

FILE = encode_file_key(pki.NODE_KEY)
UNIQUE = bytes(range(100, 132))
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
PLAIN = serialization.NoEncryption()


def record(unique: bytes = UNIQUE, label: str = "BCD TPM NODE KEY") -> bytes:
    return f"-----BEGIN {label}-----\n{base64.b64encode(unique).decode()}\n-----END {label}-----\n".encode()


def pem(der: bytes, label: str = "PRIVATE KEY") -> bytes:
    lines = base64.encodebytes(der).decode().replace("\n", "")
    body = "\n".join(lines[i : i + 64] for i in range(0, len(lines), 64))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n".encode()


DER = pki.NODE_KEY.private_bytes(serialization.Encoding.DER, PKCS8, PLAIN)
P384 = ec.derive_private_key(7, ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32)
# An algorithm and a curve that nobody knows, in well-formed PKCS#8.
UNKNOWN_ALGORITHM = bytes.fromhex("3012020100300506032a0305040604040401ff0201"[:40])
UNKNOWN_CURVE = DER.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f"))


def secret(key: object) -> int:
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key.private_numbers().private_value


@few
@given(st.integers(1, 2**255))
def test_a_file_key_reads_back_as_itself(number: int) -> None:
    key = pki.private_key(number)
    found = decode(encode_file_key(key))
    assert secret(found) == number
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    assert pki.spki(found) == pki.spki(key)


def test_a_file_key_is_a_pkcs8_pem() -> None:
    assert FILE.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert FILE.endswith(b"\n-----END PRIVATE KEY-----\n")
    assert pem(DER) == FILE


@few
@given(st.binary(min_size=32, max_size=32))
def test_a_tpm_record_gives_its_unique(unique: bytes) -> None:
    assert decode(record(unique)) == TpmRecord(unique)


def test_a_record_shows_no_unique() -> None:
    assert repr(UNIQUE)[2:-1] not in repr(TpmRecord(UNIQUE))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"\x00", "holds only zero bytes"),
        (b"\x00" * 241, "holds only zero bytes"),
        (FILE[:100] + b"\x00" * 141, "is not a PKCS#8 PEM"),
        (FILE + b"\x00" * 100, "is not a PKCS#8 PEM"),
        (FILE + FILE, "is not a PKCS#8 PEM"),
        (b"\n" + FILE, "is not a PKCS#8 PEM"),
        (b"# my key\n" + FILE, "is not a PKCS#8 PEM"),
        (b"\xef\xbb\xbf" + FILE, "is not a PKCS#8 PEM"),
        (FILE + b"more", "is not a PKCS#8 PEM"),
        (DER, "is not a PKCS#8 PEM"),
        (b"{}", "is not a PKCS#8 PEM"),
        (pem(b""), "is not a PKCS#8 PEM"),
        (pem(DER[:-1]), "is not a PKCS#8 PEM"),
        (pem(DER + b"\x00"), "is not a PKCS#8 PEM"),
        (pem(UNKNOWN_ALGORITHM), "is not a PKCS#8 PEM"),
        (pem(UNKNOWN_CURVE), "is not a P"),
        (pem(DER, "ENCRYPTED PRIVATE KEY"), "is not a PKCS#8 PEM"),
        (pem(DER, "EC PRIVATE KEY"), "is not a PKCS#8 PEM"),
        (
            pki.NODE_KEY.private_bytes(PEM, serialization.PrivateFormat.TraditionalOpenSSL, PLAIN),
            "want PRIVATE KEY",
        ),
        (pki.NODE_KEY.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"x")), "is not a PKCS#8 PEM"),
        (
            pki.NODE_KEY.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            "is not a PKCS#8 PEM",
        ),
        (P384.private_bytes(PEM, PKCS8, PLAIN), "is not a P-256 key"),
        (ED.private_bytes(PEM, PKCS8, PLAIN), "is not a P-256 key"),
        (x25519.X25519PrivateKey.from_private_bytes(b"7" * 32).private_bytes(PEM, PKCS8, PLAIN), "is not a P-256 key"),
        (record()[:-1], "is a TPM record that is torn"),
        (record().replace(b"KEY-----\n", b"KEY----- \n", 1), "is a TPM record that is torn"),
        (record(bytes(31) + b"\x01").replace(b"AE=", b"AF="), "is a TPM record that is not base64"),
        (record() + b"\n", "is a TPM record that is torn"),
        (record() + FILE, "is a TPM record that is torn"),
        (record().replace(b"\n", b"\r\n"), "is a TPM record that is torn"),
        (record().replace(b"END BCD TPM", b"END BCD"), "is a TPM record that is torn"),
        (record(b"x" * 31), "is a TPM record of 31 bytes, want 32"),
        (record(b"x" * 33), "is a TPM record of 33 bytes, want 32"),
        (record(b""), "is a TPM record of 0 bytes, want 32"),
        (record().replace(b"=", b""), "is a TPM record that is not base64"),
        (record().replace(b"ZGV", b"ZG!"), "is a TPM record that is not base64"),
        (record().replace(b"ZGV", b"ZG\xe9"), "is a TPM record that is not base64"),
        (record(label="BCD TPM NODE KEYS"), "is not a PKCS#8 PEM"),
    ],
)
def test_nothing_else_is_a_key(data: bytes, why: str) -> None:
    """B06: a 0-byte key, and every other thing that lies where a key should."""
    assert secret(decode(FILE)) == 1001
    assert decode(record()) == TpmRecord(UNIQUE)
    with pytest.raises(MalformedFile, match=why):
        decode(data)


@pytest.mark.parametrize("data", [FILE, record()], ids=["file", "tpm"])
def test_a_key_torn_anywhere_is_malformed(data: bytes) -> None:
    """B06. A PKCS#8 PEM may lack its very last line end, as editors leave it: nothing of the key is in it."""
    for length in range(len(data) - 1):
        with pytest.raises(MalformedFile):
            decode(data[:length])
    for length in range(len(data) - 1):
        with pytest.raises(MalformedFile):
            decode(data[:length] + b"\x00" * (len(data) - length))
    assert secret(decode(FILE[:-1])) == 1001


@pytest.mark.parametrize("change", [0x01, 0x02, 0x20, 0x80])
def test_no_byte_changed_gives_a_key_that_signs_as_another(change: int) -> None:
    """A key whose two halves disagree would load, match the certificate, and fail every handshake."""
    for at in range(len(FILE)):
        changed = bytearray(FILE)
        changed[at] ^= change
        try:
            found = decode(bytes(changed))
        except MalformedFile:
            continue
        assert secret(found) == 1001
        assert isinstance(found, ec.EllipticCurvePrivateKey)
        assert pki.spki(found) == pki.spki(pki.NODE_KEY)


@few
@given(st.binary(max_size=80) | st.binary(max_size=160).map(pem))
def test_any_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode(data)
