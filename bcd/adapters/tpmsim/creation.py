"""Which templates a TPM makes a key from (Part 4, CreateChecks, PublicAttributesValidation, SchemeChecks)."""

from bcd.adapters.tpmsim.answers import Unfit
from bcd.adapters.tpmsim.state import DIGEST_BYTES
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.structures import Algorithm, Attribute, EccParameters, Public, RsaParameters

ENCRYPTED_DUPLICATION = 1 << 11
_ECC_SIGNS = (Algorithm.ECDSA, Algorithm.SM2, Algorithm.ECSCHNORR)
_RSA_SIGNS = (Algorithm.RSASSA, Algorithm.RSAPSS)


def check(public: Public) -> None:
    """Unfit with the code of the first rule that the template breaks."""
    has = _of(public.attributes)
    if not has(Attribute.SENSITIVE_DATA_ORIGIN):
        # No key comes from outside.
        raise Unfit(Rc.ATTRIBUTES)
    if public.policy and len(public.policy) != DIGEST_BYTES[Algorithm(public.name_algorithm)]:
        raise Unfit(Rc.SIZE)
    if has(Attribute.FIXED_PARENT) != has(Attribute.FIXED_TPM):
        raise Unfit(Rc.ATTRIBUTES)
    if has(Attribute.SIGN) == has(Attribute.DECRYPT) and (has(Attribute.RESTRICTED) or not has(Attribute.SIGN)):
        raise Unfit(Rc.ATTRIBUTES)
    if has(Attribute.FIXED_TPM) and public.attributes & ENCRYPTED_DUPLICATION:
        raise Unfit(Rc.ATTRIBUTES)
    _schemes(public)


def _schemes(public: Public) -> None:
    has = _of(public.attributes)
    scheme = public.parameters.scheme.algorithm
    symmetric = public.parameters.symmetric
    signs = scheme in (_RSA_SIGNS if isinstance(public.parameters, RsaParameters) else _ECC_SIGNS)
    if has(Attribute.SIGN) and has(Attribute.DECRYPT):
        if scheme != Algorithm.NULL:
            raise Unfit(Rc.SCHEME)
    elif has(Attribute.SIGN):
        if not signs and (scheme != Algorithm.NULL or has(Attribute.RESTRICTED)):
            raise Unfit(Rc.SCHEME)
    elif signs or (has(Attribute.RESTRICTED) and scheme != Algorithm.NULL):
        raise Unfit(Rc.SCHEME)
    parent = has(Attribute.RESTRICTED) and has(Attribute.DECRYPT)
    if parent != (symmetric.algorithm != Algorithm.NULL):
        raise Unfit(Rc.SYMMETRIC)
    if isinstance(public.parameters, EccParameters) and public.parameters.kdf.algorithm != Algorithm.NULL:
        raise Unfit(Rc.KDF)


def _of(attributes: int) -> "_Has":
    return _Has(attributes)


class _Has:
    def __init__(self, attributes: int) -> None:
        self._attributes = attributes

    def __call__(self, attribute: Attribute) -> bool:
        return bool(self._attributes & attribute)
