"""A TPM manufacturer: CAs and endorsement keys' certificates, in form or out of it as those of real chips are.

Put together by hand, since a library that makes certificates makes none that departs from DER. Keys are fixed by a
number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import shake_256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

EK_PURPOSE = "2.23.133.8.1"
RSA_ENCRYPTION, RSAES_OAEP = "1.2.840.113549.1.1.1", "1.2.840.113549.1.1.7"
NULL = b"\x05\x00"
# Of a critical that is bytes, these are its content.
Extension = tuple[str, bool | bytes, bytes]


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    return tlv(0x06, b"".join(_base_128(number) for number in (40 * first + second, *rest)))


def _base_128(number: int) -> bytes:
    low = bytes((number & 0x7F,))
    while number := number >> 7:
        low = bytes((number & 0x7F | 0x80,)) + low
    return low


def integer(number: int) -> bytes:
    return tlv(0x02, number.to_bytes(number.bit_length() // 8 + 1, signed=True))


def name(common: str, *, organization: str = "Maker Ltd", one_set: bool = False, sorted_: bool = True) -> bytes:
    """A relative name an attribute, or all in one set, which DER wants sorted: `sorted_` False is how Nuvoton does."""
    attributes = [
        tlv(0x30, oid(kind), tlv(tag, text.encode()))
        for kind, tag, text in (
            ("2.5.4.3", 0x0C, common),
            ("2.5.4.10", 0x0C, organization),
            ("2.5.4.6", 0x13, "XX"),
        )
    ]
    if not one_set:
        return tlv(0x30, *(tlv(0x31, one) for one in attributes))
    return tlv(0x30, tlv(0x31, *sorted(attributes, reverse=not sorted_)))


EMPTY_NAME = tlv(0x30)


def extension(kind: str, value: bytes, critical: bool | bytes = True) -> Extension:
    return kind, critical, value


def basic_constraints(ca: bool, path_length: int | None = None, critical: bool = True) -> Extension:
    length = [integer(path_length)] if path_length is not None else []
    return extension("2.5.29.19", tlv(0x30, *([tlv(0x01, b"\xff")] if ca else []), *length), critical)


def key_usage(bits: int, critical: bool = True) -> Extension:
    """`bits` from the first, as they stand: 0x20 keyEncipherment, 0x04 keyCertSign."""
    return extension("2.5.29.15", tlv(0x03, b"\x00", bytes((bits,))), critical)


def purposes(*dotted: str, critical: bool = False) -> Extension:
    return extension("2.5.29.37", tlv(0x30, *map(oid, dotted)), critical)


def tpm_names(critical: bool = True, more: bytes = b"") -> Extension:
    """subjectAltName: manufacturer, model and version of the TPM in a directory name."""
    rows = [
        tlv(0x31, tlv(0x30, oid(kind), tlv(0x0C, text)))
        for kind, text in (("2.23.133.2.1", b"id:4D4B5200"), ("2.23.133.2.2", b"MK-1"), ("2.23.133.2.3", b"id:0100"))
    ]
    return extension("2.5.29.17", tlv(0x30, tlv(0xA4, tlv(0x30, *rows)), more), critical)


def rsa_spki(modulus: int, algorithm: str = RSA_ENCRYPTION, parameters: bytes = NULL, exponent: int = 65537) -> bytes:
    key = tlv(0x30, integer(modulus), integer(exponent))
    return tlv(0x30, tlv(0x30, oid(algorithm), parameters), tlv(0x03, b"\x00", key))


def modulus(number: int) -> int:
    """Of an endorsement key nobody has the private half of: 2048 bits that are as good as any."""
    return int.from_bytes(shake_256(number.to_bytes(8)).digest(256)) | 1 << 2047 | 1


def spki_of(key: Any) -> bytes:
    public: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return public


def ec_key(number: int, curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number, curve or ec.SECP256R1())


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """A CA's; made once a run, as it takes long."""
    return rsa.generate_private_key(65537, 2048)


_SIGNATURES: dict[str, hashes.HashAlgorithm] = {
    "1.2.840.113549.1.1.5": hashes.SHA1(),
    "1.2.840.113549.1.1.11": hashes.SHA256(),
    "1.2.840.113549.1.1.12": hashes.SHA384(),
    "1.2.840.113549.1.1.13": hashes.SHA512(),
    "1.2.840.10045.4.3.2": hashes.SHA256(),
    "1.2.840.10045.4.3.3": hashes.SHA384(),
    "1.2.840.10045.4.3.4": hashes.SHA512(),
}
ECDSA_SHA256, RSA_SHA256, RSA_SHA1 = "1.2.840.10045.4.3.2", "1.2.840.113549.1.1.11", "1.2.840.113549.1.1.5"


def _critical(critical: bool | bytes) -> list[bytes]:
    if isinstance(critical, bytes):
        return [tlv(0x01, critical)]
    return [tlv(0x01, b"\xff")] if critical else []


@dataclass(frozen=True)
class Form:
    """A certificate before it is signed. `serial` is the INTEGER's content; `algorithm` the signature's."""

    issuer: bytes
    subject: bytes
    spki: bytes
    extensions: Sequence[Extension]
    serial: bytes = b"\x11\x22"
    not_before: bytes = b"200101000000Z"
    not_after: bytes | None = b"300101000000Z"
    algorithm: str = ECDSA_SHA256
    version: bytes = tlv(0xA0, integer(2))

    def _dates(self) -> list[bytes]:
        return [at for at in (self.not_before, self.not_after) if at is not None]

    def signed(self, key: Any) -> bytes:
        algorithm = tlv(0x30, oid(self.algorithm), *([NULL] if self.algorithm.startswith("1.2.840.113549") else []))
        rows = [
            tlv(0x30, oid(kind), *_critical(critical), tlv(0x04, value)) for kind, critical, value in self.extensions
        ]
        tbs = tlv(
            0x30,
            self.version,
            tlv(0x02, self.serial),
            algorithm,
            self.issuer,
            tlv(0x30, *(tlv(0x17 if len(at) < 15 else 0x18, at) for at in self._dates())),
            self.subject,
            self.spki,
            *([tlv(0xA3, tlv(0x30, *rows))] if rows else []),
        )
        digest = _SIGNATURES.get(self.algorithm, hashes.SHA256())
        if isinstance(key, rsa.RSAPrivateKey):
            signature = key.sign(tbs, padding.PKCS1v15(), digest)
        else:
            signature = key.sign(tbs, ec.ECDSA(digest))
        return tlv(0x30, tbs, algorithm, tlv(0x03, b"\x00", signature))


@dataclass(frozen=True)
class Ca:
    """One that can sign, with its certificate."""

    key: Any
    name: bytes
    der: bytes
    algorithm: str = ECDSA_SHA256

    def form(self, subject: bytes, spki: bytes, extensions: Sequence[Extension]) -> Form:
        return Form(self.name, subject, spki, extensions, algorithm=self.algorithm)

    def ek(self, spki: bytes, **changes: Any) -> bytes:
        """An endorsement key's certificate as the TCG wants it, with departures."""
        usual = (tpm_names(), basic_constraints(False), key_usage(0x20), purposes(EK_PURPOSE))
        return replace(self.form(EMPTY_NAME, spki, usual), **changes).signed(self.key)

    def below(self, number: int, common: str, **changes: Any) -> Ca:
        """A CA this one signs."""
        key, subject = ec_key(number), name(common)
        usual = (basic_constraints(True), key_usage(0x04))
        form = replace(self.form(subject, spki_of(key), usual), **changes)
        return Ca(key, form.subject, form.signed(self.key))


def root(number: int = 9001, common: str = "Maker Root CA", *, subject: bytes | None = None, **changes: Any) -> Ca:
    """A CA that signed itself."""
    key, own = ec_key(number), subject or name(common)
    usual = (basic_constraints(True), key_usage(0x04))
    return Ca(key, own, replace(Form(own, own, spki_of(key), usual), **changes).signed(key))


def rsa_root(common: str = "Maker RSA Root CA", algorithm: str = RSA_SHA256) -> Ca:
    key, own = rsa_key(), name(common)
    usual = (basic_constraints(True), key_usage(0x04))
    return Ca(key, own, Form(own, own, spki_of(key), usual, algorithm=algorithm).signed(key), algorithm)


# What stands before a certificate on some chips: stored certificate, full, its size; full certificate.
def with_tcg_header(der: bytes) -> bytes:
    return b"\x10\x01\x00" + len(der).to_bytes(2) + b"\x10\x02" + der


def padded(der: bytes, filler: bytes = b"\xff", size: int = 1600) -> bytes:
    return der.ljust(size, filler)
