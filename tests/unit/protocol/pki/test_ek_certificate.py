"""Certificates of TPM manufacturers as chips hold them: out of form, and read all the same."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.pki import ek_certificate, ek_signature
from bcd.protocol.pki.ek_certificate import Malformed, read, read_all
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.templates import EK_ECC_P256, EK_RSA_2048
from tests.fakes import manufacturer as maker
from tests.fakes.manufacturer import tlv
from tests.fakes.properties import few

SPKI = maker.rsa_spki(maker.modulus(1))
ROOT = maker.root()
EK = ROOT.ek(SPKI)


def form(**changes: object) -> bytes:
    usual = ROOT.form(maker.EMPTY_NAME, SPKI, (maker.basic_constraints(False),))
    return replace(usual, **changes).signed(ROOT.key)  # type: ignore[arg-type]


def why(data: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        read(data)
    return str(caught.value)


def test_it_is_read_as_it_was_written() -> None:
    found = read(EK)
    assert found.der == EK
    assert found.spki == SPKI
    assert str(found.issuer) == "CN=Maker Root CA, O=Maker Ltd, C=XX"
    assert str(found.subject) == "(no name)"
    assert found.not_before == datetime(2020, 1, 1, tzinfo=UTC)
    assert found.not_after == datetime(2030, 1, 1, tzinfo=UTC)
    assert (found.is_ca, found.path_length, found.signs_certificates) == (False, None, False)
    assert found.purposes == (maker.EK_PURPOSE,)
    assert found.critical == ("2.5.29.17", "2.5.29.19", "2.5.29.15")
    assert found.names_directories
    strict = x509.load_der_x509_certificate(EK)
    assert found.signed == strict.tbs_certificate_bytes
    assert found.signature == strict.signature


@pytest.mark.parametrize("filler", [b"\xff", b"\x00"], ids=["ff", "00"])
def test_padding_is_dropped(filler: bytes) -> None:
    """Field report B43."""
    with pytest.raises(ValueError, match="ExtraData"):
        x509.load_der_x509_certificate(maker.padded(EK, filler))
    assert read(maker.padded(EK, filler)).der == EK


@pytest.mark.parametrize(
    "header",
    [maker.with_tcg_header(EK)[:7], b"\x00" * 4, len(EK).to_bytes(2), b"\x30\x00", b"\xff" * 16],
    ids=["TCG", "zeros", "its length", "an empty sequence", "as long as may be"],
)
def test_a_header_before_it_is_skipped(header: bytes) -> None:
    """Field report B44."""
    assert read(maker.padded(header + EK)).der == EK


def test_a_header_is_not_looked_past_for_ever() -> None:
    assert why(b"\x01" * 17 + EK) == "no certificate in it"


@pytest.mark.parametrize("serial", [b"\x00\x00\x00\x11", b"\x00", b"\xff\x01", b"", b"\x01" * 40])
def test_a_serial_number_may_be_any(serial: bytes) -> None:
    """Field report B44."""
    found = read(form(serial=serial))
    assert ek_signature.is_signed_by(found, read(ROOT.der))


def test_a_name_whose_set_is_out_of_order_is_the_name_all_the_same() -> None:
    odd, even = (maker.name("Odd", one_set=True, sorted_=sorted_) for sorted_ in (False, True))
    assert odd != even
    certificate = form(subject=odd)
    with pytest.raises(ValueError, match="InvalidSetOrdering"):
        _ = x509.load_der_x509_certificate(certificate).subject
    assert read(certificate).subject.parts == read(form(subject=even)).subject.parts


def test_a_name_is_the_same_in_other_letters_and_spaces() -> None:
    one, other = (read(form(subject=maker.name(text))).subject for text in ("Maker  CA ", "maker ca"))
    assert one.parts == other.parts
    assert one.parts != read(form(subject=maker.name("maker c a"))).subject.parts


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        (0x0C, "Mäker".encode()),
        (0x1E, "Mäker".encode("utf-16-be")),
        (0x1C, "Mäker".encode("utf-32-be")),
        (0x13, b"M\xe4ker"),
    ],
    ids=["UTF8String", "BMPString", "UniversalString", "not UTF-8"],
)
def test_a_names_text_is_read_in_the_kinds_manufacturers_use(tag: int, text: bytes) -> None:
    subject = tlv(0x30, tlv(0x31, tlv(0x30, maker.oid("2.5.4.3"), tlv(tag, text))))
    assert str(read(form(subject=subject)).subject) in {"CN=Mäker", "CN=M\ufffdker"}


@pytest.mark.parametrize(
    "attribute",
    [tlv(0x30, maker.oid("2.5.4.3")), tlv(0x30), tlv(0x30, tlv(0x06), tlv(0x0C, b"a")), b"\x30\x05"],
    ids=["no text", "nothing", "no name", "cut"],
)
def test_a_name_that_does_not_parse_is_malformed(attribute: bytes) -> None:
    assert why(form(subject=tlv(0x30, tlv(0x31, attribute)))) == "its parts do not parse"


def test_a_name_is_shown_in_one_printable_line() -> None:
    shown = str(read(form(subject=maker.name("a\n\x1b[31mb" + "c" * 500))).subject)
    assert shown.startswith("CN=a??[31mbccc")
    assert len(shown) == 200


@pytest.mark.parametrize(
    "parameters", [maker.NULL, tlv(0x30), tlv(0x30, tlv(0xA0, tlv(0x30, maker.oid("2.16.840.1.101.3.4.2.1")))), b""]
)
@pytest.mark.parametrize("algorithm", [maker.RSA_ENCRYPTION, maker.RSAES_OAEP])
def test_an_rsa_key_is_one_key_whatever_it_is_said_to_be_for(algorithm: str, parameters: bytes) -> None:
    assert read(form(spki=maker.rsa_spki(maker.modulus(1), algorithm, parameters))).spki == SPKI


def test_the_key_is_written_as_that_of_the_tpms_public_area() -> None:
    public = replace(EK_RSA_2048, unique=maker.modulus(1).to_bytes(256))
    assert read(EK).spki == names.spki(public)
    point = maker.ec_key(7).public_key().public_numbers()
    of_curve = replace(EK_ECC_P256, unique=type(EK_ECC_P256.unique)(point.x.to_bytes(32), point.y.to_bytes(32)))  # type: ignore[arg-type,call-arg]
    assert read(ROOT.ek(maker.spki_of(maker.ec_key(7)))).spki == names.spki(of_curve)


def test_a_key_on_another_curve_is_read() -> None:
    spki = maker.spki_of(maker.ec_key(7, ec.SECP384R1()))
    assert read(form(spki=spki)).spki == spki


@pytest.mark.parametrize(
    ("spki", "said"),
    [
        (maker.rsa_spki(1 << 9000 | 1), "its key is larger than RSA keys are"),
        (maker.rsa_spki(5), "its key is none that is known here"),
        (maker.spki_of(ed25519.Ed25519PrivateKey.generate()), "its key is neither RSA nor on a curve"),
        (tlv(0x30, tlv(0x30, maker.oid("1.2.3")), tlv(0x03, b"\x00")), "its key is none that is known here"),
        (tlv(0x30, tlv(0x30, maker.oid("1.2.840.113549.1.1.1")), tlv(0x03)), "its parts do not parse"),
    ],
    ids=["too large", "too small", "Ed25519", "unknown", "empty"],
)  # fmt: skip
def test_a_key_that_is_of_no_use_is_told(spki: bytes, said: str) -> None:
    assert why(form(spki=spki)).startswith(said)


@pytest.mark.parametrize(
    ("not_after", "read_as"),
    [
        (b"491231235959Z", datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"500101000000Z", datetime(1950, 1, 1, tzinfo=UTC)),
        (b"3001010000Z", datetime(2030, 1, 1, tzinfo=UTC)),
        (b"99991231235959Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"00000000000000Z", None),
        (b"soon", None),
        (b"", None),
        (None, None),
    ],
    ids=repr,
)
def test_a_date_is_read_or_is_none(not_after: bytes | None, read_as: datetime | None) -> None:
    assert read(form(not_after=not_after)).not_after == read_as


def test_what_basic_constraints_say_is_read() -> None:
    for extension, said in (
        (maker.basic_constraints(True), (True, None)),
        (maker.basic_constraints(True, 0), (True, 0)),
        (maker.basic_constraints(False), (False, None)),
        (maker.extension("2.5.29.19", tlv(0x30, tlv(0x01, b"\x01"))), (True, None)),
        (maker.extension("2.5.29.19", tlv(0x30, tlv(0x01, b"\x00"))), (False, None)),
    ):
        found = read(form(extensions=(extension,)))
        assert (found.is_ca, found.path_length) == said
    found = read(form(extensions=()))
    assert (found.is_ca, found.signs_certificates, found.purposes, found.critical) == (None, None, None, ())


@pytest.mark.parametrize(("bits", "signs"), [(0x04, True), (0x06, True), (0x20, False), (0xFB, False)])
def test_whether_it_may_sign_certificates_is_bit_five(bits: int, signs: bool) -> None:
    assert read(form(extensions=(maker.key_usage(bits),))).signs_certificates is signs


@pytest.mark.parametrize(("content", "critical"), [(b"\x00", False), (b"\xff", True), (b"\x01", True), (b"", False)])
def test_an_extension_that_says_whether_it_is_critical_is_believed(content: bytes, critical: bool) -> None:
    extension = maker.extension("1.2.3", b"\x05\x00", critical=content)
    assert read(form(extensions=(extension,))).critical == (("1.2.3",) if critical else ())


def test_a_key_usage_without_bits_signs_nothing() -> None:
    for value in (tlv(0x03, b"\x00"), tlv(0x03)):
        assert read(form(extensions=(maker.extension("2.5.29.15", value),))).signs_certificates is False


def test_names_count_as_the_tcgs_when_all_of_them_are_directory_names() -> None:
    assert read(form(extensions=(maker.tpm_names(),))).names_directories
    assert not read(form(extensions=(maker.tpm_names(more=tlv(0x82, b"tpm.example")),))).names_directories
    assert not read(form(extensions=(maker.extension("2.5.29.17", tlv(0x30)),))).names_directories
    assert not read(form(extensions=())).names_directories


def test_an_extension_that_is_there_twice_is_refused() -> None:
    twice = (maker.basic_constraints(False), maker.basic_constraints(True))
    assert why(form(extensions=twice)) == "it has the extension 2.5.29.19 twice"


def test_two_signature_algorithms_are_refused() -> None:
    (tbs, algorithm, signature) = ek_certificate.der.values(ek_certificate.der.first(EK).content)
    other = tlv(0x30, maker.oid(maker.RSA_SHA256), maker.NULL)
    assert other != algorithm.der
    assert why(tlv(0x30, tbs.der, other, signature.der)) == "it names two signature algorithms"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\xff" * 1600, "only padding"),
        (b"\x00" * 1600, "only padding"),
        (b"no certificate", "no certificate in it"),
        (EK[:-1], "no certificate in it"),
        (b"\x00" * (ek_certificate.MAX_BYTES + 1), "16385 bytes are more than a certificate has"),
        (tlv(0x30, tlv(0x30), tlv(0x30), tlv(0x03, b"\x00\x00")), "its parts are not those of a certificate"),
    ],
    ids=["nothing", "ff", "00", "text", "cut", "too much", "hollow"],
)
def test_what_is_no_certificate_is_told(data: bytes, said: str) -> None:
    assert why(data) == said


def test_a_certificate_as_large_as_may_be_is_read() -> None:
    whole = EK.ljust(ek_certificate.MAX_BYTES, b"\xff")
    assert read(whole).der == EK
    assert why(whole + b"\xff") == "16385 bytes are more than a certificate has"


def test_an_rsa_key_as_large_as_may_be_is_read() -> None:
    modulus = int.from_bytes(b"\xff" * 1024)
    assert read(form(spki=maker.rsa_spki(modulus, exponent=2**64 - 1))).spki
    for spki in (maker.rsa_spki(modulus << 8 | 1), maker.rsa_spki(modulus, exponent=2**72 + 1)):
        assert why(form(spki=spki)) == "its key is larger than RSA keys are"


def test_a_certificate_without_a_signature_is_malformed() -> None:
    tbs, algorithm, _ = ek_certificate.der.values(ek_certificate.der.first(EK).content)
    assert why(tlv(0x30, tbs.der, algorithm.der, tlv(0x03))) == "it has no signature"


@pytest.mark.parametrize(
    "extension",
    [
        maker.extension("2.5.29.19", tlv(0x30, tlv(0x04, b"\xff"))),
        maker.extension("2.5.29.19", tlv(0x30, tlv(0x01, b"\xff"), tlv(0x02, b"\x01\x00\x00"))),
        maker.extension("2.5.29.19", b""),
        maker.extension("2.5.29.15", tlv(0x04, b"\x00\x04")),
        maker.extension("2.5.29.37", tlv(0x30, tlv(0x04, b"\x2a"))),
        maker.extension("2.5.29.37", tlv(0x30, tlv(0x06, b"\x2a\x83"))),
        maker.extension("2.5.29.37", tlv(0x30, tlv(0x06, b"\x01" * 33))),
        maker.extension("2.5.29.17", tlv(0x30, b"\xa4\x05")),
    ],
    ids=["constraints", "a long path", "empty", "usage", "purposes", "a cut purpose", "a long purpose", "names"],
)  # fmt: skip
def test_an_extension_that_decides_and_does_not_parse_is_malformed(extension: maker.Extension) -> None:
    assert why(form(extensions=(extension,))) == "its parts do not parse"


def test_a_path_length_below_zero_is_none_at_all() -> None:
    extension = maker.extension("2.5.29.19", tlv(0x30, tlv(0x01, b"\xff"), tlv(0x02, b"\xff")))
    assert read(form(extensions=(extension,))).path_length == 0


def test_an_algorithm_without_a_name_is_malformed() -> None:
    tbs, _, signature = ek_certificate.der.values(ek_certificate.der.first(EK).content)
    assert why(tlv(0x30, tbs.der, tlv(0x30), signature.der)) == "its parts do not parse"


def test_a_chain_is_read_up_to_its_bound() -> None:
    room = ek_certificate.MAX_CHAIN_BYTES - len(ROOT.der)
    assert len(read_all([bytes(room), ROOT.der])) == 1
    assert len(read_all([bytes(room + 1), ROOT.der])) == 0


def test_an_authority_is_a_ca_that_may_sign() -> None:
    assert ek_certificate.read_authority(ROOT.der) == read(ROOT.der)
    for extensions in (
        (maker.basic_constraints(False), maker.key_usage(0x04)),
        (maker.basic_constraints(True), maker.key_usage(0x80)),
        (maker.key_usage(0x04),),
    ):
        with pytest.raises(Malformed, match="not a CA's certificate"):
            ek_certificate.read_authority(form(extensions=extensions))


def test_what_else_may_stand_before_the_extensions_is_passed_over() -> None:
    spki = SPKI + tlv(0x81, b"\x00\x01") + tlv(0x82, b"\x00\x02")
    found = read(form(spki=spki))
    assert (found.spki, found.is_ca) == (SPKI, False)


def test_a_version_one_certificate_has_no_extensions() -> None:
    assert read(form(version=b"", extensions=())).is_ca is None


def test_a_chain_is_read_to_its_end() -> None:
    middle = ROOT.below(2, "Maker Middle CA")
    chain = (middle.der, ROOT.der)
    assert [one.der for one in read_all([maker.padded(one) for one in chain])] == list(chain)
    together = b"".join(chain)
    assert [one.der for one in read_all([together[:500], together[500:]])] == list(chain)
    assert [one.der for one in read_all([middle.der, b"\x01" * 40, ROOT.der])] == [middle.der]
    assert read_all([]) == read_all([b"\xff" * 100]) == read_all([b"nothing"]) == ()
    assert len(read_all([ROOT.der] * 50)) == ek_certificate.MAX_CHAIN


@few
@given(st.binary(max_size=300))
def test_any_bytes_give_a_certificate_or_malformed(data: bytes) -> None:
    for whole in (data, tlv(0x30, tlv(0x30, data), tlv(0x30, data), tlv(0x03, data))):
        read_all([whole])
        try:
            read(whole)
        except Malformed as error:
            assert str(error).isprintable()


def test_a_certificate_with_any_byte_changed_is_read_or_malformed_and_not_signed_any_more() -> None:
    below, above = read(EK), read(ROOT.der)
    assert ek_signature.is_signed_by(below, above)
    drawn = random.Random(45)
    for at in range(len(EK)):
        changed = bytearray(EK)
        changed[at] ^= drawn.randrange(1, 256)
        try:
            found = read(bytes(changed))
        except Malformed:
            continue
        if found.signed != below.signed or found.signature != below.signature:
            assert not ek_signature.is_signed_by(found, above), at


def test_a_certificate_cut_anywhere_is_malformed() -> None:
    for size in range(len(EK)):
        assert why(EK[:size])


@few
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_a_certificate_with_several_changes_is_read_or_malformed(seed: int, changes: int) -> None:
    drawn = random.Random(seed)
    data = bytearray(EK)
    for _ in range(changes):
        at = drawn.randrange(len(data))
        match drawn.randrange(3):
            case 0:
                data[at] = drawn.randrange(256)
            case 1:
                del data[at : at + drawn.randrange(1, 9)]
            case 2:
                data[at:at] = drawn.randbytes(drawn.randrange(1, 9))
    try:
        read(bytes(data))
    except Malformed:
        pass
