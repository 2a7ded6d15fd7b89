"""The structures of TPM 2.0 Library Part 2 that bcd's commands use, field by field in the specification's order."""

from enum import IntEnum
from typing import Annotated

from bcd.protocol.tpm2.declared import Structure
from bcd.protocol.tpm2.wire import U8, U16, U32, U64, Chosen, Constant, ListOf, Nested, Nothing, Sized, SizedOf


class Algorithm(IntEnum):
    """TPM_ALG_ID (Part 2, 6.3)."""

    RSA = 0x0001
    SHA1 = 0x0004
    AES = 0x0006
    KEYEDHASH = 0x0008
    SHA256 = 0x000B
    SHA384 = 0x000C
    SHA512 = 0x000D
    NULL = 0x0010
    SM3_256 = 0x0012
    SM4 = 0x0013
    RSASSA = 0x0014
    RSAES = 0x0015
    RSAPSS = 0x0016
    OAEP = 0x0017
    ECDSA = 0x0018
    SM2 = 0x001B
    ECSCHNORR = 0x001C
    ECC = 0x0023
    CAMELLIA = 0x0026
    CFB = 0x0043


class Curve(IntEnum):
    """TPM_ECC_CURVE (Part 2, 6.4)."""

    P256 = 0x0003


class Handle(IntEnum):
    """Permanent handles (Part 2, 7.4)."""

    OWNER = 0x40000001
    NULL = 0x40000007
    PASSWORD = 0x40000009
    ENDORSEMENT = 0x4000000B


class Tag(IntEnum):
    """TPM_ST (Part 2, 6.9)."""

    NO_SESSIONS = 0x8001
    SESSIONS = 0x8002
    ATTEST_CERTIFY = 0x8017
    ATTEST_QUOTE = 0x8018
    CREATION = 0x8021
    AUTH_SECRET = 0x8023
    HASHCHECK = 0x8024


# TPM_GENERATED_VALUE (Part 2, 6.2): what a TPM says starts with it, and a restricted key signs nothing else that does.
GENERATED = 0xFF544347


class Attribute(IntEnum):
    """TPMA_OBJECT (Part 2, 8.3)."""

    FIXED_TPM = 1 << 1
    FIXED_PARENT = 1 << 4
    SENSITIVE_DATA_ORIGIN = 1 << 5
    USER_WITH_AUTH = 1 << 6
    ADMIN_WITH_POLICY = 1 << 7
    NO_DA = 1 << 10
    RESTRICTED = 1 << 16
    DECRYPT = 1 << 17
    SIGN = 1 << 18


class NvAttribute(IntEnum):
    """TPMA_NV (Part 2, 13.4)."""

    OWNER_READ = 1 << 17
    AUTH_READ = 1 << 18
    WRITTEN = 1 << 29


# The longest digest is SHA-512's; a name has its algorithm before it.
MAX_DIGEST_BYTES = 64
MAX_NAME_BYTES = 2 + MAX_DIGEST_BYTES
# TPM2B_DATA: what a caller says along with a command has room for a digest and its algorithm.
MAX_DATA_BYTES = 2 + MAX_DIGEST_BYTES
MAX_ECC_BYTES = 66
MAX_RSA_BYTES = 512
# Part 2, TPML_DIGEST; HASH_COUNT of every TPM is below 16; more than 32 bytes of PCRs no TPM has.
MAX_DIGESTS = 8
MAX_BANKS = 16
MAX_PCR_SELECT_BYTES = 32
# More than any TPM's MAX_NV_BUFFER_SIZE, and what one reply can hold.
MAX_NV_BUFFER_BYTES = 4096
MAX_SENSITIVE_DATA_BYTES = 128
# TPMS_CREATION_DATA over every bank there can be.
MAX_CREATION_DATA_BYTES = 1024
# TPMS_ATTEST of a quote over every bank there can be.
MAX_ATTEST_BYTES = 1024
# TPMS_ID_OBJECT: an HMAC and an encrypted TPM2B_DIGEST, each with its length.
MAX_ID_OBJECT_BYTES = 2 * (2 + MAX_DIGEST_BYTES) + 2

_DIGEST = Sized(MAX_DIGEST_BYTES)
_NAME = Sized(MAX_NAME_BYTES)
_HASHED = (
    Algorithm.RSASSA,
    Algorithm.RSAPSS,
    Algorithm.OAEP,
    Algorithm.ECDSA,
    Algorithm.SM2,
    Algorithm.ECSCHNORR,
    # Key derivations: MGF1, KDF1_SP800_56A, KDF2, KDF1_SP800_108.
    0x0007,
    0x0020,
    0x0021,
    0x0022,
)


class Cipher(Structure):
    """Key length and mode of a TPMT_SYM_DEF_OBJECT."""

    key_bits: Annotated[int, U16]
    mode: Annotated[int, U16]


class Symmetric(Structure):
    """TPMT_SYM_DEF_OBJECT."""

    algorithm: Annotated[int, U16]
    cipher: Annotated[
        Cipher | None,
        Chosen(
            "algorithm",
            {
                Algorithm.NULL: Nothing(),
                Algorithm.AES: Nested(Cipher),
                Algorithm.SM4: Nested(Cipher),
                Algorithm.CAMELLIA: Nested(Cipher),
            },
        ),
    ]


class Scheme(Structure):
    """TPMT_RSA_SCHEME, TPMT_ECC_SCHEME and TPMT_KDF_SCHEME: an algorithm and, but for two, its hash."""

    algorithm: Annotated[int, U16]
    hash: Annotated[
        int | None,
        Chosen("algorithm", {Algorithm.NULL: Nothing(), Algorithm.RSAES: Nothing(), **dict.fromkeys(_HASHED, U16)}),
    ]


class RsaParameters(Structure):
    """TPMS_RSA_PARMS; exponent 0 is 65537."""

    symmetric: Annotated[Symmetric, Nested(Symmetric)]
    scheme: Annotated[Scheme, Nested(Scheme)]
    key_bits: Annotated[int, U16]
    exponent: Annotated[int, U32]


class EccParameters(Structure):
    """TPMS_ECC_PARMS."""

    symmetric: Annotated[Symmetric, Nested(Symmetric)]
    scheme: Annotated[Scheme, Nested(Scheme)]
    curve: Annotated[int, U16]
    kdf: Annotated[Scheme, Nested(Scheme)]


class Point(Structure):
    """TPMS_ECC_POINT. Some TPMs strip leading zeros."""

    x: Annotated[bytes, Sized(MAX_ECC_BYTES)]
    y: Annotated[bytes, Sized(MAX_ECC_BYTES)]


class Public(Structure):
    """TPMT_PUBLIC of the two kinds of key that bcd meets."""

    type: Annotated[int, U16]
    name_algorithm: Annotated[int, U16]
    attributes: Annotated[int, U32]
    policy: Annotated[bytes, _DIGEST]
    parameters: Annotated[
        RsaParameters | EccParameters,
        Chosen("type", {Algorithm.RSA: Nested(RsaParameters), Algorithm.ECC: Nested(EccParameters)}),
    ]
    unique: Annotated[
        bytes | Point, Chosen("type", {Algorithm.RSA: Sized(MAX_RSA_BYTES), Algorithm.ECC: Nested(Point)})
    ]


class NvPublic(Structure):
    """TPMS_NV_PUBLIC."""

    index: Annotated[int, U32]
    name_algorithm: Annotated[int, U16]
    attributes: Annotated[int, U32]
    policy: Annotated[bytes, _DIGEST]
    size_bytes: Annotated[int, U16]


class PcrSelection(Structure):
    """TPMS_PCR_SELECTION: a bank, and a bit for each of its PCRs from the lowest."""

    bank: Annotated[int, U16]
    selected: Annotated[bytes, Sized(MAX_PCR_SELECT_BYTES, U8)]


PCR_SELECTIONS = ListOf(Nested(PcrSelection), MAX_BANKS)


class SensitiveCreate(Structure):
    """TPMS_SENSITIVE_CREATE."""

    auth: Annotated[bytes, _DIGEST]
    data: Annotated[bytes, Sized(MAX_SENSITIVE_DATA_BYTES)]


class CreationData(Structure):
    """TPMS_CREATION_DATA."""

    pcrs: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]
    pcr_digest: Annotated[bytes, _DIGEST]
    locality: Annotated[int, U8]
    parent_name_algorithm: Annotated[int, U16]
    parent_name: Annotated[bytes, _NAME]
    parent_qualified_name: Annotated[bytes, _NAME]
    outside_info: Annotated[bytes, Sized(MAX_DATA_BYTES)]


class CreationTicket(Structure):
    """TPMT_TK_CREATION."""

    tag: Annotated[int, U16]
    hierarchy: Annotated[int, U32]
    digest: Annotated[bytes, _DIGEST]


class SecretTicket(Structure):
    """TPMT_TK_AUTH, as PolicySecret answers it."""

    tag: Annotated[int, U16]
    hierarchy: Annotated[int, U32]
    digest: Annotated[bytes, _DIGEST]


class HashCheck(Structure):
    """TPMT_TK_HASHCHECK: the TPM's word that it made a digest itself."""

    tag: Annotated[int, U16]
    hierarchy: Annotated[int, U32]
    digest: Annotated[bytes, _DIGEST]


# Part 3, 20.2: what a key that is not restricted needs no word for.
NO_HASH_CHECK = HashCheck(Tag.HASHCHECK, Handle.NULL, b"")


class EcdsaSignature(Structure):
    """TPMS_SIGNATURE_ECC; some TPMs strip leading zeros of its halves."""

    hash: Annotated[int, U16]
    r: Annotated[bytes, Sized(MAX_ECC_BYTES)]
    s: Annotated[bytes, Sized(MAX_ECC_BYTES)]


class Signature(Structure):
    """TPMT_SIGNATURE, of the one kind bcd asks for."""

    algorithm: Annotated[int, U16]
    ecdsa: Annotated[EcdsaSignature, Chosen("algorithm", {Algorithm.ECDSA: Nested(EcdsaSignature)})]


class ClockInfo(Structure):
    """TPMS_CLOCK_INFO; `safe` is a TPMI_YES_NO. After a power loss the clock goes back and `safe` is 0."""

    clock_ms: Annotated[int, U64]
    resets: Annotated[int, U32]
    restarts: Annotated[int, U32]
    safe: Annotated[int, U8]


class CertifyInfo(Structure):
    """TPMS_CERTIFY_INFO."""

    name: Annotated[bytes, _NAME]
    qualified_name: Annotated[bytes, _NAME]


class QuoteInfo(Structure):
    """TPMS_QUOTE_INFO."""

    pcrs: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]
    pcr_digest: Annotated[bytes, _DIGEST]


class Attest(Structure):
    """TPMS_ATTEST of the two kinds bcd asks for. `attested` is what `type` says."""

    magic: Annotated[int, Constant(GENERATED)]
    type: Annotated[int, U16]
    qualified_signer: Annotated[bytes, _NAME]
    extra_data: Annotated[bytes, Sized(MAX_DATA_BYTES)]
    clock: Annotated[ClockInfo, Nested(ClockInfo)]
    firmware: Annotated[int, U64]
    attested: Annotated[
        CertifyInfo | QuoteInfo,
        Chosen("type", {Tag.ATTEST_CERTIFY: Nested(CertifyInfo), Tag.ATTEST_QUOTE: Nested(QuoteInfo)}),
    ]


class CommandAuth(Structure):
    """TPMS_AUTH_COMMAND."""

    session: Annotated[int, U32]
    nonce: Annotated[bytes, _DIGEST]
    attributes: Annotated[int, U8]
    hmac: Annotated[bytes, _DIGEST]


class AnswerAuth(Structure):
    """TPMS_AUTH_RESPONSE."""

    nonce: Annotated[bytes, _DIGEST]
    attributes: Annotated[int, U8]
    hmac: Annotated[bytes, _DIGEST]


# The empty password of a hierarchy, a key of ours or an index (Part 1, 19.4); continueSession is always set for it.
EMPTY_PASSWORD = CommandAuth(session=Handle.PASSWORD, nonce=b"", attributes=1, hmac=b"")


def policy(session: int) -> CommandAuth:
    """The authorization of a policy session, which ends with the command that it authorizes."""
    return CommandAuth(session=session, nonce=b"", attributes=0, hmac=b"")


SIZED_PUBLIC = SizedOf(Public)
SIZED_NV_PUBLIC = SizedOf(NvPublic)
SIZED_SENSITIVE = SizedOf(SensitiveCreate)
