"""Checking a join response: each numbered check refuses alone, everything around it being right and re-signed."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.names import NodeId, Role, TrustDomain
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, statements
from bcd.protocol.pki.join_response import DoesNotVerify, Expected, SigningKeyIsAnother, open_join_response
from bcd.protocol.pki.statements import Purpose
from tests.fakes import pki
from tests.fakes.properties import few

EXPECTED = Expected(pki.CSR, pki.spki(pki.NODE_KEY), Role.NODE, pki.NODE, pki.PINS)


def refused_by(answer: bytes, expected: Expected = EXPECTED) -> int:
    with pytest.raises(DoesNotVerify) as refused:
        open_join_response(answer, expected)
    assert str(refused.value) == f"check {refused.value.number}: {refused.value.why}"
    return refused.value.number


def envelope(**fields: object) -> bytes:
    """A right answer whose envelope has other fields."""
    made = pb.SignedStatement.FromString(pki.join_response())
    for name, value in fields.items():
        setattr(made, name, value)
    return made.SerializeToString()


def signed_payload(payload: bytes) -> bytes:
    return pki.signed(Purpose.JOIN_RESPONSE, payload).SerializeToString()


def test_a_right_answer_opens() -> None:
    answer = pki.join_response()
    found = open_join_response(answer, EXPECTED)
    assert found.leaf.spiffe_id == pki.SPIFFE_ID
    assert found.chain[0] == found.leaf.der
    assert found.chain[1:] == pki.CA.above
    assert (found.trust.version, found.server_time, found.signed) == (3, pki.NOW, answer)


def test_without_a_wanted_node_any_node_will_do() -> None:
    other = replace(pki.SPIFFE_ID, node=NodeId("n-8"))
    answer = pki.join_response(certificates=pki.chain(spiffe_id=other))
    assert open_join_response(answer, replace(EXPECTED, node_id=None)).leaf.spiffe_id == other


@pytest.mark.parametrize("answer", [b"\xff", b"\x0a\xff", pki.join_response()[:-1]])
def test_check_1_it_is_a_signed_statement(answer: bytes) -> None:
    assert refused_by(answer) == 1


def test_check_1_it_is_not_larger_than_a_statement_may_be() -> None:
    answer = pki.join_response()
    # A field of a later version, which would otherwise be passed over.
    room = statements.MAX_STATEMENT_BYTES - len(answer)
    field = bytes.fromhex("fa3f")
    body = room - len(field) - 3
    padded = answer + field + bytes((body & 0x7F | 0x80, body >> 7 & 0x7F | 0x80, body >> 14)) + b"x" * body
    assert len(padded) == statements.MAX_STATEMENT_BYTES
    assert open_join_response(padded, EXPECTED).leaf
    body += 1
    larger = answer + field + bytes((body & 0x7F | 0x80, body >> 7 & 0x7F | 0x80, body >> 14)) + b"x" * body
    assert refused_by(larger) == 1


def test_check_2_its_signer_is_pinned() -> None:
    """B55: the key that is presented is named, so that the new pin can be compared."""
    answer = pki.join_response(pki.OTHER_KEY)
    with pytest.raises(SigningKeyIsAnother) as refused:
        open_join_response(answer, EXPECTED)
    assert refused.value.presented == Pin.of(pki.spki(pki.OTHER_KEY))
    both = Pins((*pki.PINS.pins, refused.value.presented))
    assert open_join_response(answer, replace(EXPECTED, pins=both))


def test_check_2_nothing_at_all_is_signed_by_nobody() -> None:
    with pytest.raises(SigningKeyIsAnother):
        open_join_response(b"", EXPECTED)


def test_check_2_its_pinned_signer_is_a_p256_key() -> None:
    no_key = b"no key"
    both = Pins((*pki.PINS.pins, Pin.of(no_key)))
    assert refused_by(envelope(signer_spki=no_key), replace(EXPECTED, pins=both)) == 2


def test_check_3_its_kid_is_the_signers() -> None:
    assert refused_by(envelope(kid=ecdsa.thumbprint(pki.OTHER_KEY.public_key()))) == 3


@pytest.mark.parametrize("purpose", [p for p in Purpose if p is not Purpose.JOIN_RESPONSE])
def test_check_4_it_is_signed_as_a_join_response(purpose: Purpose) -> None:
    made = pki.signed(purpose, pki.response_payload())
    assert refused_by(made.SerializeToString()) == 4
    made.purpose = Purpose.JOIN_RESPONSE.value
    assert refused_by(made.SerializeToString()) == 4


@pytest.mark.parametrize("payload", [b"\xff", b"\x0a\x20short"])
def test_check_5_its_payload_is_a_join_response(payload: bytes) -> None:
    assert refused_by(signed_payload(payload)) == 5


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**62), 0), (0, -1), (0, 10**9), (1 << 40, 0)])
def test_check_5_its_server_time_is_one(seconds: int, nanos: int) -> None:
    response = pb.JoinResponse.FromString(pki.response_payload())
    response.server_time.seconds, response.server_time.nanos = seconds, nanos
    assert refused_by(signed_payload(response.SerializeToString())) == 5


def test_check_5_it_has_a_server_time() -> None:
    response = pb.JoinResponse.FromString(pki.response_payload())
    response.ClearField("server_time")
    assert refused_by(signed_payload(response.SerializeToString())) == 5


@pytest.mark.parametrize("request_der", [csr.make_csr(pki.OTHER_KEY), b"", pki.CSR + b"\x00"])
def test_check_6_it_answers_this_request(request_der: bytes) -> None:
    assert refused_by(pki.join_response(request=request_der)) == 6


@pytest.mark.parametrize(
    "certificates",
    [
        [],
        [b"no certificate"],
        [pki.leaf(pki.ca(2002)), *pki.CA.above],
        [pki.leaf(signer=pki.OTHER_KEY), *pki.CA.above],
        [pki.leaf(spiffe_id="spiffe://example.org/n-7"), *pki.CA.above],
        [*pki.CA.above, pki.leaf()],
    ],
    ids=["none", "garbage", "other-ca", "other-signer", "profile", "upside-down"],
)
def test_check_7_its_chain_holds(certificates: list[bytes]) -> None:
    assert refused_by(pki.join_response(certificates=certificates)) == 7


@pytest.mark.parametrize("server_time", [pki.NOT_BEFORE - timedelta(seconds=1), pki.NOT_AFTER])
def test_check_7_its_chain_is_in_date_at_the_servers_time(server_time: object) -> None:
    assert refused_by(pki.join_response(server_time=server_time)) == 7


@pytest.mark.parametrize("server_time", [pki.NOT_BEFORE, pki.NOT_AFTER - timedelta(microseconds=1)])
def test_the_first_and_the_last_instant_of_the_leaf_are_in_date(server_time: object) -> None:
    assert open_join_response(pki.join_response(server_time=server_time), EXPECTED)


def test_check_8_its_leaf_certifies_the_requested_key() -> None:
    assert refused_by(pki.join_response(certificates=pki.chain(key=pki.OTHER_KEY.public_key()))) == 8


def test_check_9_its_leaf_is_of_the_wanted_node() -> None:
    other = replace(pki.SPIFFE_ID, node=NodeId("n-8"))
    assert refused_by(pki.join_response(certificates=pki.chain(spiffe_id=other))) == 9


@pytest.mark.parametrize("role", [Role.SITE, Role.RAMDISK])
def test_check_10_its_leaf_gives_the_wanted_role(role: Role) -> None:
    certificates = pki.chain(role=role, not_after=pki.NOW + timedelta(hours=1))
    assert refused_by(pki.join_response(certificates=certificates)) == 10
    assert open_join_response(pki.join_response(certificates=certificates), replace(EXPECTED, role=role))


@pytest.mark.parametrize(
    "bundle",
    [
        pb.SignedStatement(),
        pki.trust_bundle(pki.OTHER_KEY),
        pki.trust_bundle(trust_domain=TrustDomain("example.net")),
        pki.trust_bundle(command_roots=[b"no key"]),
        pki.signed(Purpose.JOIN_RESPONSE, pki.bundle_payload()),
    ],
    ids=["none", "other-signer", "other-domain", "no-root", "other-purpose"],
)
def test_check_11_its_trust_bundle_is_by_the_same_key_and_of_the_leafs_domain(bundle: pb.SignedStatement) -> None:
    """B04: an answer without a bundle, or with an empty one, is refused before anything is stored."""
    assert refused_by(pki.join_response(bundle=bundle)) == 11


@few
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_this_modules_exceptions(answer: bytes) -> None:
    with pytest.raises((DoesNotVerify, SigningKeyIsAnother)):
        open_join_response(answer, EXPECTED)


def test_an_answer_torn_anywhere_is_refused() -> None:
    answer = pki.join_response()
    for length in range(len(answer)):
        with pytest.raises((DoesNotVerify, SigningKeyIsAnother)):
            open_join_response(answer[:length], EXPECTED)


@few
@given(st.binary(max_size=300))
def test_any_payload_that_is_properly_signed_is_refused_by_a_number(payload: bytes) -> None:
    assert refused_by(signed_payload(payload)) >= 5


@few
@given(st.lists(st.binary(max_size=40), max_size=3))
def test_any_chain_that_is_properly_signed_is_refused_by_check_7(certificates: list[bytes]) -> None:
    assert refused_by(pki.join_response(certificates=certificates)) == 7
