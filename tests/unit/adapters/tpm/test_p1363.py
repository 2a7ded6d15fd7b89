"""The two halves of a TPM's signature as everybody else reads them."""

import pytest

from bcd.adapters.tpm.keys import p1363
from bcd.protocol.tpm2.structures import Algorithm, EcdsaSignature
from bcd.protocol.tpm2.wire import Malformed

R, S = bytes(range(1, 33)), bytes(range(33, 65))


def halves(r: bytes, s: bytes) -> EcdsaSignature:
    return EcdsaSignature(Algorithm.SHA256, r, s)


@pytest.mark.parametrize(
    ("r", "s", "wanted"),
    [
        (R, S, R + S),
        # Zeros that a TPM strips, which one in 256 has.
        (R[1:], S, b"\0" + R[1:] + S),
        (R, S[2:], R + b"\0\0" + S[2:]),
        # Zeros that another one puts before.
        (b"\0" + R, b"\0\0" + S, R + S),
    ],
    ids=["as libtpms", "first stripped", "second stripped", "padded"],
)
def test_each_half_has_32_bytes_whatever_zeros_the_tpm_left_out_or_put_before(
    r: bytes, s: bytes, wanted: bytes
) -> None:
    assert p1363(halves(r, s)) == wanted


@pytest.mark.parametrize(("r", "s"), [(b"\x01" + R, S), (R, b"\x01" + S)])
def test_a_number_of_more_than_32_bytes_is_no_half_of_p256s(r: bytes, s: bytes) -> None:
    with pytest.raises(Malformed):
        p1363(halves(r, s))
