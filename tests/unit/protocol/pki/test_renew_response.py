"""Checking a renew response: each numbered check refuses alone, everything around it being right and re-signed."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.identity import Leaf
from bcd.domain.model.names import NodeId, Role, SiteId, TrustDomain
from bcd.domain.model.pins import Pin
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements
from bcd.protocol.pki.certificates import parse_leaf
from bcd.protocol.pki.issued import DoesNotVerify, SigningKeyIsAnother
from bcd.protocol.pki.renew_pop import make_renew_pop
from bcd.protocol.pki.renew_response import Expected, OtherIdentity, OtherKey, open_renew_response
from bcd.protocol.pki.statements import Purpose
from tests.fakes import pki
from tests.fakes.properties import few

NEXT_KEY = pki.private_key(1101)
REQUEST = csr.make_csr(NEXT_KEY)
AK_URN = b"urn:bc:tpm-ak:" + pki.AK_NAME.hex().encode()
WITH_AK = [pki.permanent_identifier(AK_URN)]
OTHER_AK = [pki.permanent_identifier(AK_URN.replace(b"000b", b"000c", 1))]
HELD: Leaf = parse_leaf(pki.leaf())
EXPECTED = Expected(REQUEST, pki.spki(NEXT_KEY), HELD, pki.PINS)
SECOND = timedelta(seconds=1)


def chain(**departures: object) -> tuple[bytes, ...]:
    """The chain a renewal brings: for the next key, a little later than the held one."""
    told: dict[str, object] = {
        "key": NEXT_KEY.public_key(),
        "not_before": pki.NOT_BEFORE + timedelta(minutes=5),
        "not_after": pki.NOT_AFTER + timedelta(minutes=5),
    }
    return pki.chain(**(told | departures))


def answer(certificates: tuple[bytes, ...] | None = None, by: object = pki.SIGNING_KEY, **departures: object) -> bytes:
    told: dict[str, object] = {"request": REQUEST, "certificates": chain() if certificates is None else certificates}
    payload = pki.response_payload(**(told | departures))  # type: ignore[arg-type]
    return pki.signed(Purpose.RENEW_RESPONSE, payload, by).SerializeToString()  # type: ignore[arg-type]


def refused(signed: bytes, expected: Expected = EXPECTED) -> DoesNotVerify:
    with pytest.raises(DoesNotVerify) as found:
        open_renew_response(signed, expected)
    return found.value


def test_a_right_answer_opens() -> None:
    found = open_renew_response(answer(), EXPECTED)
    assert (found.leaf.spki, found.leaf.spiffe_id) == (pki.spki(NEXT_KEY), HELD.spiffe_id)
    assert found.chain[0] == found.leaf.der
    assert (found.trust.version, found.server_time) == (3, pki.NOW)


def test_checks_1_to_7_are_those_of_a_join_response() -> None:
    assert refused(b"\xff").number == 1
    with pytest.raises(SigningKeyIsAnother) as other:
        open_renew_response(answer(by=pki.OTHER_KEY), EXPECTED)
    assert other.value.presented == Pin.of(pki.spki(pki.OTHER_KEY))
    relabelled = pb.SignedStatement.FromString(answer())
    relabelled.kid = "another"
    assert refused(relabelled.SerializeToString()).number == 3
    assert refused(pki.signed(Purpose.RENEW_RESPONSE, b"\xff").SerializeToString()).number == 5
    assert refused(answer(request=pki.CSR)).number == 6
    assert refused(answer(certificates=())).number == 7
    assert refused(answer(server_time=pki.NOT_AFTER + timedelta(minutes=5))).number == 7


def test_check_4_a_join_response_is_no_renew_response() -> None:
    payload = pki.response_payload(request=REQUEST, certificates=chain())
    assert refused(pki.signed(Purpose.JOIN_RESPONSE, payload).SerializeToString()).number == 4


@pytest.mark.parametrize("key", [pki.NODE_KEY, pki.OTHER_KEY], ids=["the held key", "another"])
def test_check_8_the_leaf_certifies_the_next_key(key: object) -> None:
    found = refused(answer(chain(key=key.public_key())))  # type: ignore[attr-defined]
    assert isinstance(found, OtherKey)
    assert (found.number, found.why) == (8, "the certificate does not certify the new key")


@pytest.mark.parametrize(
    ("departure", "why"),
    [
        ({"spiffe_id": replace(pki.SPIFFE_ID, node=NodeId("n-8"))}, "is for hall-2/n-8 (node), not hall-2/n-7 (node)"),
        ({"spiffe_id": replace(pki.SPIFFE_ID, site=SiteId("hall-3"))}, "is for hall-3/n-7 (node), not hall-2/n-7"),
        ({"role": Role.SITE}, "is for hall-2/n-7 (site), not hall-2/n-7 (node)"),
        ({"spiffe_id": replace(pki.SPIFFE_ID, trust_domain=TrustDomain("example.net"))}, "not hall-2/n-7"),
    ],
)
def test_check_9_the_leaf_is_of_the_same_identity(departure: dict[str, object], why: str) -> None:
    found = refused(answer(chain(**departure)))
    assert isinstance(found, OtherIdentity)
    assert found.number == 9
    assert why in found.why


def test_check_9_an_other_trust_domain_is_named() -> None:
    """Site, node and role being the same, a message without it would say "is for A, not A"."""
    other = replace(pki.SPIFFE_ID, trust_domain=TrustDomain("example.net"))
    told = refused(answer(chain(spiffe_id=other))).why
    assert "example.net" in told
    assert "example.org" in told


@pytest.mark.parametrize(("later", "fine"), [(SECOND, True), (timedelta(0), False), (-SECOND, False)])
def test_check_10_the_leaf_outlives_the_one_it_replaces(later: timedelta, fine: bool) -> None:
    made = answer(chain(not_after=pki.NOT_AFTER + later))
    if fine:
        assert open_renew_response(made, EXPECTED)
    else:
        assert refused(made).number == 10


@pytest.mark.parametrize(
    ("held", "renewed", "fine"),
    [
        ((), (), True),
        (WITH_AK, WITH_AK, True),
        (WITH_AK, (), False),
        ((), WITH_AK, False),
        (WITH_AK, OTHER_AK, False),
    ],
)
def test_check_11_the_leaf_names_the_same_attestation_key(held: object, renewed: object, fine: bool) -> None:
    """There is no downgrade: a certificate that names one is never followed by one that names none."""
    expected = replace(EXPECTED, held=parse_leaf(pki.leaf(names=held)))  # type: ignore[arg-type]
    made = answer(chain(names=renewed))
    if fine:
        assert open_renew_response(made, expected)
    else:
        assert refused(made, expected).number == 11


def test_check_12_the_trust_bundle_is_by_the_same_key_and_of_the_leafs_domain() -> None:
    """B04: an answer without a bundle is refused before anything is stored."""
    for bundle in (pb.SignedStatement(), pki.trust_bundle(pki.OTHER_KEY), pki.trust_bundle(trust_domain="example.net")):
        assert refused(answer(bundle=bundle)).number == 12


@few
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_by_this_modules_exceptions(signed: bytes) -> None:
    with pytest.raises((DoesNotVerify, SigningKeyIsAnother)):
        open_renew_response(signed, EXPECTED)


def test_a_proof_of_possession_is_by_the_held_key_about_the_request_and_the_leaf() -> None:
    made = make_renew_pop(REQUEST, HELD.der, pki.NOW, HELD.spki, lambda message: ecdsa.sign(pki.NODE_KEY, message))
    pins = pki.Pins((Pin.of(HELD.spki),))
    payload = pb.RenewPop.FromString(statements.verify(Purpose.RENEW_POP, made, pins).payload)
    assert payload.csr_sha256 == ecdsa.sha256(REQUEST).digest()
    assert payload.leaf_sha256 == HELD.sha256
    assert payload.client_time.ToDatetime(tzinfo=pki.NOW.tzinfo) == pki.NOW
    with pytest.raises(statements.SignerIsAnother):
        statements.verify(Purpose.RENEW_POP, made, pki.PINS)
