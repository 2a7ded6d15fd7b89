"""What a TPM proves with its keys: an endorsement key's template, an attestation key, a quote, a certified key.

The numbers are those of docs/protocol.md, "Checking a machine's TPM". A check is a row of a table, so that the tests
can take any one out and see what it alone kept away. What the TPM says of its clock and its PCRs decides nothing.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from typing import TypeVar

from bcd.domain.model.attestation import Attestation
from bcd.protocol.pki import ecdsa
from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.structures import (
    GENERATED,
    Algorithm,
    Attest,
    Attribute,
    CertifyInfo,
    EccParameters,
    PcrSelection,
    Point,
    Public,
    QuoteInfo,
    Scheme,
    Tag,
)
from bcd.protocol.tpm2.wire import Malformed, decode

F = TypeVar("F")
DIGEST_BYTES = {
    Algorithm.SHA1: 20,
    Algorithm.SHA256: 32,
    Algorithm.SHA384: 48,
    Algorithm.SHA512: 64,
    Algorithm.SM3_256: 32,
}
_HEAD_BYTES = 6
# TPMA_OBJECT that an attestation key has, and has not: what it signs is the TPM's own word, and it is in no other TPM.
_AK_HAS = (
    Attribute.RESTRICTED
    | Attribute.SIGN
    | Attribute.FIXED_TPM
    | Attribute.FIXED_PARENT
    | Attribute.SENSITIVE_DATA_ORIGIN
)
_AK_SCHEME = Scheme(Algorithm.ECDSA, Algorithm.SHA256)


class Check(IntEnum):
    EK_TEMPLATE = 3
    AK_UNFIT = 4
    CHALLENGE_MISMATCH = 6
    CHALLENGE_EXPIRED = 7
    SECRET_WRONG = 8
    QUOTE_SIGNATURE = 9
    QUOTE_MALFORMED = 10
    QUOTE_MAGIC = 11
    QUOTE_TYPE = 12
    QUOTE_NONCE = 13
    QUOTE_SELECTION = 14
    QUOTE_DIGEST = 15
    CERTIFICATION_MISSING = 16
    CERTIFICATION_SIGNATURE = 17
    CERTIFICATION_MALFORMED = 18
    CERTIFICATION_MAGIC = 19
    CERTIFICATION_TYPE = 20
    CERTIFICATION_DATA = 21
    CERTIFIED_NAME = 22
    NODE_KEY_MISMATCH = 23
    NODE_KEY_TEMPLATE = 24


class DoesNotHold(Exception):
    """The check that failed, and in words what is there instead."""

    def __init__(self, check: Check, detail: str) -> None:
        super().__init__(f"{check}: {detail}")
        self.check = check
        self.detail = detail


# Whether it holds: an empty text, or what is there instead.
Row = tuple[Check, Callable[[F], str]]


def require(rows: Sequence[Row[F]], facts: F) -> None:
    """DoesNotHold for the first that does not."""
    for check, wrong in rows:
        detail = wrong(facts)
        if detail:
            raise DoesNotHold(check, detail)


@dataclass(frozen=True)
class Quoted:
    """A quote by the key in `ak`, and what was asked for: `nonce`, and of `bank` the PCRs in `selection`."""

    ak: Public
    quote: Attestation
    nonce: bytes
    bank: int
    selection: bytes
    pcr_values: tuple[bytes, ...]

    @cached_property
    def attest(self) -> Attest:
        return _read(self.quote, Tag.ATTEST_QUOTE)

    @property
    def info(self) -> QuoteInfo:
        assert isinstance(self.attest.attested, QuoteInfo)  # noqa: S101 - read as one
        return self.attest.attested


@dataclass(frozen=True)
class Certified:
    """A certification of the key in `key` by the one in `ak`, over `csr_sha256`; `spki` is the key of that request."""

    ak: Public
    certification: Attestation
    key: Public
    spki: bytes
    csr_sha256: bytes

    @cached_property
    def attest(self) -> Attest:
        return _read(self.certification, Tag.ATTEST_CERTIFY)

    @property
    def info(self) -> CertifyInfo:
        assert isinstance(self.attest.attested, CertifyInfo)  # noqa: S101 - read as one
        return self.attest.attested


def _read(attestation: Attestation, tag: Tag) -> Attest:
    """All of it but the head, as what it has to be: that the head says so is a check of its own."""
    head = GENERATED.to_bytes(4) + tag.to_bytes(2)
    return decode(Attest, head + attestation.attest[_HEAD_BYTES:])


def _signature(ak: Public, attestation: Attestation) -> str:
    try:
        key = ecdsa.public_key(names.spki(ak))
    except (Malformed, ecdsa.MalformedKey):
        return "no P-256 key to verify it with"
    if ecdsa.verifies(key, attestation.attest, attestation.signature):
        return ""
    return "the attestation key did not sign it"


def _form(read: Callable[[], object]) -> str:
    try:
        read()
    except Malformed as error:
        return str(error)
    return ""


def _magic(attestation: Attestation) -> str:
    return "" if attestation.attest[:4] == GENERATED.to_bytes(4) else f"it begins {attestation.attest[:4].hex()}"


def _type(attestation: Attestation, tag: Tag) -> str:
    found = attestation.attest[4:_HEAD_BYTES]
    return "" if found == tag.to_bytes(2) else f"its type is 0x{found.hex()}"


def _data(attest: Attest, wanted: bytes) -> str:
    return "" if hmac.compare_digest(attest.extra_data, wanted) else "it is about something else"


def _selection(facts: Quoted) -> str:
    if facts.info.pcrs == (PcrSelection(facts.bank, facts.selection),):
        return ""
    found = ", ".join(f"0x{one.bank:04x}:{one.selected.hex()}" for one in facts.info.pcrs)
    return f"it is over {found or 'no PCR'}, asked for 0x{facts.bank:04x}:{facts.selection.hex()}"


def _digest(facts: Quoted) -> str:
    count = sum(byte.bit_count() for byte in facts.selection)
    if [len(value) for value in facts.pcr_values] != [DIGEST_BYTES.get(Algorithm(facts.bank), 0)] * count:
        return f"{len(facts.pcr_values)} PCRs, or of another length than the bank's, where {count} were asked for"
    # Of the signature's hash, whatever the bank's is (Part 2, 10.12.1).
    digest = sha256(b"".join(facts.pcr_values)).digest()
    return "" if digest == facts.info.pcr_digest else "the PCR values are not those of the quote"


def _name(facts: Certified) -> str:
    own = names.name(facts.key)
    return "" if facts.info.name == own else f"it certifies {facts.info.name.hex()}, the key is {own.hex()}"


def _point(facts: Certified) -> str:
    try:
        return "" if names.spki(facts.key) == facts.spki else "the request is for another key"
    except Malformed as error:
        return str(error)


def _node_key(facts: Certified) -> str:
    template = templates.node_key(bytes(templates.UNIQUE_BYTES))
    if templates.same_but_unique(facts.key, template):
        return ""
    return f"no key of the template (attributes 0x{facts.key.attributes:08x}, want 0x{template.attributes:08x})"


def _ek(ek: Public) -> str:
    if any(templates.same_but_unique(ek, one) for one in (templates.EK_RSA_2048, templates.EK_ECC_P256)):
        # What is no modulus of the template's length cannot be encrypted to.
        return "" if isinstance(ek.unique, Point) or templates.is_modulus(ek.unique) else "no modulus of 2048 bits"
    return f"neither of the templates L-1 and L-2 (attributes 0x{ek.attributes:08x}, policy {ek.policy.hex()})"


def _ak(ak: Public) -> str:
    parameters = ak.parameters
    if not isinstance(parameters, EccParameters) or parameters.scheme != _AK_SCHEME:
        return "no key for ECDSA with SHA-256"
    if ak.name_algorithm != Algorithm.SHA256:
        return f"its name is of algorithm 0x{ak.name_algorithm:04x}"
    if ak.attributes & _AK_HAS != _AK_HAS or ak.attributes & Attribute.DECRYPT:
        return f"attributes 0x{ak.attributes:08x}"
    # And it is a point of P-256.
    return _form(lambda: names.spki(ak))


ENDORSEMENT_KEY: tuple[Row[Public], ...] = ((Check.EK_TEMPLATE, _ek),)
ATTESTATION_KEY: tuple[Row[Public], ...] = ((Check.AK_UNFIT, _ak),)
QUOTE: tuple[Row[Quoted], ...] = (
    (Check.QUOTE_SIGNATURE, lambda facts: _signature(facts.ak, facts.quote)),
    (Check.QUOTE_MALFORMED, lambda facts: _form(lambda: facts.attest)),
    (Check.QUOTE_MAGIC, lambda facts: _magic(facts.quote)),
    (Check.QUOTE_TYPE, lambda facts: _type(facts.quote, Tag.ATTEST_QUOTE)),
    (Check.QUOTE_NONCE, lambda facts: _data(facts.attest, facts.nonce)),
    (Check.QUOTE_SELECTION, _selection),
    (Check.QUOTE_DIGEST, _digest),
)
CERTIFICATION: tuple[Row[Certified], ...] = (
    (Check.CERTIFICATION_SIGNATURE, lambda facts: _signature(facts.ak, facts.certification)),
    (Check.CERTIFICATION_MALFORMED, lambda facts: _form(lambda: facts.attest)),
    (Check.CERTIFICATION_MAGIC, lambda facts: _magic(facts.certification)),
    (Check.CERTIFICATION_TYPE, lambda facts: _type(facts.certification, Tag.ATTEST_CERTIFY)),
    (Check.CERTIFICATION_DATA, lambda facts: _data(facts.attest, facts.csr_sha256)),
    (Check.CERTIFIED_NAME, _name),
    (Check.NODE_KEY_MISMATCH, _point),
    (Check.NODE_KEY_TEMPLATE, _node_key),
)
