"""The authorization area: passwords and policy sessions (Part 1, 19; Part 4, SessionProcess).

No HMAC session: nobody stands between a file and its only reader."""

import hmac
from dataclasses import dataclass

from bcd.adapters.tpmsim.answers import Refused, Unfit, of_session
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.space import POLICY_SESSION
from bcd.adapters.tpmsim.state import MAX_TRIES
from bcd.adapters.tpmsim.unmarshal import read
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.structures import AnswerAuth, Attribute, CommandAuth, Handle, NvAttribute
from bcd.protocol.tpm2.wire import Reader

CONTINUE_SESSION = 0x01
# decrypt, encrypt, audit, and the two that go with it (TPMA_SESSION, Part 2, 8.4).
_NOT_A_PASSWORDS = 0xE6
_LEAST_BYTES = 9
_MOST_SESSIONS = 3
_NV_NO_DA = 1 << 25
_NV = 0x01


@dataclass(frozen=True)
class _Entity:
    """What guards the thing a handle denotes. `password`: whether its authorization value is enough."""

    auth: bytes
    policy: bytes
    password: bool
    no_da: bool
    is_hierarchy: bool = False
    policy_alone: bool = False


def sessions(area: bytes) -> tuple[CommandAuth, ...]:
    """The sessions of an authorization area, each as it may be at all."""
    reader = Reader(area)
    found: list[CommandAuth] = []
    while reader.left:
        number = len(found) + 1
        if number > _MOST_SESSIONS:
            raise of_session(Rc.SIZE, number)
        try:
            found.append(_session(reader))
        except Unfit as unfit:
            raise of_session(unfit.rc, number) from None
    return tuple(found)


def _session(reader: Reader) -> CommandAuth:
    one = read(CommandAuth, reader)
    if one.session == Handle.PASSWORD:
        if one.attributes & _NOT_A_PASSWORDS:
            raise Unfit(Rc.ATTRIBUTES)
        if one.nonce:
            raise Unfit(Rc.NONCE)
    return one


def check(call: Call, wanted: int, admin: int | None) -> None:
    """Refused unless each of the first `wanted` handles is authorized; the `admin`th of them in the ADMIN role."""
    given = call.authorizations
    for number, one in enumerate(given, 1):
        if one.session != Handle.PASSWORD and one.session not in call.space.sessions:
            raise Refused(Rc.REFERENCE_S0 + number - 1)
    if len(given) < wanted:
        raise Refused(Rc.AUTH_MISSING)
    for number, one in enumerate(given, 1):
        if number > wanted:
            # It authorizes nothing, and is no session that encrypts or audits.
            raise of_session(Rc.HANDLE, number)
        _check(call, one, number, admin == number)


def _check(call: Call, given: CommandAuth, number: int, admin: bool) -> None:
    entity = _entity(call, call.handles[number - 1], admin)
    if given.session != Handle.PASSWORD:
        # Knows no secret that could be guessed: nothing is counted.
        _check_policy(call, given, number, entity)
        return
    if not entity.no_da:
        if call.state.failed_tries >= MAX_TRIES:
            raise Refused(Rc.LOCKOUT)
        if not call.state.tried:
            # It counts as a wrong one when the power fails before the TPM is shut down: that is noted first.
            call.tried = True
            raise Refused(Rc.RETRY)
    if entity.policy_alone:
        raise Refused(Rc.AUTH_TYPE)
    if not entity.password:
        raise Refused(Rc.AUTH_UNAVAILABLE)
    if not hmac.compare_digest(given.hmac.rstrip(b"\0"), entity.auth.rstrip(b"\0")):
        if entity.no_da:
            raise of_session(Rc.BAD_AUTH, number)
        call.wrong = True
        raise of_session(Rc.AUTH_FAIL, number)


def _check_policy(call: Call, given: CommandAuth, number: int, entity: _Entity) -> None:
    if given.session >> 24 != POLICY_SESSION >> 24:
        raise Refused(Rc.AUTH_TYPE)
    session = call.space.sessions[given.session]
    if not entity.policy and entity.is_hierarchy:
        raise Refused(Rc.AUTH_UNAVAILABLE)
    if session.policy_digest != entity.policy:
        raise of_session(Rc.POLICY_FAIL, number)
    if given.hmac:
        raise of_session(Rc.BAD_AUTH if entity.no_da else Rc.AUTH_FAIL, number)


def _entity(call: Call, handle: int, admin: bool) -> _Entity:
    if handle in (Handle.OWNER, Handle.ENDORSEMENT, Handle.NULL):
        return _Entity(call.state.hierarchy(handle).auth, b"", password=True, no_da=True, is_hierarchy=True)
    if handle >> 24 == _NV:
        index = call.state.known_index(handle)
        attributes = index.public.attributes
        readable = bool(attributes & NvAttribute.AUTH_READ)
        return _Entity(index.auth, index.public.policy, readable, bool(attributes & _NV_NO_DA))
    key = call.space.key(handle)
    attributes = key.public.attributes
    policy_alone = admin and bool(attributes & Attribute.ADMIN_WITH_POLICY)
    password = admin or bool(attributes & Attribute.USER_WITH_AUTH)
    no_da = bool(attributes & Attribute.NO_DA)
    return _Entity(key.auth, key.public.policy, password, no_da, policy_alone=policy_alone)


def answers(call: Call) -> tuple[AnswerAuth, ...]:
    """What a command that was carried out says of its sessions; those that end with it, end."""
    found = []
    for given in call.authorizations:
        kept = given.attributes & CONTINUE_SESSION
        if given.session == Handle.PASSWORD:
            found.append(AnswerAuth(b"", CONTINUE_SESSION, b""))
            continue
        session = call.space.sessions.get(given.session)
        if session is None:
            continue
        session.nonce = call.random(len(session.nonce))
        session.policy_digest = bytes(len(session.policy_digest))
        found.append(AnswerAuth(session.nonce, given.attributes, b""))
        if not kept:
            del call.space.sessions[given.session]
    return tuple(found)
