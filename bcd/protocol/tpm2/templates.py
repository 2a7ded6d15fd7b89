"""The public areas bcd asks for, and nothing else of a key: each is derived anew from a hierarchy's seed."""

from bcd.protocol.tpm2.structures import (
    Algorithm,
    Attribute,
    Cipher,
    Curve,
    EccParameters,
    Point,
    Public,
    RsaParameters,
    Scheme,
    Symmetric,
)

UNIQUE_BYTES = 32
P256_BYTES = 32
_RSA_2048_BYTES = 256

_NO_SCHEME = Scheme(Algorithm.NULL, None)
_NO_SYMMETRIC = Symmetric(Algorithm.NULL, None)
_AES_128_CFB = Symmetric(Algorithm.AES, Cipher(128, Algorithm.CFB))
_ZEROS = Point(bytes(P256_BYTES), bytes(P256_BYTES))

# noDA: without it three power losses lock a TPM.
_OURS = (
    Attribute.FIXED_TPM
    | Attribute.FIXED_PARENT
    | Attribute.SENSITIVE_DATA_ORIGIN
    | Attribute.USER_WITH_AUTH
    | Attribute.NO_DA
    | Attribute.SIGN
)
_ENDORSEMENT = (
    Attribute.FIXED_TPM
    | Attribute.FIXED_PARENT
    | Attribute.SENSITIVE_DATA_ORIGIN
    | Attribute.ADMIN_WITH_POLICY
    | Attribute.RESTRICTED
    | Attribute.DECRYPT
)
# PolicySecret(TPM_RH_ENDORSEMENT) with SHA-256: TCG EK Credential Profile, B.6.2 (PolicyA).
ENDORSEMENT_POLICY = bytes.fromhex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa")


def node_key(unique: bytes) -> Public:
    """The node key of `unique`, 32 random bytes, in the owner hierarchy."""
    if len(unique) != UNIQUE_BYTES:
        raise ValueError("a unique has 32 bytes")
    return Public(
        type=Algorithm.ECC,
        name_algorithm=Algorithm.SHA256,
        attributes=_OURS,
        policy=b"",
        parameters=EccParameters(_NO_SYMMETRIC, _NO_SCHEME, Curve.P256, _NO_SCHEME),
        unique=Point(unique, bytes(P256_BYTES)),
    )


# The attestation key, in the endorsement hierarchy.
AK = Public(
    type=Algorithm.ECC,
    name_algorithm=Algorithm.SHA256,
    attributes=_OURS | Attribute.RESTRICTED,
    policy=b"",
    parameters=EccParameters(_NO_SYMMETRIC, Scheme(Algorithm.ECDSA, Algorithm.SHA256), Curve.P256, _NO_SCHEME),
    unique=_ZEROS,
)
# TCG EK Credential Profile, template L-1.
EK_RSA_2048 = Public(
    type=Algorithm.RSA,
    name_algorithm=Algorithm.SHA256,
    attributes=_ENDORSEMENT,
    policy=ENDORSEMENT_POLICY,
    parameters=RsaParameters(_AES_128_CFB, _NO_SCHEME, 2048, 0),
    unique=bytes(_RSA_2048_BYTES),
)
# TCG EK Credential Profile, template L-2.
EK_ECC_P256 = Public(
    type=Algorithm.ECC,
    name_algorithm=Algorithm.SHA256,
    attributes=_ENDORSEMENT,
    policy=ENDORSEMENT_POLICY,
    parameters=EccParameters(_AES_128_CFB, _NO_SCHEME, Curve.P256, _NO_SCHEME),
    unique=_ZEROS,
)


def is_modulus(unique: bytes) -> bool:
    """Whether the unique of an RSA-2048 key is a number of 2048 bits, and odd."""
    return len(unique) == _RSA_2048_BYTES and unique[0] >= 0x80 and unique[-1] % 2 == 1


def same_but_unique(public: Public, template: Public) -> bool:
    """Whether `public` is a key of `template`: all but the key itself is equal."""
    return (
        public.type == template.type
        and public.name_algorithm == template.name_algorithm
        and public.attributes == template.attributes
        and public.policy == template.policy
        and public.parameters == template.parameters
    )
