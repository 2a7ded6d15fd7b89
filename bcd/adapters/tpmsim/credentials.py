"""ActivateCredential."""

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.adapters.tpmsim.answers import Refused, Unfit, of_handle, of_parameter
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.space import Object
from bcd.adapters.tpmsim.unmarshal import read, take, unsigned
from bcd.protocol.tpm2 import credential
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import ActivateCredentialIn, ActivateCredentialOut
from bcd.protocol.tpm2.structures import Attribute, Point
from bcd.protocol.tpm2.wire import Malformed, Reader, encode


def activate(call: Call) -> ActivateCredentialOut:
    given: ActivateCredentialIn = call.parameters
    activated, ek = call.object(1), call.object(2)
    if not (ek.public.attributes & Attribute.DECRYPT and ek.public.attributes & Attribute.RESTRICTED):
        raise of_handle(Rc.TYPE, 2)
    seed = _seed(ek, given.secret)
    try:
        reader = Reader(given.credential)
        take(reader, unsigned(reader, 2))
        return ActivateCredentialOut(credential.unwrap(seed, activated.name, given.credential))
    except Unfit as unfit:
        raise of_parameter(unfit.rc, 1) from None
    except Malformed:
        raise of_parameter(Rc.INTEGRITY, 1) from None


def _seed(ek: Object, secret: bytes) -> bytes:
    if not isinstance(ek.private, ec.EllipticCurvePrivateKey):
        if len(secret) != ek.private.key_size // 8:
            raise of_parameter(Rc.SIZE, 2)
        # What libtpms makes of padding that is not right.
        return _opened(ek, secret, Refused(Rc.FAILURE))
    try:
        # libtpms lets anything follow the point.
        point = read(Point, Reader(secret))
    except Unfit as unfit:
        raise of_parameter(unfit.rc, 2) from None
    return _opened(ek, encode(point), of_parameter(Rc.ECC_POINT, 2))


def _opened(ek: Object, secret: bytes, otherwise: Refused) -> bytes:
    try:
        return credential.seed_of(ek.private, secret)
    except Malformed:
        raise otherwise from None
