"""The signed statement: signer, then kid, then signature, each check alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa
from bcd.protocol.pki.statements import BadStatement, Purpose, SignerIsAnother, to_be_signed, verify
from tests.fakes import pki
from tests.fakes.properties import few

PURPOSES = list(Purpose)


def resigned(statement: pb.SignedStatement, purpose: Purpose = Purpose.TRUST_BUNDLE) -> pb.SignedStatement:
    """`statement` with a signature that is right for what it now says."""
    statement.signature = ecdsa.sign(pki.SIGNING_KEY, to_be_signed(purpose, statement.payload))
    return statement


@few
@given(st.sampled_from(PURPOSES), st.binary(max_size=300))
def test_a_statement_gives_its_payload_and_signer(purpose: Purpose, payload: bytes) -> None:
    made = pki.signed(purpose, payload)
    found = verify(purpose, made, pki.PINS)
    assert (found.payload, found.signer_spki) == (payload, pki.spki(pki.SIGNING_KEY))
    assert pb.SignedStatement.FromString(found.raw) == made


@few
@given(st.sampled_from(PURPOSES), st.sampled_from(PURPOSES), st.binary(max_size=50))
def test_a_statement_for_one_purpose_is_none_for_another(made_for: Purpose, wanted: Purpose, payload: bytes) -> None:
    made = pki.signed(made_for, payload)
    if made_for is wanted:
        assert verify(wanted, made, pki.PINS).payload == payload
    else:
        with pytest.raises(BadStatement) as refused:
            verify(wanted, made, pki.PINS)
        assert refused.value.number == 3
        # What the statement says of itself changes nothing.
        made.purpose = wanted.value
        with pytest.raises(BadStatement):
            verify(wanted, made, pki.PINS)


def test_the_verifier_puts_in_the_purpose_it_expects() -> None:
    """A wrong name beside a right signature is not looked at: the signature alone decides."""
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload")
    made.purpose = "renew-pop"
    assert verify(Purpose.TRUST_BUNDLE, made, pki.PINS).payload == b"payload"


def test_check_1_a_signer_that_is_not_pinned_is_named() -> None:
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload", pki.OTHER_KEY)
    assert verify(Purpose.TRUST_BUNDLE, made, Pins((Pin.of(pki.spki(pki.OTHER_KEY)),)))
    with pytest.raises(SignerIsAnother) as refused:
        verify(Purpose.TRUST_BUNDLE, made, pki.PINS)
    assert refused.value.presented == Pin.of(pki.spki(pki.OTHER_KEY))


@pytest.mark.parametrize("spki", [b"", b"no key", pki.spki(pki.SIGNING_KEY)[:-1]])
def test_check_1_a_pinned_signer_that_is_no_key_is_refused(spki: bytes) -> None:
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload")
    made.signer_spki = spki
    with pytest.raises(BadStatement) as refused:
        verify(Purpose.TRUST_BUNDLE, made, Pins((Pin.of(spki),)))
    assert refused.value.number == 1


def test_each_key_of_a_rotation_may_sign() -> None:
    """B55: two pins while the key is rotated."""
    both = Pins((Pin.of(pki.spki(pki.OTHER_KEY)), *pki.PINS.pins))
    for key in (pki.SIGNING_KEY, pki.OTHER_KEY):
        assert verify(Purpose.TRUST_BUNDLE, pki.signed(Purpose.TRUST_BUNDLE, b"payload", key), both)


@pytest.mark.parametrize("kid", ["", "another", ecdsa.thumbprint(pki.OTHER_KEY.public_key())])
def test_check_2_the_kid_is_the_signers(kid: str) -> None:
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload")
    assert verify(Purpose.TRUST_BUNDLE, made, pki.PINS)
    made.kid = kid
    with pytest.raises(BadStatement) as refused:
        verify(Purpose.TRUST_BUNDLE, made, pki.PINS)
    assert refused.value.number == 2


def test_check_3_a_payload_that_was_not_signed_is_refused() -> None:
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload")
    made.payload = b"paylaod"
    with pytest.raises(BadStatement) as refused:
        verify(Purpose.TRUST_BUNDLE, made, pki.PINS)
    assert refused.value.number == 3
    assert verify(Purpose.TRUST_BUNDLE, resigned(made), pki.PINS).payload == b"paylaod"


def test_check_3_a_signature_by_another_key_is_refused() -> None:
    made = pki.signed(Purpose.TRUST_BUNDLE, b"payload")
    made.signature = ecdsa.sign(pki.OTHER_KEY, to_be_signed(Purpose.TRUST_BUNDLE, b"payload"))
    with pytest.raises(BadStatement) as refused:
        verify(Purpose.TRUST_BUNDLE, made, pki.PINS)
    assert refused.value.number == 3


def test_what_is_signed_separates_its_parts() -> None:
    """A zero byte after each part, and no purpose holds one: no two statements share their bytes."""
    assert to_be_signed(Purpose.RENEW_POP, b"\x01\x02") == b"bc-statement-v1\x00renew-pop\x00\x01\x02"
    assert {p.value for p in Purpose} == {
        "join-response",
        "renew-response",
        "trust-bundle",
        "renew-pop",
        "discovery-assertion",
    }
    assert all(set(p.value) <= set("abcdefghijklmnopqrstuvwxyz-") for p in Purpose)


def test_a_field_of_a_later_version_is_kept_in_what_is_stored() -> None:
    wire = pki.signed(Purpose.TRUST_BUNDLE, b"payload").SerializeToString() + bytes.fromhex("fa3f03") + b"new"
    found = verify(Purpose.TRUST_BUNDLE, pb.SignedStatement.FromString(wire), pki.PINS)
    assert b"new" in found.raw
