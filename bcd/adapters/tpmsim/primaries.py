"""Primary keys: derived from a hierarchy's seed and a template, each time the same."""

import hashlib
import hmac
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from bcd.adapters.tpmsim.answers import Refused
from bcd.adapters.tpmsim.space import Object, PrivateKey
from bcd.adapters.tpmsim.state import RsaKey, State
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.structures import Algorithm, Point, Public, RsaParameters
from bcd.protocol.tpm2.wire import encode

_P256 = ec.SECP256R1()
# The order of P-256 (FIPS 186-4, D.1.2.3).
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_P256_BYTES = 32
_EXPONENT = 65537


def derive(state: State, hierarchy: int, template: Public, auth: bytes) -> tuple[Object, State]:
    """The primary key of `template` in `hierarchy`, and the state, to which an RSA key may have been added."""
    seed = state.hierarchy(hierarchy).seed
    if isinstance(template.parameters, RsaParameters):
        private, state = _rsa(state, seed, template, template.parameters)
        numbers = private.public_key().public_numbers()
        public = replace(template, unique=numbers.n.to_bytes(template.parameters.key_bits // 8))
        return _object(hierarchy, public, auth, private), state
    key = _ecc(seed, template)
    point = key.public_key().public_numbers()
    public = replace(template, unique=Point(point.x.to_bytes(_P256_BYTES), point.y.to_bytes(_P256_BYTES)))
    return _object(hierarchy, public, auth, key), state


def _object(hierarchy: int, public: Public, auth: bytes, private: PrivateKey) -> Object:
    name = names.name(public)
    # A primary's parent is its hierarchy, whose name is its handle (Part 1, 16).
    digest = hashlib.new(Algorithm(public.name_algorithm).name.lower(), hierarchy.to_bytes(4) + name).digest()
    return Object(hierarchy, public, name, name[:2] + digest, auth.rstrip(b"\0"), private)


def _ecc(seed: bytes, template: Public) -> ec.EllipticCurvePrivateKey:
    # 64 bits more than the order has, so that no scalar is likelier than another (FIPS 186-4, B.4.1).
    wide = hmac.digest(seed, b"tpmsim ecc\0" + encode(template), "sha512")[:40]
    return ec.derive_private_key(int.from_bytes(wide) % (_ORDER - 1) + 1, _P256)


def _rsa(state: State, seed: bytes, template: Public, wanted: RsaParameters) -> tuple[rsa.RSAPrivateKey, State]:
    of = hmac.digest(seed, b"tpmsim rsa\0" + encode(template), "sha256")
    if wanted.exponent not in (0, _EXPONENT):
        # libtpms wants a prime above 2^16; there is one that anybody uses.
        raise Refused(Rc.RANGE)
    for one in state.rsa_keys:
        if one.of == of:
            found = load_der_private_key(one.pkcs8, None, unsafe_skip_rsa_key_validation=True)
            if isinstance(found, rsa.RSAPrivateKey):
                return found, state
    made = rsa.generate_private_key(_EXPONENT, wanted.key_bits)
    pkcs8 = made.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    # The oldest goes when there are many: a test may ask for any number of them.
    return made, replace(state, rsa_keys=(*state.rsa_keys[-31:], RsaKey(of, pkcs8)))
