"""Certificates of TPM manufacturers, read leniently: those of endorsement keys, and of the CAs above them.

Lenient on purpose, and here alone. A chip holds what its maker wrote into it years ago: padding behind the
certificate, a header before it, serial numbers with zeros in front or a sign, sets out of order (seven CAs of one
maker, in their own names), keys named as RSAES-OAEP. A parser that insists on DER refuses genuine TPMs. Nothing is
believed for being readable: `controlplane.domain.ek_chain` goes by signatures over the bytes as they stand, and this
is the one reader of those bytes, so that no second one can find something else in them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from bcd.protocol.pki import der, ek_names
from bcd.protocol.pki.der import Value
from bcd.protocol.pki.ek_names import Name

# Certificates of TPMs have about 1.2 KB, of their CAs at most some more.
MAX_BYTES = 1 << 14
# TCG PC Client Specific Implementation Specification for Conventional BIOS, 7.4.5: 10 01 00, the size in two bytes,
# 10 02 before a certificate. Room for a longer one.
MAX_HEADER_BYTES = 16
# A chain on the chip (TCG EK Credential Profile, 2.2.1.5.2) is two or three certificates.
MAX_CHAIN_BYTES = 1 << 16
MAX_CHAIN = 8
_PADDING = b"\x00\xff"

BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE = "2.5.29.19", "2.5.29.15", "2.5.29.37"
SUBJECT_ALTERNATIVE_NAME, CERTIFICATE_POLICIES = "2.5.29.17", "2.5.29.32"
# rsaEncryption and id-RSAES-OAEP (RFC 4055, 4.1): the same key, and the TPM says how it is used.
_RSA = ("1.2.840.113549.1.1.1", "1.2.840.113549.1.1.7")
# RSA-8192 and a 64-bit exponent, each with a zero before it: more is only there to keep a verifier busy.
_MAX_MODULUS_BYTES, _MAX_EXPONENT_BYTES = 1025, 9
_KEY_CERT_SIGN = 5


class _Tag(IntEnum):
    BOOLEAN = 0x01
    INTEGER = 0x02
    BIT_STRING = 0x03
    OCTET_STRING = 0x04
    OID = 0x06
    UTC_TIME = 0x17
    GENERALIZED_TIME = 0x18
    SEQUENCE = 0x30
    VERSION = 0xA0
    EXTENSIONS = 0xA3
    # GeneralName: directoryName
    DIRECTORY_NAME = 0xA4


class Malformed(ValueError):
    """No certificate in these bytes; the message says why not."""


@dataclass(frozen=True)
class Extension:
    """`oid` dotted; `value` what the OCTET STRING holds."""

    oid: str
    critical: bool
    value: bytes


@dataclass(frozen=True)
class ManufacturerCertificate:
    """`der` is exactly the certificate, `signed` the part its `signature` covers. `spki` is the key's DER
    SubjectPublicKeyInfo as everybody writes it: rsaEncryption with NULL, or a named curve and an uncompressed point.

    `is_ca` is None without basic constraints, `purposes` (extended key usage) None without any, `signs_certificates`
    None without a key usage. Dates are None when they cannot be read."""

    der: bytes
    signed: bytes
    signature_algorithm: str
    signature: bytes
    issuer: Name
    subject: Name
    not_before: datetime | None
    not_after: datetime | None
    spki: bytes
    is_ca: bool | None
    path_length: int | None
    signs_certificates: bool | None
    purposes: tuple[str, ...] | None
    names_directories: bool
    critical: tuple[str, ...]


def read(data: bytes) -> ManufacturerCertificate:
    """The first certificate in `data`, as a TPM's memory holds it: what is behind it is dropped, and so is up to
    MAX_HEADER_BYTES before it. Malformed for anything else."""
    if len(data) > MAX_BYTES:
        raise Malformed(f"{len(data)} bytes are more than a certificate has")
    if not data.strip(_PADDING):
        raise Malformed("only padding" if data else "empty")
    why = Malformed("no certificate in it")
    for at in range(min(MAX_HEADER_BYTES + 1, len(data))):
        if data[at] != _Tag.SEQUENCE:
            continue
        try:
            outer = der.first(data[at:])
            to_be_signed, algorithm, signature = _of(outer, _Tag.SEQUENCE, _Tag.SEQUENCE, _Tag.BIT_STRING)
        except der.NotDer:
            continue
        try:
            return _certificate(outer.der, to_be_signed, algorithm, signature)
        except der.NotDer:
            why = Malformed("its parts do not parse")
        except Malformed as error:
            why = error
    raise why


def read_authority(data: bytes) -> ManufacturerCertificate:
    """A CA's certificate, as `read` reads it; Malformed when it is another's."""
    found = read(data)
    if not found.is_ca or found.signs_certificates is False:
        raise Malformed(f"not a CA's certificate: {found.subject}")
    return found


def read_all(parts: Iterable[bytes]) -> tuple[ManufacturerCertificate, ...]:
    """The certificates that stand one behind the other in `parts`, padding between them or not, up to the first thing
    that is none; at most MAX_CHAIN. A certificate may begin in one part and end in the next."""
    data = b"".join(parts)[:MAX_CHAIN_BYTES]
    found: list[ManufacturerCertificate] = []
    while len(found) < MAX_CHAIN and (data := data.lstrip(_PADDING)):
        try:
            found.append(read(der.first(data).der))
        except (Malformed, der.NotDer):
            break
        data = data[len(der.first(data).der) :]
    return tuple(found)


def _of(value: Value, *tags: int) -> tuple[Value, ...]:
    """What stands in `value`, which must be of these kinds."""
    parts = der.values(value.content)
    if tuple(part.tag for part in parts) != tags:
        raise der.NotDer
    return parts


def _certificate(whole: bytes, to_be_signed: Value, algorithm: Value, signature: Value) -> ManufacturerCertificate:
    parts = list(der.values(to_be_signed.content))
    if parts and parts[0].tag == _Tag.VERSION:
        del parts[0]
    if [part.tag for part in parts[:6]] != [_Tag.INTEGER, *[_Tag.SEQUENCE] * 5]:
        raise Malformed("its parts are not those of a certificate")
    _, inner, issuer, validity, subject, key = parts[:6]
    extensions = _extensions(parts[6:])
    if _oid_in(inner) != _oid_in(algorithm):
        raise Malformed("it names two signature algorithms")
    if not signature.content:
        raise Malformed("it has no signature")
    dates = der.values(validity.content)
    constraints = _constraints(extensions.get(BASIC_CONSTRAINTS))
    return ManufacturerCertificate(
        der=whole,
        signed=to_be_signed.der,
        signature_algorithm=_oid_in(inner),
        signature=signature.content[1:],
        issuer=ek_names.read(issuer),
        subject=ek_names.read(subject),
        not_before=_time(dates[0]) if dates else None,
        not_after=_time(dates[1]) if len(dates) > 1 else None,
        spki=_spki(key),
        is_ca=constraints[0] if constraints else None,
        path_length=constraints[1] if constraints else None,
        signs_certificates=_signs(extensions.get(KEY_USAGE)),
        purposes=_purposes(extensions.get(EXTENDED_KEY_USAGE)),
        names_directories=_names_directories(extensions.get(SUBJECT_ALTERNATIVE_NAME)),
        critical=tuple(one.oid for one in extensions.values() if one.critical),
    )


def _extensions(parts: list[Value]) -> dict[str, Extension]:
    """By object identifier: one that is there twice would be two answers to one question."""
    found: dict[str, Extension] = {}
    for holder in parts:
        if holder.tag != _Tag.EXTENSIONS:
            continue
        for value in der.values(_of(holder, _Tag.SEQUENCE)[0].content):
            one = _extension(value)
            if one.oid in found:
                raise Malformed(f"it has the extension {one.oid} twice")
            found[one.oid] = one
    return found


def _extension(value: Value) -> Extension:
    parts = der.values(value.content)
    match [part.tag for part in parts]:
        case [_Tag.OID, _Tag.OCTET_STRING]:
            return Extension(_oid(parts[0]), False, parts[1].content)
        case [_Tag.OID, _Tag.BOOLEAN, _Tag.OCTET_STRING]:
            return Extension(_oid(parts[0]), any(parts[1].content), parts[2].content)
    raise der.NotDer


def _constraints(extension: Extension | None) -> tuple[bool, int | None] | None:
    if extension is None:
        return None
    is_ca, length = False, None
    for part in der.values(der.first(extension.value).content):
        if part.tag == _Tag.BOOLEAN:
            is_ca = any(part.content)
        elif part.tag == _Tag.INTEGER and len(part.content) <= 2:
            length = max(0, int.from_bytes(part.content, signed=True))
        else:
            raise der.NotDer
    return is_ca, length


def _signs(extension: Extension | None) -> bool | None:
    """Bit 5 of KeyUsage, counted from the first."""
    if extension is None:
        return None
    bits = der.first(extension.value)
    if bits.tag != _Tag.BIT_STRING:
        raise der.NotDer
    return len(bits.content) > 1 and bool(bits.content[1] & (0x80 >> _KEY_CERT_SIGN))


def _purposes(extension: Extension | None) -> tuple[str, ...] | None:
    if extension is None:
        return None
    return tuple(_oid(part) for part in der.values(der.first(extension.value).content))


def _names_directories(extension: Extension | None) -> bool:
    """Whether the subject's alternative names are directory names, every one: the TCG's model and version of a TPM."""
    if extension is None:
        return False
    names = der.values(der.first(extension.value).content)
    return bool(names) and all(name.tag == _Tag.DIRECTORY_NAME for name in names)


def _oid(value: Value) -> str:
    if value.tag != _Tag.OID:
        raise der.NotDer
    return der.dotted(value.content)


def _oid_in(algorithm: Value) -> str:
    parts = der.values(algorithm.content)
    if not parts:
        raise der.NotDer
    return _oid(parts[0])


def _spki(value: Value) -> bytes:
    algorithm, bits = _of(value, _Tag.SEQUENCE, _Tag.BIT_STRING)
    try:
        if _oid_in(algorithm) in _RSA:
            modulus, exponent = _of(der.first(bits.content[1:]), _Tag.INTEGER, _Tag.INTEGER)
            if len(modulus.content) > _MAX_MODULUS_BYTES or len(exponent.content) > _MAX_EXPONENT_BYTES:
                raise Malformed("its key is larger than RSA keys are")
            numbers = rsa.RSAPublicNumbers(int.from_bytes(exponent.content), int.from_bytes(modulus.content))
            key: object = numbers.public_key()
        else:
            key = load_der_public_key(value.der)
    except (ValueError, OverflowError, UnsupportedAlgorithm) as error:
        if isinstance(error, der.NotDer | Malformed):
            raise
        raise Malformed("its key is none that is known here") from None
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise Malformed("its key is neither RSA nor on a curve that is known here")
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


_TIMES: dict[int, Callable[[str], str]] = {
    # RFC 5280, 4.1.2.5.1: 50 to 99 are of the last century.
    _Tag.UTC_TIME: lambda text: ("19" if text[:2] >= "50" else "20") + text,
    _Tag.GENERALIZED_TIME: lambda text: text,
}


def _time(value: Value) -> datetime | None:
    """To the second, or to the minute where there are none."""
    try:
        text = _TIMES[value.tag](value.content.decode("ascii"))
        digits = text.removesuffix("Z")
        if not digits.isdecimal() or len(digits) not in (12, 14):
            return None
        return datetime.fromisoformat(f"{digits[:8]}T{digits[8:]}+00:00")
    except (KeyError, ValueError):
        return None
