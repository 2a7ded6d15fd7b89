"""Handles: which values each command takes, and whether they denote something now (Part 4, EntityGetLoadStatus)."""

from bcd.adapters.tpmsim import primaries
from bcd.adapters.tpmsim.answers import Refused, of_handle
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.space import HMAC_SESSION, OBJECT_SLOTS, POLICY_SESSION, TRANSIENT
from bcd.adapters.tpmsim.state import PLATFORM_CREATE, Persistent, State
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.structures import Handle

_PERSISTENT = 0x81
_PLATFORM_PERSISTENT = 0x81800000
_NV = 0x01
# TPM_RH_PLATFORM (Part 2, 7.4), which firmware keeps from whoever comes after it.
PLATFORM = 0x4000000C
# MAX_ACTIVE_SESSIONS of libtpms: what a session's handle may end with.
_ACTIVE_SESSIONS = 64


def _transient(handle: int) -> bool:
    return TRANSIENT <= handle < TRANSIENT + OBJECT_SLOTS


def _persistent(handle: int) -> bool:
    return handle >> 24 == _PERSISTENT


def _session(handle: int, *types: int) -> bool:
    return any(start <= handle < start + _ACTIVE_SESSIONS for start in types)


def is_hierarchy(handle: int) -> bool:
    return handle in (Handle.OWNER, Handle.ENDORSEMENT, PLATFORM, Handle.NULL)


def is_object(handle: int) -> bool:
    return _transient(handle) or _persistent(handle)


def is_object_or_null(handle: int) -> bool:
    return is_object(handle) or handle == Handle.NULL


def is_nv_index(handle: int) -> bool:
    return handle >> 24 == _NV


def is_nv_auth(handle: int) -> bool:
    return handle in (Handle.OWNER, PLATFORM) or is_nv_index(handle)


def is_policy_session(handle: int) -> bool:
    return _session(handle, POLICY_SESSION)


def is_session(handle: int) -> bool:
    return _session(handle, HMAC_SESSION, POLICY_SESSION)


def is_entity(handle: int) -> bool:
    """TPMI_DH_ENTITY, but for PCRs and the lockout hierarchy, which have no authorization here."""
    return handle in (Handle.OWNER, Handle.ENDORSEMENT, PLATFORM) or is_object(handle) or is_nv_index(handle)


def is_entity_or_null(handle: int) -> bool:
    return is_entity(handle) or handle == Handle.NULL


def is_flushable(handle: int) -> bool:
    """TPMI_DH_CONTEXT."""
    return _transient(handle) or is_session(handle)


def found(call: Call, handle: int, number: int) -> None:
    """Refused when the `number`th handle denotes nothing."""
    state = call.state
    if handle in (Handle.OWNER, Handle.ENDORSEMENT, PLATFORM):
        if handle == PLATFORM or state.hierarchy(handle).off:
            raise of_handle(Rc.HIERARCHY, number)
    elif _transient(handle):
        if handle not in call.space.objects:
            raise Refused(Rc.REFERENCE_H0 + number - 1)
    elif _persistent(handle):
        _load_persistent(call, handle, number)
    elif is_nv_index(handle):
        index = state.nv_index(handle)
        if index is None or (state.owner.off and not index.public.attributes & PLATFORM_CREATE):
            raise of_handle(Rc.HANDLE, number)
    elif is_session(handle) and handle not in call.space.sessions:
        raise Refused(Rc.REFERENCE_H0 + number - 1)


def _hidden(state: State, kept: Persistent) -> bool:
    """With its own hierarchy disabled, or the one whose range of handles it stands in (Part 2, 7.5)."""
    return bool(state.hierarchy(kept.hierarchy).off or (state.owner.off and kept.handle < _PLATFORM_PERSISTENT))


def _load_persistent(call: Call, handle: int, number: int) -> None:
    if call.space.free_object(call.state.faults.held) is None:
        # It takes a place while the command lasts.
        raise Refused(Rc.OBJECT_MEMORY)
    kept = next((one for one in call.state.persistent if one.handle == handle), None)
    if kept is None or _hidden(call.state, kept):
        raise of_handle(Rc.HANDLE, number)
    if handle not in call.space.persistent:
        call.space.persistent[handle], call.state = primaries.derive(call.state, kept.hierarchy, kept.template, b"")
