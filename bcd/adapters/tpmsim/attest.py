"""Quote, Certify: what a TPM says, signed (Part 4, FillInAttestInfo and SignAttestInfo)."""

import hashlib

from bcd.adapters.tpmsim import pcrs
from bcd.adapters.tpmsim.answers import of_handle
from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.keys import signature, signing_scheme
from bcd.adapters.tpmsim.obfuscation import obfuscated
from bcd.adapters.tpmsim.space import Object
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import AttestOut, CertifyIn, QuoteIn
from bcd.protocol.tpm2.structures import (
    GENERATED,
    Algorithm,
    Attest,
    Attribute,
    CertifyInfo,
    ClockInfo,
    Handle,
    QuoteInfo,
    Scheme,
    Tag,
)
from bcd.protocol.tpm2.wire import encode

# This TPM's own, as GetCapability would tell it in two halves.
FIRMWARE = 0x00010000_00000000


def quote(call: Call) -> AttestOut:
    given: QuoteIn = call.parameters
    signer = _signer(call, 1, given.scheme)
    selected = pcrs.filtered(call.state, given.pcrs)
    info = QuoteInfo(selected, pcrs.composite(call.state, selected, signer[1].hash or 0))
    return _attested(call, signer, given.qualifying_data, Tag.ATTEST_QUOTE, info)


def certify(call: Call) -> AttestOut:
    given: CertifyIn = call.parameters
    signer = _signer(call, 2, given.scheme)
    certified = call.object(1)
    info = CertifyInfo(certified.name, certified.qualified_name)
    return _attested(call, signer, given.qualifying_data, Tag.ATTEST_CERTIFY, info)


def _signer(call: Call, number: int, wanted: Scheme) -> tuple[Object, Scheme]:
    key = call.object(number)
    if not key.public.attributes & Attribute.SIGN:
        raise of_handle(Rc.KEY, number)
    return key, signing_scheme(key, wanted, 2)


def _attested(
    call: Call, signer: tuple[Object, Scheme], extra: bytes, kind: Tag, info: QuoteInfo | CertifyInfo
) -> AttestOut:
    key, scheme = signer
    clock_ms, safe = call.state.clock_at(call.now_ms)
    firmware, clock = FIRMWARE, ClockInfo(clock_ms, call.state.resets, call.state.restarts, safe)
    if key.hierarchy != Handle.ENDORSEMENT:
        firmware, clock = obfuscated(call.state.owner.proof, key.qualified_name, firmware, clock)
    attest = Attest(GENERATED, kind, key.qualified_name, extra, clock, firmware, info)
    said = encode(attest)
    digest = hashlib.new(Algorithm(scheme.hash or 0).name.lower(), said).digest()
    return AttestOut(said, signature(key, scheme, digest))
