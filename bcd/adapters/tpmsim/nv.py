"""NV_ReadPublic, NV_Read."""

import hashlib

from bcd.adapters.tpmsim.answers import Refused, of_parameter
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.handles import is_nv_index
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import NvReadIn, NvReadOut, NvReadPublicOut
from bcd.protocol.tpm2.structures import Algorithm, NvAttribute, NvPublic
from bcd.protocol.tpm2.wire import encode

# MAX_NV_BUFFER_SIZE of libtpms.
_MAX_BUFFER_BYTES = 1024


def name(public: NvPublic) -> bytes:
    """nameAlg and the digest of the index' public area (Part 1, 16)."""
    digest = hashlib.new(Algorithm(public.name_algorithm).name.lower(), encode(public)).digest()
    return public.name_algorithm.to_bytes(2) + digest


def read_public(call: Call) -> NvReadPublicOut:
    public = call.state.known_index(call.handles[0]).public
    return NvReadPublicOut(public, name(public))


def read(call: Call) -> NvReadOut:
    given: NvReadIn = call.parameters
    index = call.state.known_index(call.handles[1])
    by, of = call.handles
    attributes = index.public.attributes
    if is_nv_index(by):
        if by != of or not attributes & NvAttribute.AUTH_READ:
            raise Refused(Rc.NV_AUTHORIZATION)
    elif not attributes & NvAttribute.OWNER_READ:
        raise Refused(Rc.NV_AUTHORIZATION)
    if not attributes & NvAttribute.WRITTEN:
        raise Refused(Rc.NV_UNINITIALIZED)
    if given.size_bytes > _MAX_BUFFER_BYTES:
        raise of_parameter(Rc.VALUE, 1)
    if given.offset_bytes > index.public.size_bytes:
        raise of_parameter(Rc.VALUE, 2)
    if given.offset_bytes + given.size_bytes > index.public.size_bytes:
        raise Refused(Rc.NV_RANGE)
    return NvReadOut(index.data[given.offset_bytes : given.offset_bytes + given.size_bytes])
