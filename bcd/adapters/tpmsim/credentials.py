"""ActivateCredential."""

from bcd.adapters.tpmsim.answers import of_handle, of_parameter
from bcd.adapters.tpmsim.call import Call
from bcd.protocol.tpm2 import credential
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import ActivateCredentialIn, ActivateCredentialOut
from bcd.protocol.tpm2.structures import Attribute
from bcd.protocol.tpm2.wire import Malformed


def activate(call: Call) -> ActivateCredentialOut:
    given: ActivateCredentialIn = call.parameters
    activated, ek = call.object(1), call.object(2)
    if not (ek.public.attributes & Attribute.DECRYPT and ek.public.attributes & Attribute.RESTRICTED):
        raise of_handle(Rc.TYPE, 2)
    try:
        seed = credential.seed_of(ek.private, given.secret)
    except Malformed:
        raise of_parameter(Rc.VALUE, 2) from None
    try:
        return ActivateCredentialOut(credential.unwrap(seed, activated.name, given.credential))
    except Malformed:
        raise of_parameter(Rc.INTEGRITY, 1) from None
