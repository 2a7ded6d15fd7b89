"""One command, from its bytes to its answer's: the order of checks is the reference implementation's (Part 4,
ExecuteCommand), so that the first of several mistakes is the one a TPM tells."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bcd.adapters.tpmsim import attest, authorize, credentials, handles, keys, nv, pcrs, sessions
from bcd.adapters.tpmsim.answers import Refused, Unfit, of_handle, of_parameter
from bcd.adapters.tpmsim.call import Call, Random
from bcd.adapters.tpmsim.space import Space
from bcd.adapters.tpmsim.state import State
from bcd.adapters.tpmsim.unmarshal import parameter, take, unsigned
from bcd.protocol.tpm2 import commands
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import HEADER_BYTES, Command
from bcd.protocol.tpm2.structures import Tag
from bcd.protocol.tpm2.wire import Reader, encode, fields_of

_LEAST_AREA_BYTES = 9


@dataclass(frozen=True)
class _Row:
    """A command, what its handles may be, which of them wants the ADMIN role, and whether it takes sessions at all."""

    command: Command[Any, Any]
    handles: tuple[Callable[[int], bool], ...]
    run: Callable[[Call], Any]
    admin: int | None = None
    sessions: bool = True


_ROWS = (
    _Row(commands.CREATE_PRIMARY, (handles.is_hierarchy,), keys.create_primary),
    _Row(commands.READ_PUBLIC, (handles.is_object,), keys.read_public),
    _Row(commands.NV_READ_PUBLIC, (handles.is_nv_index,), nv.read_public),
    _Row(commands.NV_READ, (handles.is_nv_auth, handles.is_nv_index), nv.read),
    _Row(commands.START_AUTH_SESSION, (handles.is_object_or_null, handles.is_entity_or_null), sessions.start),
    _Row(commands.POLICY_SECRET, (handles.is_entity, handles.is_policy_session), sessions.policy_secret),
    _Row(commands.PCR_READ, (), pcrs.read),
    _Row(commands.SIGN, (handles.is_object,), keys.sign),
    _Row(commands.QUOTE, (handles.is_object,), attest.quote),
    _Row(commands.CERTIFY, (handles.is_object, handles.is_object), attest.certify, admin=1),
    _Row(commands.ACTIVATE_CREDENTIAL, (handles.is_object, handles.is_object), credentials.activate, admin=1),
    _Row(commands.FLUSH_CONTEXT, (), keys.flush, sessions=False),
)
_BY_CODE: dict[int, _Row] = {row.command.code: row for row in _ROWS}


def execute(data: bytes, state: State, space: Space, now_ms: int, random: Random) -> tuple[bytes, State]:
    """The answer to the command `data`, and the state after it."""
    call = Call(state, space, now_ms, random)
    try:
        answer = _execute(call, data)
    except Refused as refused:
        return _refusal(refused.number), _counted(call, state)
    return answer, _counted(call, call.state)


def _execute(call: Call, data: bytes) -> bytes:
    reader = Reader(data)
    try:
        tag, size_bytes, code = (unsigned(reader, length) for length in (2, 4, 4))
    except Unfit as unfit:
        raise Refused(unfit.rc) from None
    if tag not in (Tag.SESSIONS, Tag.NO_SESSIONS):
        raise Refused(Rc.VALUE)
    if size_bytes != len(data):
        raise Refused(Rc.COMMAND_SIZE)
    row = _BY_CODE.get(code)
    if row is None:
        raise Refused(Rc.COMMAND_CODE)
    if call.state.faults.not_started:
        raise Refused(Rc.INITIALIZE)
    call.handles = _handles(row, reader)
    for number, handle in enumerate(call.handles, 1):
        handles.found(call, handle, number)
    _authorize(call, row, tag, reader)
    call.parameters = _parameters(row.command, reader)
    return _answer(tag, call, row.run(call))


def _handles(row: _Row, reader: Reader) -> tuple[int, ...]:
    found = []
    for number, may_be in enumerate(row.handles, 1):
        try:
            handle = unsigned(reader, 4)
        except Unfit as unfit:
            raise of_handle(unfit.rc, number) from None
        if not may_be(handle):
            raise of_handle(Rc.VALUE, number)
        found.append(handle)
    return tuple(found)


def _authorize(call: Call, row: _Row, tag: int, reader: Reader) -> None:
    if tag == Tag.NO_SESSIONS:
        if row.command.authorizations:
            raise Refused(Rc.AUTH_MISSING)
        return
    try:
        size_bytes = unsigned(reader, 4)
    except Unfit as unfit:
        raise Refused(unfit.rc) from None
    if not _LEAST_AREA_BYTES <= size_bytes <= reader.left:
        raise Refused(Rc.SIZE)
    if not row.sessions:
        raise Refused(Rc.AUTH_CONTEXT)
    call.authorizations = authorize.sessions(take(reader, size_bytes))
    authorize.check(call, row.command.authorizations, row.admin)


def _parameters(command: Command[Any, Any], reader: Reader) -> Any:
    values = {}
    for number, (name, kind) in enumerate(fields_of(command.parameters), 1):
        try:
            values[name] = parameter(command.parameters, name, kind, reader)
        except Unfit as unfit:
            raise of_parameter(unfit.rc, number) from None
    if reader.left:
        raise Refused(Rc.SIZE)
    return command.parameters(**values)


def _answer(tag: int, call: Call, out: Any) -> bytes:
    body = b"".join(handle.to_bytes(4) for handle in call.answer_handles)
    parameters = encode(out)
    if tag == Tag.SESSIONS:
        body += len(parameters).to_bytes(4) + parameters + b"".join(encode(one) for one in authorize.answers(call))
    else:
        body += parameters
    return tag.to_bytes(2) + (HEADER_BYTES + len(body)).to_bytes(4) + bytes(4) + body


def _refusal(code: int) -> bytes:
    return Tag.NO_SESSIONS.to_bytes(2) + HEADER_BYTES.to_bytes(4) + code.to_bytes(4)


def _counted(call: Call, state: State) -> State:
    """What stays of an authorization that counts towards a lockout."""
    if call.wrong:
        state = replace(state, failed_tries=state.failed_tries + 1)
    if call.tried and not state.tried:
        state = replace(state, tried=1)
    return state
