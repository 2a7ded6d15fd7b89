"""Commands with something wrong in them, each with the code a TPM answers: the first mistake it comes to."""

from dataclasses import dataclass, replace

from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    Algorithm,
    Attribute,
    Cipher,
    CommandAuth,
    Handle,
    HashCheck,
    Scheme,
    Symmetric,
    Tag,
    policy,
)
from tests.contract.tpm.sent import (
    ABSENT,
    ABSENT_PERSISTENT,
    AES,
    AK,
    COUNTED,
    ECDSA,
    EK,
    NODE_KEY,
    NULL,
    NV_BYTES,
    OTHER_SESSION,
    OWNERS,
    PERSISTENT_EK,
    PUBLIC,
    READABLE,
    SESSION,
    TEMPLATE,
    UNWRITTEN,
    WITH_PASSWORD,
    WRONG,
    activate,
    area,
    certify,
    create,
    created,
    cut,
    flush,
    framed,
    handles,
    longer,
    nv_read,
    nv_read_public,
    patched,
    pcr_read,
    policy_secret,
    quote,
    read_public,
    sign,
    sized,
    start,
    with_attributes,
    with_parameters,
)


@dataclass(frozen=True)
class Mistake:
    name: str
    command: bytes
    code: int


FRAMES = [
    Mistake("a tag of no kind", framed(CommandCode.READ_PUBLIC, handles(NODE_KEY), 0x8003), 0x084),
    Mistake("the tag of TPM 1.2", framed(CommandCode.READ_PUBLIC, handles(NODE_KEY), 0x00C1), 0x084),
    Mistake("no such command", framed(0x0FFF, b"", Tag.NO_SESSIONS), 0x143),
    Mistake("a command code of a vendor", framed(0x20000001, b"", Tag.NO_SESSIONS), 0x143),
    Mistake("CreatePrimary without its handle", framed(CommandCode.CREATE_PRIMARY, b"", Tag.SESSIONS), 0x19A),
    Mistake(
        "CreatePrimary without authorization",
        framed(CommandCode.CREATE_PRIMARY, handles(Handle.OWNER), Tag.NO_SESSIONS),
        0x125,
    ),
    Mistake(
        "Sign without authorization", framed(CommandCode.SIGN, handles(NODE_KEY) + bytes(14), Tag.NO_SESSIONS), 0x125
    ),
    Mistake("an authorization area that is not there", framed(CommandCode.SIGN, handles(NODE_KEY)), 0x09A),
    Mistake("half the size of an authorization area", framed(CommandCode.SIGN, handles(NODE_KEY) + bytes(2)), 0x09A),
    Mistake("an empty authorization area", framed(CommandCode.SIGN, handles(NODE_KEY) + bytes(4)), 0x095),
    Mistake(
        "an authorization area of 8 bytes",
        framed(CommandCode.SIGN, handles(NODE_KEY) + b"\0\0\0\x08" + bytes(8)),
        0x095,
    ),
    Mistake(
        "an authorization area past the end",
        framed(CommandCode.SIGN, handles(NODE_KEY) + b"\0\0\xff\xff" + bytes(20)),
        0x095,
    ),
    Mistake(
        "an authorization cut off",
        framed(CommandCode.SIGN, handles(NODE_KEY) + b"\0\0\0\x0a" + handles(Handle.PASSWORD) + b"\0\xff" + bytes(4)),
        0x995,
    ),
    Mistake("a session handle of no kind", sign(auth=CommandAuth(NODE_KEY, b"", 1, b"")), 0x984),
    Mistake("a session that was not started", sign(auth=policy(OTHER_SESSION)), 0x918),
    Mistake("an HMAC session that was not started", sign(auth=CommandAuth(0x02000001, b"", 1, b"")), 0x918),
    Mistake("a password with a nonce", sign(auth=CommandAuth(Handle.PASSWORD, b"n", 1, b"")), 0x98F),
    Mistake("a password that decrypts", sign(auth=CommandAuth(Handle.PASSWORD, b"", 0x21, b"")), 0x982),
    Mistake("a password that audits", sign(auth=CommandAuth(Handle.PASSWORD, b"", 0x81, b"")), 0x982),
    Mistake("reserved session attributes", sign(auth=CommandAuth(Handle.PASSWORD, b"", 0x09, b"")), 0x9A1),
    Mistake(
        "a nonce that is too long",
        framed(
            CommandCode.SIGN,
            handles(NODE_KEY)
            + (4 + 2 + 65 + 1 + 2).to_bytes(4)
            + handles(Handle.PASSWORD)
            + sized(bytes(65))
            + b"\x01\0\0"
            + bytes(30),
        ),
        0x995,
    ),
    Mistake(
        "a password that is too long",
        framed(
            CommandCode.SIGN,
            handles(NODE_KEY)
            + (4 + 2 + 1 + 2 + 65).to_bytes(4)
            + handles(Handle.PASSWORD)
            + b"\0\0\x01"
            + sized(bytes(65))
            + bytes(30),
        ),
        0x995,
    ),
    Mistake(
        "two passwords for one handle",
        framed(CommandCode.SIGN, handles(NODE_KEY) + area(EMPTY_PASSWORD, EMPTY_PASSWORD) + bytes(30)),
        0xA8B,
    ),
    Mistake(
        "four sessions", framed(CommandCode.SIGN, handles(NODE_KEY) + area(*[EMPTY_PASSWORD] * 4) + bytes(30)), 0xC95
    ),
    Mistake(
        "one authorization of two",
        framed(CommandCode.CERTIFY, handles(NODE_KEY, AK) + area(EMPTY_PASSWORD) + sized(b"") + b"\0\x10"),
        0x125,
    ),
    Mistake(
        "a password where none is wanted",
        framed(CommandCode.READ_PUBLIC, handles(NODE_KEY) + area(EMPTY_PASSWORD)),
        0x98B,
    ),
    Mistake(
        "FlushContext with a session",
        framed(CommandCode.FLUSH_CONTEXT, area(EMPTY_PASSWORD) + handles(NODE_KEY)),
        0x145,
    ),
    Mistake("FlushContext with half a session", framed(CommandCode.FLUSH_CONTEXT, b"\0\0\0\x20" + bytes(9)), 0x095),
    Mistake("FlushContext with the size of a session cut off", framed(CommandCode.FLUSH_CONTEXT, bytes(3)), 0x09A),
    Mistake("a wrong password", sign(auth=WRONG), 0x9A2),
    Mistake("a wrong owner password", create(auth=WRONG), 0x9A2),
    Mistake("a wrong endorsement password", create(templates.AK, Handle.ENDORSEMENT, WRONG), 0x9A2),
    Mistake("a wrong password for the second handle", certify(auths=(EMPTY_PASSWORD, WRONG)), 0xAA2),
    Mistake("a policy session for a key without policy", sign(auth=policy(SESSION)), 0x99D),
    Mistake("a policy session for a hierarchy without policy", create(auth=policy(SESSION)), 0x12F),
]

CREATIONS = [
    Mistake("a hierarchy of no kind", create(hierarchy=0x40000003), 0x184),
    Mistake("an object for a hierarchy", create(hierarchy=NODE_KEY), 0x184),
    Mistake("the lockout hierarchy", create(hierarchy=0x4000000A), 0x184),
    Mistake(
        "nothing after the authorization",
        framed(CommandCode.CREATE_PRIMARY, handles(Handle.OWNER) + area(EMPTY_PASSWORD)),
        0x1DA,
    ),
    Mistake("an empty sensitive area", created(PUBLIC, sized(b"")), 0x1D5),
    Mistake("a sensitive area with bytes left over", created(PUBLIC, sized(bytes(5))), 0x1D5),
    Mistake("a sensitive area that is cut off", created(PUBLIC, sized(bytes(3))), 0x1D5),
    Mistake("an authorization value of 33 bytes", created(PUBLIC, sized(sized(b"a" * 33) + b"\0\0")), 0x1D5),
    Mistake("an authorization value of 65 bytes", created(PUBLIC, sized(sized(b"a" * 65) + b"\0\0")), 0x1D5),
    Mistake("an empty public area", created(b""), 0x2D5),
    Mistake("a public area with bytes left over", created(PUBLIC + b"\0"), 0x2D5),
    Mistake("a public area that is cut off", created(PUBLIC[:-1]), 0x2D5),
    Mistake("a public area that says it is longer", cut(create(), 7), 0x2DA),
    Mistake("no outside information", cut(create(), 6), 0x3DA),
    Mistake("no PCR selection", cut(create(), 4), 0x4DA),
    Mistake("one byte too many", longer(create()), 0x095),
    Mistake("outside information of 67 bytes", created(PUBLIC, rest=sized(bytes(67)) + bytes(4)), 0x3D5),
    Mistake(
        "seventeen PCR selections", created(PUBLIC, rest=b"\0\0" + (17).to_bytes(4) + b"\0\x0b\x03\x01\0\0" * 17), 0x4D5
    ),
    Mistake(
        "a PCR selection of no bank", created(PUBLIC, rest=b"\0\0" + (1).to_bytes(4) + b"\0\x10\x03\x01\0\0"), 0x4C3
    ),
    Mistake("a key type of no kind", created(patched(0, "0010")), 0x2CA),
    Mistake("a name algorithm of no kind", created(patched(2, "0006")), 0x2C3),
    Mistake("a null name algorithm", created(patched(2, "0010")), 0x2C3),
    Mistake("SM3 for a name algorithm", created(patched(2, "0012")), 0x2C3),
    Mistake("reserved attributes", create(with_attributes(1)), 0x2E1),
    Mistake("another reserved attribute", create(with_attributes(1 << 3)), 0x2E1),
    Mistake("a policy of 65 bytes", created(PUBLIC[:8] + sized(bytes(65)) + PUBLIC[10:]), 0x2D5),
    Mistake("a policy of another length", create(replace(TEMPLATE, policy=bytes(20))), 0x2D5),
    Mistake("a cipher of no kind", created(patched(10, "000b")), 0x2D6),
    Mistake("a scheme of no kind", created(patched(12, "000b")), 0x2D2),
    Mistake("a scheme of RSA", created(PUBLIC[:12] + b"\0\x14\0\x0b" + PUBLIC[14:]), 0x2D2),
    Mistake("a curve of no kind", created(patched(14, "0099")), 0x2E6),
    Mistake("a key derivation of no kind", created(patched(16, "0001")), 0x2CC),
    Mistake("a key derivation", create(with_parameters(kdf=Scheme(0x0020, Algorithm.SHA256))), 0x2CC),
    Mistake("a signing key with a cipher", create(with_parameters(symmetric=AES)), 0x2D6),
    Mistake("an encrypting scheme for a signing key", created(PUBLIC[:12] + b"\0\x19\0\x0b" + PUBLIC[14:]), 0x2D2),
    Mistake("ECDSA with no hash", create(with_parameters(scheme=Scheme(Algorithm.ECDSA, 0x0006))), 0x2C3),
    Mistake(
        "a restricted signing key without scheme",
        create(with_parameters(templates.AK, scheme=NULL), Handle.ENDORSEMENT),
        0x2D2,
    ),
    Mistake("neither signs nor decrypts", create(with_attributes(remove=Attribute.SIGN)), 0x2C2),
    Mistake("restricted, signs and decrypts", create(with_attributes(Attribute.DECRYPT | Attribute.RESTRICTED)), 0x2C2),
    Mistake(
        "signs and decrypts by ECDSA", create(with_parameters(with_attributes(Attribute.DECRYPT), scheme=ECDSA)), 0x2D2
    ),
    Mistake("fixed to its TPM and not to its parent", create(with_attributes(remove=Attribute.FIXED_PARENT)), 0x2C2),
    Mistake("fixed to its parent and not to its TPM", create(with_attributes(remove=Attribute.FIXED_TPM)), 0x2C2),
    Mistake("encrypted duplication of what is fixed", create(with_attributes(1 << 11)), 0x2C2),
    Mistake("no origin of its sensitive part", create(with_attributes(remove=Attribute.SENSITIVE_DATA_ORIGIN)), 0x2C2),
    Mistake(
        "a storage key without cipher",
        create(with_parameters(templates.EK_ECC_P256, symmetric=Symmetric(Algorithm.NULL, None)), Handle.ENDORSEMENT),
        0x2D6,
    ),
    Mistake(
        "a storage key with a scheme",
        create(with_parameters(templates.EK_ECC_P256, scheme=ECDSA), Handle.ENDORSEMENT),
        0x2D2,
    ),
    Mistake(
        "AES of 64 bits",
        create(
            with_parameters(templates.EK_ECC_P256, symmetric=Symmetric(Algorithm.AES, Cipher(64, Algorithm.CFB))),
            Handle.ENDORSEMENT,
        ),
        0x2C4,
    ),
    Mistake(
        "a mode of no kind",
        create(
            with_parameters(templates.EK_ECC_P256, symmetric=Symmetric(Algorithm.AES, Cipher(128, 0x000B))),
            Handle.ENDORSEMENT,
        ),
        0x2C9,
    ),
    Mistake(
        "RSA of 1000 bits", create(with_parameters(templates.EK_RSA_2048, key_bits=1000), Handle.ENDORSEMENT), 0x2C4
    ),
    Mistake(
        "RSA with an even exponent",
        create(with_parameters(templates.EK_RSA_2048, exponent=4), Handle.ENDORSEMENT),
        0x08D,
    ),
    Mistake(
        "RSA with exponent 3", create(with_parameters(templates.EK_RSA_2048, exponent=3), Handle.ENDORSEMENT), 0x08D
    ),
    Mistake("RSA by ECDSA", create(with_parameters(templates.EK_RSA_2048, scheme=ECDSA), Handle.ENDORSEMENT), 0x2C4),
    Mistake(
        "a modulus of 385 bytes", create(replace(templates.EK_RSA_2048, unique=bytes(385)), Handle.ENDORSEMENT), 0x2D5
    ),
    Mistake(
        "AES of 192 bits",
        create(
            with_parameters(templates.EK_ECC_P256, symmetric=Symmetric(Algorithm.AES, Cipher(192, Algorithm.CFB))),
            Handle.ENDORSEMENT,
        ),
        0x2C4,
    ),
    Mistake("five PCR selections", created(PUBLIC, rest=b"\0\0" + (5).to_bytes(4) + b"\0\x0b\x03\x01\0\0" * 5), 0x4D5),
    Mistake("a fourth object", create(), 0x902),
]

READS = [
    Mistake("ReadPublic of a handle of no kind", read_public(Handle.OWNER), 0x184),
    Mistake("ReadPublic of a session", read_public(SESSION), 0x184),
    Mistake("ReadPublic of an index", read_public(READABLE), 0x184),
    Mistake("ReadPublic past the transient ones", read_public(0x80000003), 0x184),
    Mistake("ReadPublic of a persistent key that is not there", read_public(ABSENT_PERSISTENT), 0x902),
    Mistake("ReadPublic of a persistent key with all places taken", read_public(PERSISTENT_EK), 0x902),
    Mistake("ReadPublic without a handle", framed(CommandCode.READ_PUBLIC, b"", Tag.NO_SESSIONS), 0x19A),
    Mistake("ReadPublic with one byte too many", longer(read_public(NODE_KEY)), 0x095),
    Mistake("NV_ReadPublic of no index", nv_read_public(ABSENT), 0x18B),
    Mistake("NV_ReadPublic of a key", nv_read_public(NODE_KEY), 0x184),
    Mistake("NV_ReadPublic with one byte too many", longer(nv_read_public(READABLE)), 0x095),
    Mistake("NV_Read of no index", nv_read(ABSENT), 0x18B),
    Mistake("NV_Read of no index by the owner", nv_read(ABSENT, Handle.OWNER), 0x28B),
    Mistake("NV_Read by a key", nv_read(READABLE, NODE_KEY), 0x184),
    Mistake("NV_Read by the endorsement hierarchy", nv_read(READABLE, Handle.ENDORSEMENT), 0x184),
    Mistake("NV_Read by another index", nv_read(OWNERS, READABLE), 0x149),
    Mistake("NV_Read of the owner's by itself", nv_read(OWNERS), 0x12F),
    Mistake("NV_Read of what the owner may not read", nv_read(WITH_PASSWORD, Handle.OWNER), 0x149),
    Mistake("NV_Read of what was never written", nv_read(UNWRITTEN), 0x14A),
    Mistake("NV_Read past the end", nv_read(READABLE, size=NV_BYTES + 1), 0x146),
    Mistake("NV_Read from past the end", nv_read(READABLE, size=1, at=NV_BYTES), 0x146),
    Mistake("NV_Read far past the end", nv_read(READABLE, size=1, at=0xFFFF), 0x2C4),
    Mistake("NV_Read of more than a block", nv_read(READABLE, size=1025), 0x1C4),
    Mistake("NV_Read of more than a block of what was never written", nv_read(UNWRITTEN, size=1025), 0x14A),
    Mistake("NV_Read of more than a block far past the end", nv_read(READABLE, size=1025, at=0xFFFF), 0x1C4),
    Mistake("NV_Read with a wrong password", nv_read(WITH_PASSWORD), 0x9A2),
    Mistake("NV_Read with a wrong password that counts", nv_read(COUNTED), 0x922),
    Mistake("NV_Read without an offset", cut(nv_read(READABLE), 2), 0x2DA),
    Mistake("NV_Read with one byte too many", longer(nv_read(READABLE)), 0x095),
    Mistake("PCR_Read of a bank of no kind", pcr_read((0x0010, b"\x01\0\0")), 0x1C3),
    Mistake("PCR_Read of SM3", pcr_read((0x0012, b"\x01\0\0")), 0x1C3),
    Mistake("PCR_Read of two bytes of PCRs", pcr_read((Algorithm.SHA256, b"\x01\0")), 0x1C4),
    Mistake("PCR_Read of four bytes of PCRs", pcr_read((Algorithm.SHA256, b"\x01\0\0\0")), 0x1C4),
    Mistake(
        "PCR_Read of seventeen selections",
        framed(CommandCode.PCR_READ, (17).to_bytes(4) + b"\0\x0b\x03\x01\0\0" * 17, Tag.NO_SESSIONS),
        0x1D5,
    ),
    Mistake("PCR_Read of five selections", pcr_read(*[(Algorithm.SHA256, b"\x01\0\0")] * 5), 0x1D5),
    Mistake("PCR_Read without selections", framed(CommandCode.PCR_READ, b"", Tag.NO_SESSIONS), 0x1DA),
    Mistake("PCR_Read of a selection that is cut off", cut(pcr_read((Algorithm.SHA256, b"\x01\0\0")), 1), 0x1DA),
    Mistake("PCR_Read with one byte too many", longer(pcr_read((Algorithm.SHA256, b"\x01\0\0"))), 0x095),
    Mistake("FlushContext of nothing", framed(CommandCode.FLUSH_CONTEXT, b"", Tag.NO_SESSIONS), 0x1DA),
    Mistake("FlushContext of a hierarchy", flush(Handle.OWNER), 0x1C4),
    Mistake("FlushContext of a persistent key", flush(PERSISTENT_EK), 0x1C4),
    Mistake("FlushContext past the transient ones", flush(0x80000003), 0x1C4),
    Mistake("FlushContext of a session that was not started", flush(OTHER_SESSION), 0x1CB),
    Mistake("FlushContext with one byte too many", longer(flush(NODE_KEY)), 0x095),
]

SIGNATURES = [
    Mistake("Sign by a handle of no kind", sign(Handle.OWNER), 0x184),
    Mistake("Sign by a key that was flushed", sign(0x80000003), 0x184),
    Mistake("Sign by an endorsement key", sign(EK), 0x12F),
    Mistake("Sign a digest that is too short", sign(digest=bytes(31)), 0x1D5),
    Mistake("Sign a digest that is too long", sign(digest=bytes(33)), 0x1D5),
    Mistake("Sign nothing", sign(digest=b""), 0x1D5),
    Mistake(
        "Sign a digest of 65 bytes",
        framed(CommandCode.SIGN, handles(NODE_KEY) + area(EMPTY_PASSWORD) + sized(bytes(65)) + bytes(12)),
        0x1D5,
    ),
    Mistake("Sign without a scheme", sign(scheme=NULL), 0x2D2),
    Mistake("Sign by a scheme of no kind", sign(scheme=Scheme(0x0020, Algorithm.SHA256)), 0x2D2),
    Mistake("Sign by a scheme of RSA", sign(scheme=Scheme(Algorithm.RSASSA, Algorithm.SHA256)), 0x2D2),
    Mistake("Sign by an unknown hash", sign(scheme=Scheme(Algorithm.ECDSA, 0x0006)), 0x2C3),
    Mistake("Sign a digest of another hash", sign(scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA384)), 0x1D5),
    Mistake("Sign with a ticket of no kind", sign(check=HashCheck(Tag.CREATION, Handle.NULL, b"")), 0x3D7),
    Mistake("Sign with a tag of no kind for a ticket", sign(check=HashCheck(0x8003, Handle.NULL, b"")), 0x3C4),
    Mistake("Sign with a ticket of no hierarchy", sign(check=HashCheck(Tag.HASHCHECK, 0x40000003, b"")), 0x3C4),
    Mistake("Sign with a forged ticket", sign(check=HashCheck(Tag.HASHCHECK, Handle.OWNER, bytes(32))), 0x3E0),
    Mistake("Sign by the AK without a ticket", sign(AK), 0x3E0),
    Mistake(
        "Sign by the AK with a forged ticket", sign(AK, check=HashCheck(Tag.HASHCHECK, Handle.OWNER, bytes(64))), 0x3E0
    ),
    Mistake("Sign by the AK and another hash", sign(AK, scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA384)), 0x2D2),
    Mistake("Sign without a ticket's digest", cut(sign(), 2), 0x3DA),
    Mistake("Sign with one byte too many", longer(sign()), 0x095),
    Mistake("Quote by a handle of no kind", quote(Handle.OWNER), 0x184),
    Mistake("Quote by an endorsement key", quote(EK), 0x12F),
    Mistake("Quote by another scheme than the key's", quote(scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA384)), 0x2D2),
    Mistake("Quote by a scheme of no kind", quote(scheme=Scheme(0x0020, Algorithm.SHA256)), 0x2D2),
    Mistake("Quote without a scheme", quote(NODE_KEY), 0x2D2),
    Mistake("Quote over a bank of no kind", quote(selections=[(0x0010, b"\x01\0\0")]), 0x3C3),
    Mistake("Quote over two bytes of PCRs", quote(selections=[(Algorithm.SHA256, b"\x01\0")]), 0x3C4),
    Mistake(
        "Quote with 67 bytes of qualifying data",
        framed(CommandCode.QUOTE, handles(AK) + area(EMPTY_PASSWORD) + sized(bytes(67)) + b"\0\x10" + bytes(4)),
        0x1D5,
    ),
    Mistake("Quote with a wrong password", quote(auth=WRONG), 0x9A2),
    Mistake("Quote over five banks", quote(selections=[(Algorithm.SHA256, b"\x01\0\0")] * 5), 0x3D5),
    Mistake("Quote without a selection", cut(quote(selections=()), 4), 0x3DA),
    Mistake("Quote with one byte too many", longer(quote()), 0x095),
    Mistake("Certify by a handle of no kind", certify(key=Handle.OWNER), 0x284),
    Mistake("Certify what is not loaded", certify(certified=0x80000003), 0x184),
    Mistake("Certify by an endorsement key", certify(key=EK), 0x12F),
    Mistake("Certify an endorsement key by its password", certify(certified=EK), 0x124),
    Mistake(
        "Certify by another scheme than the key's", certify(scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA384)), 0x2D2
    ),
    Mistake("Certify without a scheme", certify(key=NODE_KEY), 0x2D2),
    Mistake("Certify with a wrong password", certify(auths=(WRONG, EMPTY_PASSWORD)), 0x9A2),
    Mistake("Certify with one byte too many", longer(certify()), 0x095),
    Mistake("Certify without a scheme's end", cut(certify(), 1), 0x2DA),
]

SESSIONS = [
    Mistake("StartAuthSession with a salting key of no kind", start(key=Handle.OWNER), 0x184),
    Mistake("StartAuthSession with a key that only signs", start(key=NODE_KEY, salt=b"s"), 0x182),
    Mistake("StartAuthSession bound to nothing", start(bind=0x40000003), 0x284),
    Mistake("StartAuthSession bound to what is not there", start(bind=ABSENT_PERSISTENT), 0x902),
    Mistake("StartAuthSession with a nonce of 15 bytes", start(bytes(15)), 0x1D5),
    Mistake("StartAuthSession with a nonce of 33 bytes", start(bytes(33)), 0x1D5),
    Mistake(
        "StartAuthSession with a nonce of 65 bytes",
        framed(
            CommandCode.START_AUTH_SESSION,
            handles(Handle.NULL, Handle.NULL) + sized(bytes(65)) + b"\0\0\x01\0\x10\0\x0b",
            Tag.NO_SESSIONS,
        ),
        0x1D5,
    ),
    Mistake("StartAuthSession with a salt without its key", start(salt=b"salt"), 0x2C4),
    Mistake("StartAuthSession with a salt of 385 bytes", start(salt=bytes(385)), 0x2D5),
    Mistake("StartAuthSession of no kind", start(kind=2), 0x3C4),
    Mistake(
        "StartAuthSession by a cipher of no kind",
        framed(
            CommandCode.START_AUTH_SESSION,
            handles(Handle.NULL, Handle.NULL) + sized(bytes(16)) + b"\0\0\x01\0\x0b\0\x0b",
            Tag.NO_SESSIONS,
        ),
        0x4D6,
    ),
    Mistake(
        "StartAuthSession by a mode of no kind", start(symmetric=Symmetric(Algorithm.AES, Cipher(128, 0x000B))), 0x4C9
    ),
    Mistake("StartAuthSession by another mode", start(symmetric=Symmetric(Algorithm.AES, Cipher(128, 0x0042))), 0x4C9),
    Mistake(
        "StartAuthSession by AES of 64 bits",
        start(symmetric=Symmetric(Algorithm.AES, Cipher(64, Algorithm.CFB))),
        0x4C4,
    ),
    Mistake(
        "StartAuthSession by no mode", start(symmetric=Symmetric(Algorithm.AES, Cipher(128, Algorithm.NULL))), 0x4C9
    ),
    Mistake("StartAuthSession with a hash of no kind", start(hash_=0x0010), 0x5C3),
    Mistake("StartAuthSession without a hash", cut(start(), 2), 0x5DA),
    Mistake("StartAuthSession with one byte too many", longer(start()), 0x095),
    Mistake("PolicySecret of a handle of no kind", policy_secret(entity=0x40000003), 0x184),
    Mistake("PolicySecret of no hierarchy", policy_secret(entity=Handle.NULL), 0x184),
    Mistake("PolicySecret for what is no policy session", policy_secret(session=NODE_KEY), 0x284),
    Mistake("PolicySecret for a session that was not started", policy_secret(session=OTHER_SESSION), 0x911),
    Mistake("PolicySecret with a wrong password", policy_secret(auth=WRONG), 0x9A2),
    Mistake("PolicySecret with another nonce", policy_secret(nonce=bytes(16)), 0x1CF),
    Mistake("PolicySecret with a command's digest of another length", policy_secret(command_hash=bytes(20)), 0x2D5),
    Mistake("PolicySecret without an expiration", cut(policy_secret(), 4), 0x4DA),
    Mistake("PolicySecret with one byte too many", longer(policy_secret()), 0x095),
    Mistake(
        "ActivateCredential by a password",
        activate(bytes(68), bytes(68), auths=(EMPTY_PASSWORD, EMPTY_PASSWORD)),
        0x12F,
    ),
    Mistake("ActivateCredential by a policy that is not met", activate(bytes(68), bytes(68)), 0xA9D),
    Mistake(
        "ActivateCredential with a wrong password",
        activate(bytes(68), bytes(68), auths=(WRONG, policy(SESSION))),
        0x9A2,
    ),
    Mistake(
        "ActivateCredential by a key that signs",
        activate(bytes(68), bytes(68), key=NODE_KEY, auths=(EMPTY_PASSWORD, EMPTY_PASSWORD)),
        0x28A,
    ),
    Mistake("ActivateCredential of what is not loaded", activate(bytes(68), bytes(68), activated=0x80000003), 0x184),
]

MISTAKES = FRAMES + CREATIONS + READS + SIGNATURES + SESSIONS
