"""CreatePrimary, ReadPublic, FlushContext, Sign."""

import hashlib
import hmac

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature

from bcd.adapters.tpmsim import creation, pcrs, primaries
from bcd.adapters.tpmsim.answers import Refused, Unfit, of_handle, of_parameter
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.handles import PLATFORM
from bcd.adapters.tpmsim.space import Object
from bcd.adapters.tpmsim.state import DIGEST_BYTES
from bcd.adapters.tpmsim.tickets import ticket
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import (
    CreatePrimaryIn,
    CreatePrimaryOut,
    Empty,
    FlushContextIn,
    ReadPublicOut,
    SignIn,
    SignOut,
)
from bcd.protocol.tpm2.structures import (
    Algorithm,
    Attribute,
    CreationData,
    CreationTicket,
    EcdsaSignature,
    HashCheck,
    Scheme,
    Signature,
    Tag,
)
from bcd.protocol.tpm2.wire import encode

_P256_BYTES = 32
_LOCALITY_0 = 0x01
_HASHES = {
    # A TPM has it; nothing of bcd asks for it.
    Algorithm.SHA1: hashes.SHA1(),  # noqa: S303
    Algorithm.SHA256: hashes.SHA256(),
    Algorithm.SHA384: hashes.SHA384(),
    Algorithm.SHA512: hashes.SHA512(),
}


def create_primary(call: Call) -> CreatePrimaryOut:
    given: CreatePrimaryIn = call.parameters
    [hierarchy] = call.handles
    handle = call.space.free_object(call.state.faults.held)
    if handle is None:
        raise Refused(Rc.OBJECT_MEMORY)
    try:
        creation.check(given.public)
    except Unfit as unfit:
        raise of_parameter(unfit.rc, 2) from None
    if len(given.sensitive.auth.rstrip(b"\0")) > DIGEST_BYTES[Algorithm(given.public.name_algorithm)]:
        raise of_parameter(Rc.SIZE, 1)
    made, call.state = primaries.derive(call.state, hierarchy, given.public, given.sensitive.auth)
    call.space.objects[handle] = made
    call.answer_handles.append(handle)
    algorithm = given.public.name_algorithm
    selected = pcrs.filtered(call.state, given.pcrs)
    data = CreationData(
        pcrs=selected,
        pcr_digest=pcrs.composite(call.state, selected, algorithm),
        locality=_LOCALITY_0,
        parent_name_algorithm=Algorithm.NULL,
        parent_name=hierarchy.to_bytes(4),
        parent_qualified_name=hierarchy.to_bytes(4),
        outside_info=given.outside_info,
    )
    written = encode(data)
    digest = hashlib.new(Algorithm(algorithm).name.lower(), written).digest()
    word = ticket(call.state, hierarchy, Tag.CREATION, made.name, digest)
    return CreatePrimaryOut(made.public, written, digest, CreationTicket(Tag.CREATION, hierarchy, word), made.name)


def read_public(call: Call) -> ReadPublicOut:
    key = call.object(1)
    return ReadPublicOut(key.public, key.name, key.qualified_name)


def flush(call: Call) -> Empty:
    given: FlushContextIn = call.parameters
    for loaded in (call.space.objects, call.space.sessions):
        if given.handle in loaded:
            del loaded[given.handle]
            return Empty()
    raise of_parameter(Rc.HANDLE, 1)


def sign(call: Call) -> SignOut:
    given: SignIn = call.parameters
    key = call.object(1)
    if not key.public.attributes & Attribute.SIGN:
        raise of_handle(Rc.KEY, 1)
    scheme = signing_scheme(key, given.scheme, 2)
    check = given.hash_check
    if check.digest or key.public.attributes & Attribute.RESTRICTED:
        if not _made_here(call, check, given.digest, scheme.hash or 0):
            raise of_parameter(Rc.TICKET, 3)
    elif len(given.digest) != DIGEST_BYTES[Algorithm(scheme.hash or 0)]:
        raise of_parameter(Rc.SIZE, 1)
    return SignOut(signature(key, scheme, given.digest))


def _made_here(call: Call, check: HashCheck, digest: bytes, algorithm: int) -> bool:
    if check.hierarchy == PLATFORM:
        # Whose proof nobody has whom firmware started.
        return False
    ours = ticket(call.state, check.hierarchy, Tag.HASHCHECK, digest, algorithm.to_bytes(2))
    return hmac.compare_digest(ours, check.digest)


def signing_scheme(key: Object, wanted: Scheme, number: int) -> Scheme:
    """The key's own scheme, or the wanted one of a key that has none; refused for parameter `number`."""
    own = key.public.parameters.scheme
    if own.algorithm == Algorithm.NULL:
        if key.public.attributes & Attribute.DECRYPT and key.public.attributes & Attribute.RESTRICTED:
            raise of_parameter(Rc.SCHEME, number)
        chosen = wanted
    else:
        if wanted.algorithm != Algorithm.NULL and wanted != own:
            raise of_parameter(Rc.SCHEME, number)
        chosen = own
    if chosen.algorithm != Algorithm.ECDSA or not isinstance(key.private, ec.EllipticCurvePrivateKey):
        # The profile signs by ECDSA alone.
        raise of_parameter(Rc.SCHEME, number)
    return chosen


def signature(key: Object, scheme: Scheme, digest: bytes) -> Signature:
    """ECDSA over `digest`, both halves with their leading zeros, as libtpms has them."""
    if not isinstance(key.private, ec.EllipticCurvePrivateKey):
        raise TypeError("no scheme of an RSA key is ECDSA")
    algorithm = Algorithm(scheme.hash or 0)
    r, s = decode_dss_signature(key.private.sign(digest, ec.ECDSA(Prehashed(_HASHES[algorithm]))))
    halves = EcdsaSignature(algorithm, r.to_bytes(_P256_BYTES), s.to_bytes(_P256_BYTES))
    return Signature(Algorithm.ECDSA, halves)
