"""What a TPM attests, judged: keys in software attest, each row of the tables is broken once."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.domain.model.attestation import Attestation
from bcd.protocol.pki import ecdsa
from bcd.protocol.tpm2 import attest, names, templates
from bcd.protocol.tpm2.attest import Certified, Check, DoesNotHold, Quoted
from bcd.protocol.tpm2.structures import (
    GENERATED,
    Attest,
    Attribute,
    CertifyInfo,
    ClockInfo,
    PcrSelection,
    Point,
    Public,
    QuoteInfo,
    Tag,
)
from bcd.protocol.tpm2.wire import encode

AK, NODE = (ec.derive_private_key(number, ec.SECP256R1()) for number in (7, 11))
NONCE, CSR = b"n" * 32, b"c" * 32
PCRS = tuple(bytes([number]) * 32 for number in range(3))
SELECTION = PcrSelection(11, b"\x07\0\0")
CLOCK = ClockInfo(1, 2, 3, 1)


def area(template: Public, key: ec.EllipticCurvePrivateKey) -> Public:
    point = key.public_key().public_numbers()
    return replace(template, unique=Point(point.x.to_bytes(32), point.y.to_bytes(32)))


AK_AREA, NODE_AREA = area(templates.AK, AK), area(templates.node_key(bytes(32)), NODE)
MODULUS = b"\x80" + bytes(254) + b"\1"
EK_RSA = replace(templates.EK_RSA_2048, unique=MODULUS)
NODE_SPKI = ecdsa.spki_of(NODE.public_key())


def signed(data: bytes, key: ec.EllipticCurvePrivateKey = AK) -> Attestation:
    return Attestation(data, ecdsa.sign(key, data))


def quote_bytes(nonce: bytes = NONCE, **changes: Any) -> bytes:
    info = QuoteInfo((SELECTION,), sha256(b"".join(PCRS)).digest())
    whole = Attest(GENERATED, Tag.ATTEST_QUOTE, b"signer", nonce, CLOCK, 9, replace(info, **changes))
    return encode(whole)


def quoted(data: bytes | None = None, **changes: Any) -> Quoted:
    right = Quoted(AK_AREA, signed(data or quote_bytes()), NONCE, 11, SELECTION.selected, PCRS)
    return replace(right, **changes)


def certified(
    name: bytes | None = None, csr: bytes = CSR, change: Any = lambda data: data, **changes: Any
) -> Certified:
    key = changes.get("key", NODE_AREA)
    info = CertifyInfo(names.name(key) if name is None else name, b"qualified")
    data = change(encode(Attest(GENERATED, Tag.ATTEST_CERTIFY, b"signer", csr, CLOCK, 9, info)))
    return replace(Certified(AK_AREA, signed(data), NODE_AREA, NODE_SPKI, CSR), **changes)


def fails(rows: Any, facts: Any) -> Check | None:
    try:
        attest.require(rows, facts)
    except DoesNotHold as error:
        assert error.detail
        return error.check
    return None


def test_what_is_right_holds() -> None:
    assert fails(attest.QUOTE, quoted()) is None
    assert fails(attest.CERTIFICATION, certified()) is None
    assert fails(attest.ATTESTATION_KEY, AK_AREA) is None
    assert [fails(attest.ENDORSEMENT_KEY, one) for one in (EK_RSA, templates.EK_ECC_P256)] == [None] * 2


@pytest.mark.parametrize(
    "modulus",
    [MODULUS[1:], MODULUS + b"\1", b"\x7f" + MODULUS[1:], MODULUS[:-1] + b"\2", b""],
    ids=["2040 bits", "2056 bits", "2047 bits", "even", "none"],
)
def test_an_endorsement_key_has_an_odd_modulus_of_2048_bits(modulus: bytes) -> None:
    assert fails(attest.ENDORSEMENT_KEY, replace(EK_RSA, unique=modulus)) is Check.EK_TEMPLATE


@pytest.mark.parametrize(
    ("facts", "check"),
    [
        (quoted(quote=signed(quote_bytes(), NODE)), Check.QUOTE_SIGNATURE),
        (quoted(ak=replace(AK_AREA, unique=Point(b"\1", b"\2"))), Check.QUOTE_SIGNATURE),
        (quoted(quote_bytes() + b"\0"), Check.QUOTE_MALFORMED),
        (quoted(quote_bytes()[:7]), Check.QUOTE_MALFORMED),
        (quoted(b"\0" + quote_bytes()[1:]), Check.QUOTE_MAGIC),
        (quoted(quote_bytes()[:5] + b"\x14" + quote_bytes()[6:]), Check.QUOTE_TYPE),
        (quoted(quote_bytes(b"m" * 32)), Check.QUOTE_NONCE),
        (quoted(quote_bytes(pcrs=())), Check.QUOTE_SELECTION),
        (quoted(selection=b"\x03\0\0"), Check.QUOTE_SELECTION),
        (quoted(bank=4), Check.QUOTE_SELECTION),
        (quoted(quote_bytes(pcr_digest=bytes(32))), Check.QUOTE_DIGEST),
        (quoted(pcr_values=PCRS[:2]), Check.QUOTE_DIGEST),
        (quoted(pcr_values=(PCRS[0] + PCRS[1], PCRS[2])), Check.QUOTE_DIGEST),
        (quoted(pcr_values=(PCRS[0] + PCRS[1][:1], PCRS[1][1:], PCRS[2])), Check.QUOTE_DIGEST),
    ],
    ids=str,
)
def test_a_quote_fails_at(facts: Quoted, check: Check) -> None:
    assert fails(attest.QUOTE, facts) is check


@pytest.mark.parametrize(
    ("facts", "check"),
    [
        (certified(ak=NODE_AREA), Check.CERTIFICATION_SIGNATURE),
        (certified(change=lambda data: data[:-1]), Check.CERTIFICATION_MALFORMED),
        (certified(change=lambda data: b"\0" + data[1:]), Check.CERTIFICATION_MAGIC),
        (certified(change=lambda data: data[:5] + b"\x18" + data[6:]), Check.CERTIFICATION_TYPE),
        (certified(csr=b"d" * 32), Check.CERTIFICATION_DATA),
        (certified(name=names.name(AK_AREA)), Check.CERTIFIED_NAME),
        (certified(spki=ecdsa.spki_of(AK.public_key())), Check.NODE_KEY_MISMATCH),
        (certified(key=replace(NODE_AREA, unique=Point(b"\1", b"\2"))), Check.NODE_KEY_MISMATCH),
        (certified(key=replace(NODE_AREA, attributes=NODE_AREA.attributes | Attribute.RESTRICTED)),
         Check.NODE_KEY_TEMPLATE),
    ],
    ids=str,
)  # fmt: skip
def test_a_certification_fails_at(facts: Certified, check: Check) -> None:
    assert fails(attest.CERTIFICATION, facts) is check


@pytest.mark.parametrize("bit", [Attribute.RESTRICTED, Attribute.SIGN, Attribute.FIXED_TPM, Attribute.FIXED_PARENT,
                                 Attribute.SENSITIVE_DATA_ORIGIN])  # fmt: skip
def test_an_attestation_key_has_each_of_its_attributes(bit: Attribute) -> None:
    assert fails(attest.ATTESTATION_KEY, replace(AK_AREA, attributes=AK_AREA.attributes & ~bit)) is Check.AK_UNFIT


@pytest.mark.parametrize(
    "area",
    [
        replace(AK_AREA, attributes=AK_AREA.attributes | Attribute.DECRYPT),
        replace(AK_AREA, name_algorithm=4),
        replace(AK_AREA, parameters=NODE_AREA.parameters),
        replace(AK_AREA, unique=Point(b"\1", b"\2")),
        EK_RSA,
    ],
    ids=["decrypts", "name of SHA-1", "no scheme", "no point", "RSA"],
)
def test_no_other_key_is_an_attestation_key(area: Public) -> None:
    assert fails(attest.ATTESTATION_KEY, area) is Check.AK_UNFIT


def test_stripped_coordinates_are_the_same_key() -> None:
    """Some TPMs send them without leading zeros (Part 1, C.8 lets them)."""
    key = next(
        key
        for number in range(1, 4000)
        if (key := ec.derive_private_key(number, ec.SECP256R1())).public_key().public_numbers().x < 1 << 248
    )
    point = key.public_key().public_numbers()
    stripped = replace(templates.AK, unique=Point(point.x.to_bytes(31), point.y.to_bytes(32)))
    data = quote_bytes()
    assert fails(attest.ATTESTATION_KEY, stripped) is None
    assert fails(attest.QUOTE, quoted(ak=stripped, quote=signed(data, key))) is None
