"""The commands bcd sends, as a table, and their framing (TPM 2.0 Library, Part 1, 18; Part 3)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Generic, TypeVar

from bcd.protocol.tpm2.codes import Code
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    MAX_DIGEST_BYTES,
    MAX_DIGESTS,
    MAX_NAME_BYTES,
    MAX_NV_BUFFER_BYTES,
    PCR_SELECTIONS,
    SIZED_CREATION_DATA,
    SIZED_NV_PUBLIC,
    SIZED_PUBLIC,
    SIZED_SENSITIVE,
    AnswerAuth,
    CreationData,
    CreationTicket,
    NvPublic,
    PcrSelection,
    Public,
    SensitiveCreate,
)
from bcd.protocol.tpm2.wire import U16, U32, ListOf, Malformed, Nested, Reader, Sized, decode, encode, read

# What one read of the kernel's device gives at most (TPM_BUFSIZE), and more than any answer here needs.
MAX_ANSWER_BYTES = 4096
HEADER_BYTES = 10

_NO_SESSIONS = 0x8001
_SESSIONS = 0x8002
# TPM_ST_RSP_COMMAND: what a TPM 1.2 answers to a command of TPM 2.0.
_TPM_1_2 = 0x00C4


class CommandCode(IntEnum):
    """TPM_CC (Part 2, 6.5.2)."""

    CREATE_PRIMARY = 0x00000131
    NV_READ = 0x0000014E
    FLUSH_CONTEXT = 0x00000165
    NV_READ_PUBLIC = 0x00000169
    READ_PUBLIC = 0x00000173
    PCR_READ = 0x0000017E


class NotTpm2(Exception):
    """The answer of a TPM 1.2."""


@dataclass(frozen=True)
class Empty:
    """No parameters."""


@dataclass(frozen=True)
class CreatePrimaryIn:
    sensitive: Annotated[SensitiveCreate, SIZED_SENSITIVE]
    public: Annotated[Public, SIZED_PUBLIC]
    outside_info: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    pcrs: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]


@dataclass(frozen=True)
class CreatePrimaryOut:
    public: Annotated[Public, SIZED_PUBLIC]
    creation_data: Annotated[CreationData, SIZED_CREATION_DATA]
    creation_hash: Annotated[bytes, Sized(MAX_DIGEST_BYTES)]
    ticket: Annotated[CreationTicket, Nested(CreationTicket)]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


@dataclass(frozen=True)
class ReadPublicOut:
    public: Annotated[Public, SIZED_PUBLIC]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]
    qualified_name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


@dataclass(frozen=True)
class NvReadPublicOut:
    public: Annotated[NvPublic, SIZED_NV_PUBLIC]
    name: Annotated[bytes, Sized(MAX_NAME_BYTES)]


@dataclass(frozen=True)
class NvReadIn:
    size_bytes: Annotated[int, U16]
    offset_bytes: Annotated[int, U16]


@dataclass(frozen=True)
class NvReadOut:
    data: Annotated[bytes, Sized(MAX_NV_BUFFER_BYTES)]


@dataclass(frozen=True)
class PcrReadIn:
    selection: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]


@dataclass(frozen=True)
class PcrReadOut:
    update_counter: Annotated[int, U32]
    selection: Annotated[tuple[PcrSelection, ...], PCR_SELECTIONS]
    values: Annotated[tuple[bytes, ...], ListOf(Sized(MAX_DIGEST_BYTES), MAX_DIGESTS)]


@dataclass(frozen=True)
class FlushContextIn:
    # A parameter, not a handle of the handle area (Part 3, 28.4).
    handle: Annotated[int, U32]


P = TypeVar("P")
A = TypeVar("A")


@dataclass(frozen=True)
class Command(Generic[P, A]):
    """A row of the table. Every authorization is an empty password."""

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

COMMANDS = (CREATE_PRIMARY, READ_PUBLIC, NV_READ_PUBLIC, NV_READ, PCR_READ, FLUSH_CONTEXT)


def write_command(command: Command[P, A], handles: tuple[int, ...], parameters: P) -> bytes:
    """The bytes of one command."""
    if len(handles) != command.handles:
        raise Malformed(f"{command.name} names {command.handles} handles, not {len(handles)}")
    body = b"".join(handle.to_bytes(4) for handle in handles)
    if command.authorizations:
        area = encode(EMPTY_PASSWORD) * command.authorizations
        body += len(area).to_bytes(4) + area
    body += encode(parameters)
    tag = _SESSIONS if command.authorizations else _NO_SESSIONS
    return tag.to_bytes(2) + (HEADER_BYTES + len(body)).to_bytes(4) + command.code.to_bytes(4) + body


def read_answer(command: Command[P, A], data: bytes) -> Answer[A] | Code:
    """What `data` answers to `command`: its result, or the code it was refused with.

    Malformed for anything else; NotTpm2 for the answer of a TPM 1.2."""
    reader = Reader(data)
    tag, size_bytes, code = (int.from_bytes(reader.take(length)) for length in (2, 4, 4))
    if tag == _TPM_1_2:
        raise NotTpm2
    if size_bytes != len(data) or size_bytes > MAX_ANSWER_BYTES:
        raise Malformed(f"says {size_bytes} bytes, has {len(data)}")
    if code:
        reader.end()
        if tag != _NO_SESSIONS:
            raise Malformed(f"a refusal with tag 0x{tag:04x}")
        return Code(code)
    if tag != (_SESSIONS if command.authorizations else _NO_SESSIONS):
        raise Malformed(f"tag 0x{tag:04x}")
    handles = tuple(int.from_bytes(reader.take(4)) for _ in range(command.answer_handles))
    if not command.authorizations:
        return Answer(handles, decode(command.answer, reader.rest()))
    parameters = decode(command.answer, reader.take(int.from_bytes(reader.take(4))))
    for _ in range(command.authorizations):
        read(AnswerAuth, reader)
    reader.end()
    return Answer(handles, parameters)
