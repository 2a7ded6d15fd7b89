"""From an endorsement key's certificate to a manufacturer CA that the operator named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain import ek_chain
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import Reason
from bcd.protocol.pki.ek_certificate import read
from tests.fakes import manufacturer as maker
from tests.fakes.manufacturer import Ca, tlv

SPKI = maker.rsa_spki(maker.modulus(1))
ROOT = maker.root()
MIDDLE = ROOT.below(9002, "Maker Middle CA", extensions=(maker.basic_constraints(True, 1), maker.key_usage(0x04)))
LAST = MIDDLE.below(9003, "Maker Issuing CA", extensions=(maker.basic_constraints(True, 0), maker.key_usage(0x04)))
EK = LAST.ek(SPKI)


def above(ek: bytes, anchors: Sequence[Ca], chain: Sequence[Ca] = ()) -> list[bytes]:
    found = ek_chain.anchors_above(read(ek), [read(ca.der) for ca in chain], [read(ca.der) for ca in anchors])
    return [one.der for one in found]


def refused(ek: bytes, anchors: Sequence[Ca], chain: Sequence[Ca] = ()) -> tuple[Reason, str]:
    with pytest.raises(No) as caught:
        above(ek, anchors, chain)
    return caught.value.reason, caught.value.detail


def departs(**changes: Any) -> Ca:
    """An issuing CA unlike LAST in one point."""
    return MIDDLE.below(9003, "Maker Issuing CA", **changes)


def test_every_ca_named_is_an_anchor_and_the_nearest_comes_first() -> None:
    assert above(EK, [ROOT, MIDDLE, LAST]) == [LAST.der, MIDDLE.der, ROOT.der]
    assert above(EK, [LAST]) == [LAST.der]
    assert above(EK, [LAST, ROOT]) == [LAST.der]


def test_a_chain_on_the_chip_leads_to_an_anchor() -> None:
    assert above(EK, [ROOT], [LAST, MIDDLE]) == [ROOT.der]
    assert above(EK, [ROOT], [MIDDLE, LAST, ROOT]) == [ROOT.der]
    assert above(EK, [LAST, ROOT], [MIDDLE]) == [LAST.der, ROOT.der]


def test_a_chain_on_the_chip_is_no_anchor() -> None:
    reason, detail = refused(EK, [maker.root(9100, "Other CA")], [LAST, MIDDLE, ROOT])
    assert reason is Reason.EK_CA_UNKNOWN
    assert detail == "no CA known here is CN=Maker Root CA, O=Maker Ltd, C=XX"


def test_an_unknown_manufacturer_is_named() -> None:
    assert refused(EK, []) == (
        Reason.EK_CA_UNKNOWN,
        "no CA known here is CN=Maker Issuing CA, O=Maker Ltd, C=XX",
    )
    assert refused(EK, [ROOT], [LAST])[1] == "no CA known here is CN=Maker Middle CA, O=Maker Ltd, C=XX"


def test_dates_decide_nothing() -> None:
    old = maker.root(9004, "Old CA", not_before=b"000101000000Z", not_after=b"050101000000Z")
    assert above(old.ek(SPKI, not_before=b"040101000000Z", not_after=b"990101000000Z"), [old]) == [old.der]


def test_a_ca_of_the_same_name_did_not_sign_it() -> None:
    namesake = maker.root(9005, "Maker Issuing CA")
    assert refused(EK, [namesake]) == (
        Reason.EK_SIGNATURE_WRONG,
        "not by the key of CN=Maker Issuing CA, O=Maker Ltd, C=XX",
    )
    assert above(EK, [namesake, LAST]) == [LAST.der]


def test_a_ca_that_was_certified_twice_is_found_twice() -> None:
    again = MIDDLE.below(9003, "Maker Issuing CA", serial=b"\x33")
    assert above(EK, [LAST, again]) == [LAST.der, again.der]


@pytest.mark.parametrize(
    ("extensions", "why"),
    [
        ((maker.basic_constraints(False), maker.key_usage(0x04)), "may not sign certificates"),
        ((maker.key_usage(0x04),), "may not sign certificates"),
        ((), "may not sign certificates"),
        ((maker.basic_constraints(True), maker.key_usage(0x80)), "may not sign certificates"),
        (
            (maker.basic_constraints(True), maker.extension("2.5.29.30", tlv(0x30))),
            "has an unknown critical extension 2.5.29.30",
        ),
        ((maker.basic_constraints(True), maker.tpm_names()), "has an unknown critical extension 2.5.29.17"),
        (
            (maker.basic_constraints(True), maker.purposes("1.3.6.1.5.5.7.3.1", critical=True)),
            "is for purposes other than endorsement keys",
        ),
    ],
    ids=["no CA", "no constraints", "nothing", "key usage", "name constraints", "TCG names", "purposes"],
)
def test_a_ca_that_may_not_vouch_does_not(extensions: Any, why: str) -> None:
    unfit = departs(extensions=extensions)
    reason, detail = refused(unfit.ek(SPKI), [unfit])
    assert reason is Reason.EK_CA_UNFIT
    assert detail == f"CN=Maker Issuing CA, O=Maker Ltd, C=XX {why}"
    assert refused(unfit.ek(SPKI), [ROOT, MIDDLE], [unfit])[0] is Reason.EK_CA_UNFIT


@pytest.mark.parametrize(
    "extensions",
    [
        (maker.basic_constraints(True),),
        (maker.basic_constraints(True, critical=False), maker.key_usage(0x06, critical=False)),
        (maker.basic_constraints(True), maker.extension("2.5.29.32", tlv(0x30))),
        (maker.basic_constraints(True), maker.purposes(maker.EK_PURPOSE, critical=True)),
        (maker.basic_constraints(True), maker.purposes("2.5.29.37.0", critical=True)),
        (maker.basic_constraints(True), maker.purposes("1.3.6.1.4.1.311.21.36")),
        (maker.basic_constraints(True), maker.extension("2.5.29.30", tlv(0x30), critical=False)),
    ],
    ids=["no key usage", "nothing critical", "policies", "purpose", "any purpose", "others, uncritical", "uncritical"],
)
def test_a_ca_as_manufacturers_have_them_vouches(extensions: Any) -> None:
    fit = departs(extensions=extensions)
    assert above(fit.ek(SPKI), [fit]) == [fit.der]


def test_a_path_length_counts_the_cas_below() -> None:
    short = maker.root(9006, "Short CA", extensions=(maker.basic_constraints(True, 0), maker.key_usage(0x04)))
    below = short.below(9007, "Below CA")
    assert above(short.ek(SPKI), [short]) == [short.der]
    reason, detail = refused(below.ek(SPKI), [short], [below])
    assert (reason, detail) == (Reason.EK_CA_UNFIT, "CN=Short CA, O=Maker Ltd, C=XX has a path length of 0")
    # Of the two anchors the one that may vouch does.
    assert above(below.ek(SPKI), [short, below]) == [below.der]


@pytest.mark.parametrize("number", [5, 11, 12, 13])
def test_rsa_signatures_of_manufacturers_are_verified(number: int) -> None:
    ca = maker.rsa_root(algorithm=f"1.2.840.113549.1.1.{number}")
    ek = ca.ek(SPKI)
    assert above(ek, [ca]) == [ca.der]
    assert refused(ek[:-1] + bytes((ek[-1] ^ 1,)), [ca])[0] is Reason.EK_SIGNATURE_WRONG


@pytest.mark.parametrize("algorithm", ["1.2.840.10045.4.3.2", "1.2.840.10045.4.3.3", "1.2.840.10045.4.3.4"])
@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_ecdsa_signatures_of_manufacturers_are_verified(algorithm: str, curve: ec.EllipticCurve) -> None:
    key, own = maker.ec_key(9008, curve), maker.name("Curved CA")
    form = maker.Form(own, own, maker.spki_of(key), (maker.basic_constraints(True),), algorithm=algorithm)
    ca = Ca(key, own, form.signed(key), algorithm)
    assert above(ca.ek(SPKI), [ca]) == [ca.der]


@pytest.mark.parametrize("algorithm", ["1.2.840.113549.1.1.4", "1.2.840.113549.1.1.10", "1.2.3"])
def test_an_unknown_kind_of_signature_is_told(algorithm: str) -> None:
    ek = LAST.ek(SPKI, algorithm=algorithm)
    reason, detail = refused(ek, [LAST])
    assert reason is Reason.EK_SIGNATURE_UNKNOWN
    assert detail == f"{algorithm}, by CN=Maker Issuing CA, O=Maker Ltd, C=XX"


def test_a_signature_is_not_of_a_key_of_another_kind() -> None:
    assert refused(LAST.ek(SPKI, algorithm=maker.RSA_SHA256), [LAST])[0] is Reason.EK_SIGNATURE_WRONG


def test_a_ca_whose_names_set_is_out_of_order_vouches() -> None:
    odd = maker.root(9009, subject=maker.name("Odd CA", one_set=True, sorted_=False))
    assert above(odd.ek(SPKI), [odd]) == [odd.der]
    # The certificate may say the name in order.
    ek = odd.ek(SPKI, issuer=maker.name("Odd CA", one_set=True))
    assert above(ek, [odd]) == [odd.der]


def test_a_chip_that_brings_many_cas_of_one_name_is_given_up() -> None:
    namesakes = [MIDDLE.below(9300 + number, "Maker Issuing CA") for number in range(ek_chain.MAX_SIGNATURES)]
    assert refused(EK, [MIDDLE], [*namesakes, LAST])[0] is Reason.EK_SIGNATURE_WRONG
    # The operator's come first.
    assert above(EK, [LAST], namesakes) == [LAST.der]


def test_cas_that_signed_each_other_end() -> None:
    one, other = maker.root(9010, "One CA"), maker.root(9011, "Other CA")

    def signed(below: Ca, by: Ca) -> Ca:
        form = by.form(below.name, maker.spki_of(below.key), (maker.basic_constraints(True),))
        return Ca(below.key, below.name, form.signed(by.key))

    crossed, back = signed(one, other), signed(other, one)
    assert above(one.ek(SPKI), [other], [crossed, back]) == [other.der]
    assert refused(one.ek(SPKI), [ROOT], [crossed, back])[0] is Reason.EK_CA_UNKNOWN


def test_a_chain_longer_than_any_is_not_followed() -> None:
    cas = [maker.root(9400, "Long CA 0")]
    for number in range(1, ek_chain.MAX_DEPTH + 1):
        cas.append(cas[-1].below(9400 + number, f"Long CA {number}"))
    ek = cas[-1].ek(SPKI)
    assert refused(ek, cas[:1], cas[1:])[0] is Reason.EK_CA_UNKNOWN
    assert above(ek, cas[1:2], cas[2:]) == [cas[1].der]


# ---- the endorsement key's own certificate


def checked(ek: bytes) -> tuple[Reason, str] | None:
    try:
        ek_chain.check_ek(read(ek))
    except No as no:
        return no.reason, no.detail
    return None


def test_a_certificate_as_the_tcg_wants_it_is_one() -> None:
    assert checked(EK) is None


def ek_with(*extensions: Any) -> bytes:
    return LAST.ek(SPKI, extensions=extensions)


def test_it_says_that_it_is_no_ca() -> None:
    assert checked(ek_with(maker.basic_constraints(True))) == (
        Reason.EK_CERTIFICATE_CA,
        "the certificate says that it is a CA's",
    )
    assert checked(ek_with(maker.tpm_names())) == (
        Reason.EK_CERTIFICATE_CA,
        "the certificate does not say CA:FALSE",
    )


def test_its_purpose_is_that_of_an_endorsement_key_where_it_has_any() -> None:
    assert checked(ek_with(maker.basic_constraints(False))) is None
    both = maker.purposes("1.3.6.1.5.5.7.3.2", maker.EK_PURPOSE)
    assert checked(ek_with(maker.basic_constraints(False), both)) is None
    for wrong, said in ((("1.3.6.1.5.5.7.3.2",), "1.3.6.1.5.5.7.3.2"), ((), "none"), (("2.5.29.37.0",), "2.5.29.37.0")):
        found = checked(ek_with(maker.basic_constraints(False), maker.purposes(*wrong)))
        assert found == (Reason.EK_CERTIFICATE_PURPOSE, f"its purposes are {said}")


def test_of_thousands_of_purposes_a_refusal_names_some() -> None:
    many = maker.purposes(*(f"1.2.840.{number}" for number in range(1500)))
    found = checked(ek_with(maker.basic_constraints(False), many))
    assert found == (
        Reason.EK_CERTIFICATE_PURPOSE,
        "its purposes are " + ", ".join(f"1.2.840.{number}" for number in range(8)),
    )


@pytest.mark.parametrize(
    ("extension", "oid"),
    [
        (maker.tpm_names(more=tlv(0x82, b"tpm.example")), "2.5.29.17"),
        (maker.extension("2.5.29.17", tlv(0x30)), "2.5.29.17"),
        (maker.extension("2.5.29.9", tlv(0x30)), "2.5.29.9"),
        (maker.extension("2.5.29.30", tlv(0x30)), "2.5.29.30"),
        (maker.extension("1.3.6.1.4.1.99999.1", b"\x05\x00"), "1.3.6.1.4.1.99999.1"),
    ],
    ids=["another name", "no name", "directory attributes", "name constraints", "its own"],
)
def test_only_the_tcgs_critical_names_count_as_handled(extension: Any, oid: str) -> None:
    assert checked(ek_with(maker.basic_constraints(False), extension)) == (Reason.EK_CERTIFICATE_EXTENSION, oid)
    kind, _, value = extension
    assert checked(ek_with(maker.basic_constraints(False), (kind, False, value))) is None
