"""The commands bcd sends, as a table, and their framing (TPM 2.0 Library, Part 1, 18; Part 3)."""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Annotated, Generic, TypeVar

from bcd.protocol.tpm2.codes import Code
from bcd.protocol.tpm2.declared import Structure
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    MAX_ATTEST_BYTES,
    MAX_CREATION_DATA_BYTES,
    MAX_DATA_BYTES,
    MAX_DIGEST_BYTES,
    MAX_DIGESTS,
    MAX_ID_OBJECT_BYTES,
    MAX_NAME_BYTES,
    MAX_NV_BUFFER_BYTES,
    MAX_RSA_BYTES,
    PCR_SELECTIONS,
    SIZED_NV_PUBLIC,
    SIZED_PUBLIC,
    SIZED_SENSITIVE,
    AnswerAuth,
    CommandAuth,
    CreationTicket,
    HashCheck,
    NvPublic,
    PcrSelection,
    Public,
    Scheme,
    SecretTicket,
    SensitiveCreate,
    Signature,
    Symmetric,
    Tag,
)
from bcd.protocol.tpm2.wire import U8, U16, U32, ListOf, Malformed, Nested, Reader, Sized, decode, encode, read

# What one read of the kernel's device gives at most (TPM_BUFSIZE), and more than any answer here needs.
MAX_ANSWER_BYTES = 4096
HEADER_BYTES = 10

# TPM_ST_RSP_COMMAND: what a TPM 1.2 answers to a command of TPM 2.0.
_TPM_1_2 = 0x00C4


class CommandCode(IntEnum):
    """TPM_CC (Part 2, 6.5.2)."""

    CREATE_PRIMARY = 0x00000131
    ACTIVATE_CREDENTIAL = 0x00000147
    CERTIFY = 0x00000148
    NV_READ = 0x0000014E
    POLICY_SECRET = 0x00000151
    QUOTE = 0x00000158
    SIGN = 0x0000015D
    FLUSH_CONTEXT = 0x00000165
    NV_READ_PUBLIC = 0x00000169
    READ_PUBLIC = 0x00000173
    START_AUTH_SESSION = 0x00000176
    PCR_READ = 0x0000017E


class NotTpm2(Exception):
    """The answer of a TPM 1.2."""


class Empty(Structure):
    """No parameters."""


class CreatePrimaryIn(Structure):
    sensitive: Annotated[SensitiveCreate, SIZED_SENSITIVE]
    public: Annotated[Public, SIZED_PUBLIC]
    outside_info: Annotated[bytes, Sized(MAX_DATA_BYTES)]
    pcrs: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]


class CreatePrimaryOut(Structure):
    public: Annotated[Public, SIZED_PUBLIC]
    # TPMS_CREATION_DATA, which nobody here reads, and for which every key would wait.
    creation_data: Annotated[bytes, Sized(MAX_CREATION_DATA_BYTES)]
    creation_hash: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    ticket: Annotated[CreationTicket, Nested(CreationTicket)]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


class ReadPublicOut(Structure):
    public: Annotated[Public, SIZED_PUBLIC]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]
    qualified_name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


class NvReadPublicOut(Structure):
    public: Annotated[NvPublic, SIZED_NV_PUBLIC]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


class NvReadIn(Structure):
    size_bytes: Annotated[int, U16]
    offset_bytes: Annotated[int, U16]


class NvReadOut(Structure):
    data: Annotated[bytes, Sized(MAX_NV_BUFFER_BYTES)]


class PcrReadIn(Structure):
    selection: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]


class PcrReadOut(Structure):
    update_counter: Annotated[int, U32]
    selection: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]
    values: Annotated[tuple[bytes, ...], ListOf(Sized(MAX_DIGEST_BYTES), MAX_DIGESTS)]


class FlushContextIn(Structure):
    # A parameter, not a handle of the handle area (Part 3, 28.4).
    handle: Annotated[int, U32]


class StartAuthSessionIn(Structure):
    nonce: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    encrypted_salt: Annotated[bytes, Sized(MAX_RSA_BYTES)]
    type: Annotated[int, U8]
    symmetric: Annotated[Symmetric, Nested(Symmetric)]
    hash: Annotated[int, U16]


class StartAuthSessionOut(Structure):
    nonce: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]


class PolicySecretIn(Structure):
    nonce: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    command_hash: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    reference: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    # INT32 in the specification; only 0, "as long as the session", is sent.
    expiration_s: Annotated[int, U32]


class PolicySecretOut(Structure):
    timeout: Annotated[bytes, Sized(8)]
    ticket: Annotated[SecretTicket, Nested(SecretTicket)]


class ActivateCredentialIn(Structure):
    # TPMS_ID_OBJECT, which the TPM takes apart itself.
    credential: Annotated[bytes, Sized(MAX_ID_OBJECT_BYTES)]
    secret: Annotated[bytes, Sized(MAX_RSA_BYTES)]


class ActivateCredentialOut(Structure):
    secret: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]


class QuoteIn(Structure):
    qualifying_data: Annotated[bytes, Sized(MAX_DATA_BYTES)]
    scheme: Annotated[Scheme, Nested(Scheme)]
    pcrs: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]


class CertifyIn(Structure):
    qualifying_data: Annotated[bytes, Sized(MAX_DATA_BYTES)]
    scheme: Annotated[Scheme, Nested(Scheme)]


class AttestOut(Structure):
    """`attest` is TPMS_ATTEST as it was signed: what is verified is these bytes, not what they decode to."""

    attest: Annotated[bytes, Sized(MAX_ATTEST_BYTES)]
    signature: Annotated[Signature, Nested(Signature)]


class SignIn(Structure):
    digest: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    scheme: Annotated[Scheme, Nested(Scheme)]
    hash_check: Annotated[HashCheck, Nested(HashCheck)]


class SignOut(Structure):
    signature: Annotated[Signature, Nested(Signature)]


P = TypeVar("P")
A = TypeVar("A")


@dataclass(frozen=True)
class Command(Generic[P, A]):
    """A row of the table. The first `authorizations` of its handles are authorized, by an empty password unless the
    caller says otherwise."""

    code: CommandCode
    name: str
    handles: int
    authorizations: int
    parameters: type[P]
    answer_handles: int
    answer: type[A]


@dataclass(frozen=True)
class Answer(Generic[A]):
    """What a TPM answered to a command that it carried out."""

    handles: tuple[int, ...]
    parameters: A


CREATE_PRIMARY = Command(CommandCode.CREATE_PRIMARY, "CreatePrimary", 1, 1, CreatePrimaryIn, 1, CreatePrimaryOut)
READ_PUBLIC = Command(CommandCode.READ_PUBLIC, "ReadPublic", 1, 0, Empty, 0, ReadPublicOut)
NV_READ_PUBLIC = Command(CommandCode.NV_READ_PUBLIC, "NV_ReadPublic", 1, 0, Empty, 0, NvReadPublicOut)
NV_READ = Command(CommandCode.NV_READ, "NV_Read", 2, 1, NvReadIn, 0, NvReadOut)
PCR_READ = Command(CommandCode.PCR_READ, "PCR_Read", 0, 0, PcrReadIn, 0, PcrReadOut)
FLUSH_CONTEXT = Command(CommandCode.FLUSH_CONTEXT, "FlushContext", 0, 0, FlushContextIn, 0, Empty)
START_AUTH_SESSION = Command(
    CommandCode.START_AUTH_SESSION, "StartAuthSession", 2, 0, StartAuthSessionIn, 1, StartAuthSessionOut
)
POLICY_SECRET = Command(CommandCode.POLICY_SECRET, "PolicySecret", 2, 1, PolicySecretIn, 0, PolicySecretOut)
ACTIVATE_CREDENTIAL = Command(
    CommandCode.ACTIVATE_CREDENTIAL, "ActivateCredential", 2, 2, ActivateCredentialIn, 0, ActivateCredentialOut
)
QUOTE = Command(CommandCode.QUOTE, "Quote", 1, 1, QuoteIn, 0, AttestOut)
SIGN = Command(CommandCode.SIGN, "Sign", 1, 1, SignIn, 0, SignOut)
CERTIFY = Command(CommandCode.CERTIFY, "Certify", 2, 2, CertifyIn, 0, AttestOut)

COMMANDS = (
    CREATE_PRIMARY,
    READ_PUBLIC,
    NV_READ_PUBLIC,
    NV_READ,
    START_AUTH_SESSION,
    POLICY_SECRET,
    ACTIVATE_CREDENTIAL,
    QUOTE,
    PCR_READ,
    SIGN,
    CERTIFY,
    FLUSH_CONTEXT,
)


# Tag, size, and command or response code.
_HEADER = Struct(">HII")
_PASSWORD = encode(EMPTY_PASSWORD)
# What answers it.
_AUTHORIZED = encode(AnswerAuth(nonce=b"", attributes=1, hmac=b""))


def _tag(command: Command[P, A]) -> int:
    return Tag.SESSIONS if command.authorizations else Tag.NO_SESSIONS


def write_command(
    command: Command[P, A],
    handles: tuple[int, ...],
    parameters: P,
    authorizations: tuple[CommandAuth, ...] | None = None,
) -> bytes:
    """The bytes of one command; without `authorizations`, each is an empty password."""
    if len(handles) != command.handles:
        raise Malformed(f"{command.name} names {command.handles} handles, not {len(handles)}")
    body = b"".join([handle.to_bytes(4) for handle in handles])
    if command.authorizations:
        if authorizations is not None and len(authorizations) != command.authorizations:
            raise Malformed(f"{command.name} has {command.authorizations} authorizations, not {len(authorizations)}")
        area = b"".join(map(encode, authorizations)) if authorizations else _PASSWORD * command.authorizations
        body += len(area).to_bytes(4) + area
    body += encode(parameters)
    return _HEADER.pack(_tag(command), HEADER_BYTES + len(body), command.code) + body


def read_answer(command: Command[P, A], data: bytes) -> Answer[A] | Code:
    """What `data` answers to `command`: its result, or the code it was refused with.

    Malformed for anything else; NotTpm2 for the answer of a TPM 1.2."""
    reader = Reader(data)
    tag, size_bytes, code = _HEADER.unpack(reader.take(HEADER_BYTES))
    if tag == _TPM_1_2:
        raise NotTpm2
    if size_bytes != len(data) or size_bytes > MAX_ANSWER_BYTES:
        raise Malformed(f"says {size_bytes} bytes, has {len(data)}")
    if code:
        reader.end()
        if tag != Tag.NO_SESSIONS:
            raise Malformed(f"a refusal with tag 0x{tag:04x}")
        return Code(code)
    if tag != _tag(command):
        raise Malformed(f"tag 0x{tag:04x}")
    handles = tuple([int.from_bytes(reader.take(4)) for _ in range(command.answer_handles)])
    if not command.authorizations:
        return Answer(handles, decode(command.answer, reader.rest()))
    parameters = decode(command.answer, reader.take(int.from_bytes(reader.take(4))))
    authorized = reader.rest()
    if authorized != _AUTHORIZED * command.authorizations:
        # Of a policy session, say.
        reader = Reader(authorized)
        for _ in range(command.authorizations):
            read(AnswerAuth, reader)
        reader.end()
    return Answer(handles, parameters)
