"""What each field of a command's structures may be, and the code for what it may not: as libtpms answers.

The algorithms are those of the profile and those that libtpms knows beside them, as far as the structures have them."""

from collections.abc import Callable
from typing import Any

from bcd.adapters.tpmsim.answers import Unfit
from bcd.adapters.tpmsim.handles import is_flushable, is_hierarchy, is_session
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import (
    ActivateCredentialIn,
    CertifyIn,
    CreatePrimaryIn,
    FlushContextIn,
    PcrReadIn,
    QuoteIn,
    SignIn,
    StartAuthSessionIn,
)
from bcd.protocol.tpm2.structures import (
    Algorithm,
    CommandAuth,
    Curve,
    EccParameters,
    Handle,
    HashCheck,
    PcrSelection,
    Public,
    RsaParameters,
    Tag,
)

Kept = dict[str, Any]
Check = Callable[[int], None] | Kept | None

PCR_SELECT_BYTES = 3
# MAX_RSA_KEY_BYTES of libtpms, which knows 3072 bits.
_MAX_RSA_BYTES = 384
# TPMA_OBJECT: bits no attribute has (Part 2, 8.3.2).
_RESERVED_ATTRIBUTES = 0xFFF0F309
# TPMA_SESSION (Part 2, 8.4).
_RESERVED_SESSION = 0x18


def one_of(rc: Rc, *allowed: int) -> Callable[[int], None]:
    def check(value: int) -> None:
        if value not in allowed:
            raise Unfit(rc)

    return check


def at_most(rc: Rc, bound: int) -> Callable[[int], None]:
    def check(value: int) -> None:
        if value > bound:
            raise Unfit(rc)

    return check


def no_bits_of(reserved: int) -> Callable[[int], None]:
    def check(value: int) -> None:
        if value & reserved:
            raise Unfit(Rc.RESERVED_BITS)

    return check


def handle(may_be: Callable[[int], bool]) -> Callable[[int], None]:
    def check(value: int) -> None:
        if not may_be(value):
            raise Unfit(Rc.VALUE)

    return check


HASHES = (Algorithm.SHA1, Algorithm.SHA256, Algorithm.SHA384, Algorithm.SHA512)
_HASH = one_of(Rc.HASH, *HASHES)
_ECC_SIGN = (Algorithm.ECDSA, Algorithm.SM2, Algorithm.ECSCHNORR)
_RSA_SIGN = (Algorithm.RSASSA, Algorithm.RSAPSS)
# CMAC, CTR, OFB, CBC and ECB beside CFB.
_MODES = (0x003F, 0x0040, 0x0041, 0x0042, Algorithm.CFB, 0x0044, Algorithm.NULL)
_CIPHER = {"key_bits": one_of(Rc.VALUE, 128, 256), "mode": one_of(Rc.MODE, *_MODES)}
_SYMMETRIC = {"algorithm": one_of(Rc.SYMMETRIC, Algorithm.AES, Algorithm.NULL), "cipher": _CIPHER}
_KDFS = (0x0007, 0x0020, 0x0022, Algorithm.NULL)
_SIGN_SCHEME = {"algorithm": one_of(Rc.SCHEME, *_ECC_SIGN, *_RSA_SIGN, Algorithm.NULL), "hash": _HASH}
_RSA_SCHEME = (*_RSA_SIGN, Algorithm.RSAES, Algorithm.OAEP, Algorithm.NULL)

# TPM_ST (Part 2, 6.9): what is no structure's tag at all is another mistake than one of another structure.
_TAGS = frozenset({0x00C4, *range(0x8000, 0x8003), *range(0x8014, 0x801B), *range(0x8021, 0x8026)})


def _ticket_tag(value: int) -> None:
    if value not in _TAGS:
        raise Unfit(Rc.VALUE)
    if value != Tag.HASHCHECK:
        raise Unfit(Rc.TAG)


FIELDS: dict[tuple[type[Any], str], Check] = {
    (Public, "type"): one_of(Rc.TYPE, Algorithm.RSA, Algorithm.ECC),
    (Public, "name_algorithm"): _HASH,
    # A modulus; a point has its own bounds.
    (Public, "unique"): at_most(Rc.SIZE, _MAX_RSA_BYTES),
    (Public, "attributes"): no_bits_of(_RESERVED_ATTRIBUTES),
    (RsaParameters, "symmetric"): _SYMMETRIC,
    (RsaParameters, "scheme"): {"algorithm": one_of(Rc.VALUE, *_RSA_SCHEME), "hash": _HASH},
    (RsaParameters, "key_bits"): one_of(Rc.VALUE, 1024, 2048, 3072),
    (EccParameters, "symmetric"): _SYMMETRIC,
    (EccParameters, "scheme"): {
        "algorithm": one_of(Rc.SCHEME, *_ECC_SIGN, Algorithm.NULL),
        "hash": _HASH,
    },
    (EccParameters, "curve"): one_of(Rc.CURVE, Curve.P256),
    (EccParameters, "kdf"): {"algorithm": one_of(Rc.KDF, *_KDFS), "hash": _HASH},
    (PcrSelection, "bank"): _HASH,
    (PcrSelection, "selected"): one_of(Rc.VALUE, PCR_SELECT_BYTES),
    (HashCheck, "tag"): _ticket_tag,
    (HashCheck, "hierarchy"): handle(is_hierarchy),
    (FlushContextIn, "handle"): handle(is_flushable),
    (CommandAuth, "session"): handle(lambda value: value == Handle.PASSWORD or is_session(value)),
    (CommandAuth, "attributes"): no_bits_of(_RESERVED_SESSION),
    (PcrReadIn, "selection"): at_most(Rc.SIZE, len(HASHES)),
    (QuoteIn, "pcrs"): at_most(Rc.SIZE, len(HASHES)),
    (CreatePrimaryIn, "pcrs"): at_most(Rc.SIZE, len(HASHES)),
    (StartAuthSessionIn, "encrypted_salt"): at_most(Rc.SIZE, _MAX_RSA_BYTES),
    (ActivateCredentialIn, "secret"): at_most(Rc.SIZE, _MAX_RSA_BYTES),
    (StartAuthSessionIn, "type"): one_of(Rc.VALUE, 0x00, 0x01, 0x03),
    (StartAuthSessionIn, "symmetric"): _SYMMETRIC,
    (StartAuthSessionIn, "hash"): _HASH,
    (QuoteIn, "scheme"): _SIGN_SCHEME,
    (CertifyIn, "scheme"): _SIGN_SCHEME,
    (SignIn, "scheme"): _SIGN_SCHEME,
}
