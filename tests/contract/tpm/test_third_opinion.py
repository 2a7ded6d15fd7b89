"""Who answers, and what tpm2-tools make of both: nobody here wrote them."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from cryptography.x509.oid import ObjectIdentifier

from bcd.adapters.tpm.client import Key
from bcd.adapters.tpm.stream import SocketLink
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.commands import AttestOut, CertifyIn, PolicySecretIn, QuoteIn, StartAuthSessionIn
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    Algorithm,
    Attest,
    EcdsaSignature,
    Handle,
    PcrSelection,
    Public,
    Scheme,
    Signature,
    Symmetric,
    policy,
)
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes import simtpm
from tests.fakes.software_tpm import Ours, SoftwareTpm, Theirs
from tests.fakes.swtpm import SwTpm

NODE_KEY = Key(Handle.OWNER, templates.node_key(bytes(range(32))))
AK = Key(Handle.ENDORSEMENT, templates.AK)
EKS = {
    "rsa": Key(Handle.ENDORSEMENT, templates.EK_RSA_2048),
    "ecc": Key(Handle.ENDORSEMENT, templates.EK_ECC_P256),
}
NONCE = bytes(range(20))
NULL = Scheme(Algorithm.NULL, None)
ALL_PCRS = PcrSelection(Algorithm.SHA256, b"\xff\xff\xff")


@pytest.fixture
def tools(tpm: SoftwareTpm) -> Iterator[SwTpm]:
    """A directory, and tools that are asked nothing of the TPM there."""
    if isinstance(tpm, Theirs):
        yield tpm.tpm
        return
    with TemporaryDirectory() as home:
        other = Theirs(Path(home))
        yield other.tpm
        other.close()


def test_the_two_that_answer_are_not_one(
    both: tuple[SoftwareTpm, SoftwareTpm], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = both
    assert isinstance(ours, Ours)
    assert isinstance(theirs, Theirs)
    properties = theirs.tpm.tool("tpm2_getcap", "properties-fixed")
    [manufacturer] = re.findall(r'TPM2_PT_MANUFACTURER:\n.*\n\s+value: "(\w+)"', properties)
    assert theirs.process.pid != os.getpid()
    program = os.readlink(f"/proc/{theirs.process.pid}/exe")
    with capsys.disabled():
        print(f"\nswtpm: process {theirs.process.pid}, {program}, libtpms made by {manufacturer}")
        print(f"tpmsim: process {os.getpid()}, made by BCDS ({simtpm.made_by()})")
    assert manufacturer == "IBM" != simtpm.made_by()
    assert Path(program).name == "swtpm"
    assert isinstance(theirs.link(), SocketLink)
    assert not isinstance(ours.link(), SocketLink)
    keys = []
    for one in both:
        client = one.client()
        keys.append(client.load(AK).public)
        client.close()
    assert keys[0] != keys[1]


@pytest.mark.parametrize("key", [NODE_KEY, AK, *EKS.values()], ids=["node key", "AK", "EK RSA", "EK ECC"])
def test_tools_read_a_public_area(key: Key, tpm: SoftwareTpm, tools: SwTpm) -> None:
    client = tpm.client()
    public = client.load(key).public
    client.close()
    written = encode(public)
    (tools.home / "public").write_bytes(len(written).to_bytes(2) + written)
    printed = tools.tool("tpm2_print", "-t", "TPM2B_PUBLIC", "public")
    assert f"raw: {key.template.attributes:#x}" in printed
    parts = [public.unique] if isinstance(public.unique, bytes) else vars(public.unique).values()
    assert all(part.hex() in printed for part in parts)
    # libtpms names what it is given by itself.
    tools.tool("tpm2_loadexternal", "-C", "n", "-u", "public", "-c", "public.ctx", "-n", "name")
    assert (tools.home / "name").read_bytes() == names.name(public)


def attested(tpm: SoftwareTpm) -> tuple[AttestOut, Public]:
    client = tpm.client()
    answer, [ak] = client.use((AK,), commands.QUOTE, QuoteIn(NONCE, NULL, (ALL_PCRS,)))
    client.close()
    return answer.parameters, ak


def test_tools_read_an_attestation(tpm: SoftwareTpm, tools: SwTpm) -> None:
    made, _ = attested(tpm)
    (tools.home / "attest").write_bytes(made.attest)
    printed = tools.tool("tpm2_print", "-t", "TPMS_ATTEST", "attest")
    read = decode(Attest, made.attest)
    assert "magic: ff544347" in printed
    assert "type: 8018" in printed
    assert f"qualifiedSigner: {read.qualified_signer.hex()}" in printed
    assert f"extraData: {NONCE.hex()}" in printed
    assert f"clock: {read.clock.clock_ms}" in printed
    assert f"resetCount: {read.clock.resets}" in printed


def checks(tools: SwTpm, made: AttestOut, ak: Public, nonce: bytes) -> bool:
    key = load_der_public_key(names.spki(ak))
    (tools.home / "ak.pem").write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tools.home / "attest").write_bytes(made.attest)
    (tools.home / "signature").write_bytes(encode(made.signature))
    words = ("-u", "ak.pem", "-m", "attest", "-s", "signature", "-q", nonce.hex(), "-g", "sha256")
    try:
        tools.tool("tpm2_checkquote", *words)
    except AssertionError:
        return False
    return True


def test_tools_check_a_quote(tpm: SoftwareTpm, tools: SwTpm) -> None:
    made, ak = attested(tpm)
    assert checks(tools, made, ak, NONCE)
    assert not checks(tools, made, ak, NONCE[::-1])
    halves = made.signature.ecdsa
    forged = Signature(Algorithm.ECDSA, EcdsaSignature(halves.hash, halves.s, halves.r))
    assert not checks(tools, AttestOut(made.attest, forged), ak, NONCE)


@pytest.mark.parametrize("kind", EKS)
def test_what_tools_make_a_credential_of_is_opened(kind: str, tpm: SoftwareTpm, tools: SwTpm) -> None:
    client = tpm.client()
    ek, ak = client.load(EKS[kind]), client.load(AK)
    written = encode(ek.public)
    (tools.home / "ek.pub").write_bytes(len(written).to_bytes(2) + written)
    (tools.home / "secret").write_bytes(b"of the tools")
    client.close()
    name = names.name(ak.public).hex()
    tools.tool("tpm2_makecredential", "-T", "none", "-u", "ek.pub", "-s", "secret", "-n", name, "-o", "blob")
    blob = (tools.home / "blob").read_bytes()
    at = 10 + int.from_bytes(blob[8:10])
    wanted = commands.ActivateCredentialIn(blob[10:at], blob[at + 2 :])
    client = tpm.client()
    started = StartAuthSessionIn(bytes(16), b"", 1, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
    [session] = client.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), started).handles
    client.run(commands.POLICY_SECRET, (Handle.ENDORSEMENT, session), PolicySecretIn(b"", b"", b"", 0))
    auths = (EMPTY_PASSWORD, policy(session))
    answer, _ = client.use((AK, EKS[kind]), commands.ACTIVATE_CREDENTIAL, wanted, auths)
    client.close()
    assert answer.parameters.secret == b"of the tools"


def test_what_is_persistent_is_as_before_whatever_bcd_sends(both: tuple[SoftwareTpm, SoftwareTpm]) -> None:
    ours, theirs = both
    assert isinstance(ours, Ours)
    assert isinstance(theirs, Theirs)
    for one in both:
        one.persist_ek()
        one.store(0x01C00002, b"certificate", "ownerwrite|ownerread|authread|no_da")
    state = ours.bench.state()
    kept = theirs.tpm.kept()
    for one in both:
        client = one.client()
        client.run(commands.READ_PUBLIC, (0x81010001,), commands.Empty())
        client.run(commands.NV_READ, (0x01C00002, 0x01C00002), commands.NvReadIn(11, 0))
        for key in (NODE_KEY, AK, EKS["ecc"]):
            client.load(key)
        client.use((NODE_KEY, AK), commands.CERTIFY, CertifyIn(NONCE, NULL))
        client.close()
        attested(one)
    assert ours.bench.state() == state
    assert theirs.tpm.kept() == kept


# ---- a manufactured one


def test_openssl_reads_the_manufacturers_certificates(tmp_path: Path) -> None:
    tpm = simtpm.made(tmp_path)
    root, issuing = tpm.manufacturer / "root.pem", tpm.manufacturer / "issuing.pem"
    with TemporaryDirectory() as home:
        other = Theirs(Path(home))
        for index, usage in ((0x01C00002, "Key Encipherment"), (0x01C0000A, "Key Agreement")):
            certificate = tpm.bench.state().known_index(index).data
            (tmp_path / "ek.der").write_bytes(certificate)
            words = ("-CAfile", str(root), "-untrusted", str(issuing), "-ignore_critical", str(tmp_path / "ek.der"))
            assert other.tpm.tool("openssl", "verify", *words).endswith("OK\n")
            read = x509.load_der_x509_certificate(certificate)
            names_ = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            assert names_.critical
            [directory] = names_.value
            oids = [f"2.23.133.2.{number}" for number in (1, 2, 3)]
            assert [one.oid.dotted_string for one in directory.value] == oids
            [first, *_] = directory.value
            assert first.value == simtpm.made_by()
            usages = read.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
            assert list(usages) == [ObjectIdentifier("2.23.133.8.1")]
            assert usage in other.tpm.tool("openssl", "x509", "-in", str(tmp_path / "ek.der"), "-noout", "-text")
            assert list(read.subject) == []
        other.close()


def test_another_tpm_of_the_same_manufacturer_is_another(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        tpm = simtpm.made(tmp_path / name)
        digests.add(hashlib.sha256(tpm.bench.state().known_index(0x01C00002).data).hexdigest())
    assert len(digests) == 2
