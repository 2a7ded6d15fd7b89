"""StartAuthSession, PolicySecret."""

import hashlib

from bcd.adapters.tpmsim.answers import Refused, of_handle, of_parameter
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.space import HMAC_SESSION, POLICY_SESSION, Session
from bcd.adapters.tpmsim.state import DIGEST_BYTES
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import (
    CommandCode,
    PolicySecretIn,
    PolicySecretOut,
    StartAuthSessionIn,
    StartAuthSessionOut,
)
from bcd.protocol.tpm2.structures import Algorithm, Attribute, Handle, SecretTicket, Tag

_MIN_NONCE_BYTES = 16
_HMAC = 0x00


def start(call: Call) -> StartAuthSessionOut:
    given: StartAuthSessionIn = call.parameters
    digest_bytes = DIGEST_BYTES[Algorithm(given.hash)]
    if not _MIN_NONCE_BYTES <= len(given.nonce) <= digest_bytes:
        raise of_parameter(Rc.SIZE, 1)
    if call.handles[0] != Handle.NULL:
        if not call.object(1).public.attributes & Attribute.DECRYPT:
            raise of_handle(Rc.ATTRIBUTES, 1)
        # No session is salted here: nothing lies between the file and its reader.
        raise of_parameter(Rc.VALUE, 2)
    if given.encrypted_salt:
        raise of_parameter(Rc.VALUE, 2)
    cipher = given.symmetric.cipher
    if cipher is not None and cipher.mode != Algorithm.CFB:
        raise of_parameter(Rc.MODE, 4)
    handle = call.space.free_session(HMAC_SESSION if given.type == _HMAC else POLICY_SESSION)
    if handle is None:
        raise Refused(Rc.SESSION_MEMORY)
    nonce = call.random(len(given.nonce))
    call.space.sessions[handle] = Session(given.type, given.hash, nonce, bytes(digest_bytes))
    call.answer_handles.append(handle)
    return StartAuthSessionOut(nonce)


def policy_secret(call: Call) -> PolicySecretOut:
    given: PolicySecretIn = call.parameters
    session = call.session(2)
    if given.nonce and given.nonce != session.nonce:
        raise of_parameter(Rc.NONCE, 1)
    if given.command_hash and len(given.command_hash) != len(session.policy_digest):
        raise of_parameter(Rc.SIZE, 2)
    # PolicyUpdate (Part 3, 23.2.3): twice, so that no reference can be taken for a name.
    name = _name(call, call.handles[0])
    algorithm = Algorithm(session.hash).name.lower()
    first = session.policy_digest + CommandCode.POLICY_SECRET.to_bytes(4) + name
    once = hashlib.new(algorithm, first).digest()
    session.policy_digest = hashlib.new(algorithm, once + given.reference).digest()
    return PolicySecretOut(b"", SecretTicket(Tag.AUTH_SECRET, Handle.NULL, b""))


def _name(call: Call, handle: int) -> bytes:
    if handle in (Handle.OWNER, Handle.ENDORSEMENT, Handle.NULL):
        return handle.to_bytes(4)
    from bcd.adapters.tpmsim import nv

    index = call.state.nv_index(handle)
    return nv.name(index.public) if index is not None else call.space.key(handle).name
