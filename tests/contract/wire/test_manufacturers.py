"""Certificates of real manufacturers, and OpenSSL as the third opinion on chains of our own.

The real ones lie beside the repository; where they are not, the same departures from DER are made by code
(tests/unit/protocol/pki/test_ek_certificate.py, tests/unit/controlplane/test_ek_chain.py)."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from bcd.adapters.tpm.identify import LinkedTpm
from bcd.controlplane.domain.ek_admission import Admitted, Denied, OfferedEk, Pending, judge_ek
from bcd.controlplane.domain.ek_chain import anchors_above, check_ek
from bcd.controlplane.domain.eks import EkRoot
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import Reason
from bcd.domain.model.names import Role, SiteId
from bcd.domain.model.tpm import EkKind
from bcd.protocol.pki import ek_signature
from bcd.protocol.pki.ek_certificate import ManufacturerCertificate, read, read_authority
from tests.fakes import manufacturer as maker
from tests.fakes import swtpm
from tests.fakes.controlplane.rows import AT
from tests.fakes.manufacturer import Ca

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
here = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


def bodies(path: Path) -> list[bytes]:
    return [base64.b64decode(body) for body in _PEM.findall(path.read_bytes())]


def roots() -> dict[str, ManufacturerCertificate]:
    found = {}
    for path in sorted((DATA / "tpm-roots").glob("*.pem")):
        (found[path.stem],) = map(read, bodies(path))
    return found


@here
def test_every_manufacturers_ca_is_read_and_may_sign() -> None:
    every = roots()
    assert len(every) == 51
    assert [name for name, ca in every.items() if not ca.is_ca or ca.signs_certificates is False] == []


@here
def test_the_seven_that_are_not_der_are_read_too() -> None:
    refused = []
    for name, ca in roots().items():
        try:
            x509.load_der_x509_certificate(ca.der).subject  # noqa: B018 - read when asked for
        except ValueError:
            refused.append(name)
    assert len(refused) == 7
    every = roots()
    for name in refused:
        assert ek_signature.is_signed_by(every[name], every[name])


@here
def test_an_st_chip_leads_to_globalsigns_root() -> None:
    every = roots()
    found = read((DATA / "ek" / "st-rsa-nv-contents.bin").read_bytes())
    assert len(found.der) == 1169
    key = load_der_public_key(found.spki)
    assert isinstance(key, rsa.RSAPublicKey) and key.key_size == 2048
    check_ek(found)
    above = anchors_above(found, [], list(every.values()))
    assert above == (every["STM_RSA_05I"], every["STM_RSA_RT"], every["GS_TPM_RT"])
    # The chain may come from the chip, and end anywhere.
    assert anchors_above(found, above[:2], [every["GS_TPM_RT"]]) == (every["GS_TPM_RT"],)
    assert anchors_above(found, [], [every["STM_RSA_05I"]]) == (every["STM_RSA_05I"],)


@here
def test_an_infineon_chip_of_an_unknown_ca_is_refused_by_the_cas_name() -> None:
    found = read((DATA / "ek" / "infineon-rsa-035.der").read_bytes())
    check_ek(found)
    with pytest.raises(No) as caught:
        anchors_above(found, [], list(roots().values()))
    assert caught.value.reason is Reason.EK_CA_UNKNOWN
    assert "CN=Infineon OPTIGA(TM) RSA Manufacturing CA 035" in caught.value.detail


@here
def test_openssl_says_the_same_of_every_manufacturers_ca(tmp_path: Path) -> None:
    """Save of Infineon's oldest: they name their root's own certificate by its number, and the one collected is that of
    the same key by VeriSign. OpenSSL takes the number for more than the hint it is (RFC 5280, 4.2.1.1)."""
    every = roots()
    ours, openssls = set(), set()
    for name, ca in every.items():
        others = [other for other in every.values() if other.der != ca.der]
        try:
            anchors_above(ca, [], others)
            ours.add(name)
        except No:
            pass
        if openssl_verifies(tmp_path, ca.der, [other.der for other in others]):
            openssls.add(name)
    assert openssls <= ours
    assert len(ours) > 30
    assert {name for name in ours - openssls if not re.fullmatch(r"IFX(_RSA_)?\d+I?", name)} == set()


def openssl_verifies(folder: Path, der: bytes, anchors: list[bytes], chain: list[bytes] | None = None) -> bool:
    """With each of `anchors` trusted for itself, at no particular time."""
    words = ["openssl", "verify", "-partial_chain", "-no_check_time", "-auth_level", "0"]
    for option, certificates in (("-trusted", anchors), ("-untrusted", chain or [])):
        if certificates:
            path = folder / f"{option}.pem"
            path.write_bytes(b"".join(map(pem, certificates)))
            words += [option, str(path)]
    leaf = folder / "leaf.pem"
    leaf.write_bytes(pem(der))
    return subprocess.run([*words, str(leaf)], capture_output=True, check=False).returncode == 0


def pem(der: bytes) -> bytes:
    text = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE-----\n" + text + b"-----END CERTIFICATE-----\n"


SPKI = maker.rsa_spki(maker.modulus(1))
ROOT = maker.root()
ISSUING = ROOT.below(9003, "Maker Issuing CA")
ODD = maker.root(9009, subject=maker.name("Odd CA", one_set=True, sorted_=False))
SHORT = maker.root(9006, "Short CA", extensions=(maker.basic_constraints(True, 0), maker.key_usage(0x04)))
BELOW_SHORT = SHORT.below(9007, "Below CA")
NO_CA = maker.root(9012, "No CA", extensions=(maker.basic_constraints(False), maker.key_usage(0x04)))
NO_SIGNER = maker.root(9013, "No Signer", extensions=(maker.basic_constraints(True), maker.key_usage(0x20)))
OLD = maker.rsa_root(algorithm=maker.RSA_SHA1)
CASES: dict[str, tuple[bytes, list[Ca], list[Ca]]] = {
    "a root": (ROOT.ek(SPKI), [ROOT], []),
    "an intermediate alone": (ISSUING.ek(SPKI), [ISSUING], []),
    "by the chip's chain": (ISSUING.ek(SPKI), [ROOT], [ISSUING]),
    "the chip's chain alone": (ISSUING.ek(SPKI), [SHORT], [ISSUING, ROOT]),
    "an expired one": (ROOT.ek(SPKI, not_after=b"210101000000Z"), [ROOT], []),
    "a name out of order": (ODD.ek(SPKI), [ODD], []),
    "a negative serial": (ROOT.ek(SPKI, serial=b"\xff\x07"), [ROOT], []),
    "by RSA with SHA-1": (OLD.ek(SPKI), [OLD], []),
    "a namesake": (ROOT.ek(SPKI), [maker.root(9005, "Maker Root CA")], []),
    "too long a path": (BELOW_SHORT.ek(SPKI), [SHORT], [BELOW_SHORT]),
    "below no CA": (NO_CA.ek(SPKI), [NO_CA], []),
    "by one that may not sign": (NO_SIGNER.ek(SPKI), [NO_SIGNER], []),
    "spoiled": (ROOT.ek(SPKI)[:-1] + b"\x00", [ROOT], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_openssl_says_the_same_of_a_chain(case: str, tmp_path: Path) -> None:
    ek, anchors, chain = CASES[case]
    try:
        ours = bool(anchors_above(read(ek), [read(ca.der) for ca in chain], [read(ca.der) for ca in anchors]))
    except No:
        ours = False
    assert openssl_verifies(tmp_path, ek, [ca.der for ca in anchors], [ca.der for ca in chain]) == ours


def test_a_serial_with_zeros_is_more_than_openssl_takes(tmp_path: Path) -> None:
    """Why there is a reader of our own: there are chips with one."""
    ek = ROOT.ek(SPKI, serial=b"\x00\x00\x07")
    assert anchors_above(read(ek), [], [read(ROOT.der)])
    assert not openssl_verifies(tmp_path, ek, [ROOT.der])


def test_openssl_has_the_same_key_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "ek.der"
    path.write_bytes(ROOT.ek(SPKI))
    words = ["openssl", "x509", "-in", str(path), "-inform", "DER", "-noout", "-pubkey"]
    public = subprocess.run(words, capture_output=True, check=True).stdout
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], input=public, capture_output=True, check=True
    ).stdout
    assert hashlib.sha256(der).digest() == hashlib.sha256(read(path.read_bytes()).spki).digest()


# ---- a manufacturer nobody here wrote: swtpm's


@pytest.fixture(scope="module")
def certified() -> Iterator[tuple[OfferedEk, list[bytes]]]:
    """What a software TPM offers, and the CAs of who made it, the issuing one first."""
    with tempfile.TemporaryDirectory() as home:
        state = Path(home) / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        pems = sorted(Path(home).glob("made-manufacturer/*.pem"))
        cas = [read_authority(der) for path in pems for der in bodies(path)]
        with swtpm.running(Path(home) / "run", state) as tpm:
            found = LinkedTpm(tpm.client).identify()
    (key,) = [one for one in found.endorsement_keys if one.kind is EkKind.RSA_2048]
    assert key.certificate is not None
    cas.sort(key=lambda ca: ca.subject == ca.issuer)
    yield OfferedEk(key.spki, key.certificate.data), [ca.der for ca in cas]


def root(der: bytes, site: SiteId | None = None) -> EkRoot:
    return EkRoot(f"sha256:{hashlib.sha256(der).hexdigest()}", der, AT, site, Role.NODE if site else None)


def test_swtpms_certificate_has_what_only_the_tcg_knows_and_counts(certified: tuple[OfferedEk, list[bytes]]) -> None:
    """Field report B45."""
    offered, cas = certified
    assert "2.5.29.17" in read(offered.certificate).critical
    assert len(cas) == 2
    for trusted in (cas, cas[:1], cas[::-1]):
        verdict = judge_ek([offered], [root(der) for der in trusted], [], [])
        assert isinstance(verdict, Pending)
        assert verdict.roots == tuple(root(der).fingerprint for der in cas[: len(trusted)])
    admitted = judge_ek([offered], [root(cas[0]), root(cas[1], SiteId("lab"))], [], [])
    assert isinstance(admitted, Admitted) and admitted.site == "lab"
    # The issuing CA is not on the chip.
    unknown = judge_ek([offered], [root(cas[1])], [], [])
    assert isinstance(unknown, Denied) and unknown.reason is Reason.EK_CA_UNKNOWN
    brought = OfferedEk(offered.spki, offered.certificate, (cas[0],))
    assert isinstance(judge_ek([brought], [root(cas[1])], [], []), Pending)
