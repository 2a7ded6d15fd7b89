"""Our quote and our certification by a third opinion: tpm2-tools check what our client had a TPM sign."""

import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from bcd.domain.model.attestation import Attestation
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.structures import Algorithm, Attest, EcdsaSignature, PcrSelection, Signature
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes import swtpm
from tests.fakes.swtpm import SwTpm
from tests.fakes.tpm_machine import AK, TpmMachine

NONCE = bytes(range(32))
SELECTION = PcrSelection(Algorithm.SHA256, b"\xff\0\0")


@pytest.fixture(scope="module")
def tpm() -> Iterator[SwTpm]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as running:
        running.tool("tpm2_pcrextend", f"3:sha256={'ab' * 32}")
        yield running


def as_tools_keep(pcrs: tuple[bytes, ...]) -> bytes:
    """tpm2-tools' file of PCR values: C structures as they lie in memory, a selection, a count, TPML_DIGESTs."""
    selection = struct.pack("<HB4sx", SELECTION.bank, len(SELECTION.selected), SELECTION.selected)
    digests = b"".join(struct.pack("<H64s", len(value), value) for value in pcrs)
    return struct.pack("<I128sII528s", 1, selection, 1, len(pcrs), digests)


def written(tpm: SwTpm, machine: TpmMachine, quote: Attestation, pcrs: tuple[bytes, ...]) -> None:
    """For the tools, which need swtpm's one connection for themselves."""
    key = load_der_public_key(names.spki(machine.public(AK)))
    (tpm.home / "ak.pem").write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tpm.home / "attest").write_bytes(quote.attest)
    halves = EcdsaSignature(Algorithm.SHA256, quote.signature[:32], quote.signature[32:])
    (tpm.home / "signature").write_bytes(encode(Signature(Algorithm.ECDSA, halves)))
    (tpm.home / "pcrs").write_bytes(as_tools_keep(pcrs))
    machine.client.close()


def checked(tpm: SwTpm, nonce: bytes) -> bool:
    words = ("-u", "ak.pem", "-m", "attest", "-s", "signature", "-q", nonce.hex(), "-g", "sha256", "-f", "pcrs")
    try:
        tpm.tool("tpm2_checkquote", *words)
    except AssertionError:
        return False
    return True


def test_tpm2_checkquote_passes_our_quote_and_not_a_changed_one(tpm: SwTpm) -> None:
    machine = TpmMachine(tpm.client())
    quote, pcrs = machine.quote(NONCE, (SELECTION,)), machine.pcrs((SELECTION,))
    assert pcrs[3] == sha256(bytes(32) + b"\xab" * 32).digest()
    written(tpm, machine, quote, pcrs)
    assert checked(tpm, NONCE)
    assert not checked(tpm, NONCE[::-1])
    written(tpm, machine, quote, (*pcrs[:7], b"\1" * 32))
    assert not checked(tpm, NONCE)
    written(tpm, machine, machine.quote(NONCE, (PcrSelection(Algorithm.SHA256, b"\x7f\0\0"),)), pcrs)
    assert not checked(tpm, NONCE)


def test_tpm2_print_reads_our_quote_as_we_do(tpm: SwTpm) -> None:
    machine = TpmMachine(tpm.client())
    quote = machine.quote(NONCE, (SELECTION,))
    written(tpm, machine, quote, ())
    printed = tpm.tool("tpm2_print", "-t", "TPMS_ATTEST", "attest")
    read = decode(Attest, quote.attest)
    assert "magic: ff544347" in printed
    assert "type: 8018" in printed
    assert f"extraData: {NONCE.hex()}" in printed
    assert f"resetCount: {read.clock.resets}" in printed
    assert f"pcrDigest: {read.attested.pcr_digest.hex()}" in printed
    assert f"pcrSelect: {SELECTION.selected.hex()}" in printed
