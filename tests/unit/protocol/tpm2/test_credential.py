"""Credentials with fixed keys; tpm2_makecredential 5.4 made the blob."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.protocol.tpm2 import credential
from bcd.protocol.tpm2.wire import Malformed

EK = ec.derive_private_key(0x1234567890ABCDEF, ec.SECP256R1())
NAME = bytes.fromhex("000b" + "5a" * 32)
SECRET = bytes(range(100, 132))
MADE = bytes.fromhex(
    "002092440d3a3532dde3a95820f5ab31fe1dc4e96fd79ab652abca6ae7f161bd690a80ab27c552e12c0bbb4e42023b17"
    "d49023bfdd5d41d4da50c2f3081ec1fea47802dd"
)
ENCRYPTED = bytes.fromhex(
    "002091a7744fb40cef43b56055dedb9524491b208439faf7ec881aa413cc86f523230020bdefa34a79f4e3165a4ce6fb"
    "e9988774b4af5ac3dde350c1203bccaa7708f643"
)
SEED = bytes.fromhex("1dfed37e857c33c5800eed33edfbb1eccad7eb40d1d4d764375d66ca3c525f93")


def test_the_seed_is_the_one_tpm2_tools_agreed_on() -> None:
    assert credential.seed_of(EK, ENCRYPTED) == SEED


def test_the_secret_is_wrapped_as_tpm2_tools_wrap_it() -> None:
    assert credential.wrap(SEED, NAME, SECRET) == MADE
    assert credential.unwrap(SEED, NAME, MADE) == SECRET


@pytest.mark.parametrize("at", range(len(MADE)))
def test_a_changed_byte_does_not_open(at: int) -> None:
    changed = MADE[:at] + bytes([MADE[at] ^ 1]) + MADE[at + 1 :]
    with pytest.raises(Malformed):
        credential.unwrap(SEED, NAME, changed)


@pytest.mark.parametrize("length", range(len(MADE)))
def test_a_part_does_not_open(length: int) -> None:
    with pytest.raises(Malformed):
        credential.unwrap(SEED, NAME, MADE[:length])


@pytest.mark.parametrize("encrypted", [b"", ENCRYPTED[:-1], ENCRYPTED + b"\0", ENCRYPTED[:-1] + b"\0"])
def test_what_is_no_point_gives_no_seed(encrypted: bytes) -> None:
    with pytest.raises(Malformed):
        credential.seed_of(EK, encrypted)


def test_more_than_a_secret_does_not_open() -> None:
    """Rightly sealed, with a byte behind the TPM2B_DIGEST."""
    encryptor = credential._cipher(SEED, NAME).encryptor()
    encrypted = encryptor.update(len(SECRET).to_bytes(2) + SECRET + b"\0") + encryptor.finalize()
    integrity = credential._integrity(SEED, encrypted, NAME)
    with pytest.raises(Malformed, match="left over"):
        credential.unwrap(SEED, NAME, len(integrity).to_bytes(2) + integrity + encrypted)
