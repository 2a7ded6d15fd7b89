"""The trust bundle: by the JoinService key, of the node's trust domain, its roots P-256 keys."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.domain.model.names import TrustDomain
from bcd.domain.model.pins import Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import trust_bundle
from bcd.protocol.pki.statements import Purpose
from bcd.protocol.pki.trust_bundle import BadBundle, open_bundle
from tests.fakes import pki

P384 = (
    ec.derive_private_key(7, ec.SECP384R1())
    .public_key()
    .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
)


def opened(bundle: pb.SignedStatement, pins: Pins = pki.PINS, domain: TrustDomain = pki.DOMAIN) -> object:
    return open_bundle(bundle, pins, domain)


def test_a_bundle_gives_version_roots_and_itself_as_signed() -> None:
    signed = pki.trust_bundle()
    trust = open_bundle(signed, pki.PINS, pki.DOMAIN)
    assert (trust.version, trust.roots) == (3, (pki.COMMAND_ROOT,))
    assert trust.bundle == signed.payload
    assert trust.signed is not None
    assert pb.SignedStatement.FromString(trust.signed) == signed


def test_a_bundle_without_roots_is_one() -> None:
    """Signed intent is then not enforced (specification, `trustRoots`)."""
    assert open_bundle(pki.trust_bundle(command_roots=[]), pki.PINS, pki.DOMAIN).roots == ()


@pytest.mark.parametrize("version", [0, 1, 2**64 - 1])
def test_any_uint64_is_a_version(version: int) -> None:
    assert open_bundle(pki.trust_bundle(version=version), pki.PINS, pki.DOMAIN).version == version


def test_as_many_roots_as_it_may_have_and_one_more() -> None:
    most = [pki.COMMAND_ROOT] * trust_bundle.MAX_ROOTS
    assert opened(pki.trust_bundle(command_roots=most))
    with pytest.raises(BadBundle, match="more than 32 roots"):
        opened(pki.trust_bundle(command_roots=[*most, pki.COMMAND_ROOT]))


@pytest.mark.parametrize(
    ("bundle", "why"),
    [
        (pb.SignedStatement(), "signed by sha256:"),
        (pki.trust_bundle(pki.OTHER_KEY), "signed by sha256:"),
        (pki.signed(Purpose.JOIN_RESPONSE, pki.bundle_payload()), "the signature is not one for trust-bundle"),
        (pki.signed(Purpose.TRUST_BUNDLE, b"\xff\xff"), "is not a TrustBundle"),
        (pki.signed(Purpose.TRUST_BUNDLE, b""), "is of ''"),
        (pki.trust_bundle(trust_domain="example.net"), "is of 'example.net', the node's trust domain is example.org"),
        (pki.trust_bundle(trust_domain="Example.org"), "the node's trust domain is"),
        (pki.trust_bundle(command_roots=[b""]), "a root of the trust bundle is"),
        (pki.trust_bundle(command_roots=[P384]), "a root of the trust bundle is not a P-256 key"),
        (pki.trust_bundle(command_roots=[pki.COMMAND_ROOT, pki.COMMAND_ROOT + b"\x00"]), "a root of the trust bundle"),
    ],
)
def test_any_other_is_refused(bundle: pb.SignedStatement, why: str) -> None:
    assert opened(pki.trust_bundle())
    with pytest.raises(BadBundle, match=why):
        opened(bundle)


def test_a_bundle_of_another_domain_is_refused_by_a_node_of_this_one() -> None:
    bundle = pki.trust_bundle(trust_domain="example.net")
    assert opened(bundle, domain=TrustDomain("example.net"))
    with pytest.raises(BadBundle):
        opened(bundle)


def test_a_bundle_torn_anywhere_is_refused() -> None:
    """B04, on the wire: each part of a payload, properly signed, is refused or is what it says."""
    payload = pki.bundle_payload()
    for length in range(len(payload)):
        try:
            opened(pki.signed(Purpose.TRUST_BUNDLE, payload[:length]))
        except BadBundle:
            continue
        # A cut between two fields is a message of its own; the domain, field 1, has to be in it.
        assert length > len(pki.DOMAIN)
