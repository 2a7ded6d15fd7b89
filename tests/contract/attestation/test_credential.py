"""Credentials against tpm2-tools and libtpms: who makes one and who opens it need not know each other."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bcd.adapters.tpm.client import Key
from bcd.adapters.tpm.failures import Refusal
from bcd.domain.model.attestation import TpmChallenge
from bcd.protocol.tpm2 import credential, names, templates
from bcd.protocol.tpm2.structures import Point, Public
from bcd.protocol.tpm2.wire import Malformed, encode
from tests.fakes import swtpm
from tests.fakes.swtpm import SwTpm
from tests.fakes.tpm_machine import AK, ECC_EK, RSA_EK, TpmMachine

SECRET = bytes(range(100, 132))
KEYS = pytest.mark.parametrize("key", [RSA_EK, ECC_EK], ids=["rsa", "ecc"])


@pytest.fixture(scope="module")
def tpm() -> Iterator[SwTpm]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as running:
        yield running


def challenged(made: tuple[bytes, bytes], ek: Public) -> TpmChallenge:
    return TpmChallenge(*made, bytes(32), 11, b"\xff\0\0", names.name(ek))


@KEYS
def test_our_credential_opens_in_a_tpm(tpm: SwTpm, key: Key) -> None:
    machine = TpmMachine(tpm.client())
    ek, ak_name = machine.public(key), names.name(machine.public(AK))
    made = credential.make_credential(ek, ak_name, SECRET)
    assert machine.activate(challenged(made, ek)) == SECRET
    machine.client.close()


@KEYS
def test_a_credential_for_another_key_does_not_open(tpm: SwTpm, key: Key) -> None:
    machine = TpmMachine(tpm.client())
    ek = machine.public(key)
    made = credential.make_credential(ek, names.name(machine.public(machine.node_key)), SECRET)
    with pytest.raises(Refusal):
        machine.activate(challenged(made, ek))
    machine.client.close()


@KEYS
def test_what_tpm2_makecredential_makes_opens_with_our_client(tpm: SwTpm, key: Key) -> None:
    machine = TpmMachine(tpm.client())
    ek, ak_name = machine.public(key), names.name(machine.public(AK))
    sized = encode(ek)
    (tpm.home / "ek.pub").write_bytes(len(sized).to_bytes(2) + sized)
    (tpm.home / "secret").write_bytes(SECRET)
    tpm.tool("tpm2_makecredential", "-T", "none", "-u", "ek.pub", "-s", "secret", "-n", ak_name.hex(), "-o", "blob")
    # tpm2-tools' file: a magic number, a version, then TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET.
    blob = (tpm.home / "blob").read_bytes()
    assert blob[:8] == bytes.fromhex("badcc0de00000001")
    at = 10 + int.from_bytes(blob[8:10])
    made = blob[10:at], blob[at + 2 :]
    assert machine.activate(challenged(made, ek)) == SECRET
    machine.client.close()


@KEYS
def test_tpm2_activatecredential_opens_what_we_make(tpm: SwTpm, key: Key) -> None:
    machine = TpmMachine(tpm.client())
    ek, ak_name = machine.public(key), names.name(machine.public(AK))
    machine.client.close()
    kind = "rsa" if key is RSA_EK else "ecc"
    tpm.tool("tpm2_createek", "-c", "ek.ctx", "-G", kind, "-u", f"{kind}.pub")
    tpm.tool(
        "tpm2_createak", "-C", "ek.ctx", "-c", "ak.ctx", "-G", "ecc", "-g", "sha256", "-s", "ecdsa", "-n", "ak.name"
    )
    tpm.tool("tpm2_flushcontext", "-t")
    theirs = (tpm.home / "ak.name").read_bytes()
    assert theirs != ak_name
    made = credential.make_credential(ek, theirs, SECRET)
    blob = bytes.fromhex("badcc0de00000001") + b"".join(len(part).to_bytes(2) + part for part in made)
    (tpm.home / "ours").write_bytes(blob)
    tpm.tool("tpm2_startauthsession", "--policy-session", "-S", "session.ctx")
    tpm.tool("tpm2_policysecret", "-S", "session.ctx", "-c", "e")
    files = ("-i", "ours", "-o", "opened")
    tpm.tool("tpm2_activatecredential", "-c", "ak.ctx", "-C", "ek.ctx", *files, "-P", "session:session.ctx")
    assert (tpm.home / "opened").read_bytes() == SECRET
    tpm.tool("tpm2_flushcontext", "session.ctx")
    tpm.tool("tpm2_flushcontext", "-t")


def software_ek(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> Public:
    if isinstance(key, rsa.RSAPrivateKey):
        template, unique = templates.EK_RSA_2048, key.public_key().public_numbers().n.to_bytes(256)
        return Public(**{**vars(template), "unique": unique})
    numbers = key.public_key().public_numbers()
    point = Point(numbers.x.to_bytes(32), numbers.y.to_bytes(32))
    return Public(**{**vars(templates.EK_ECC_P256), "unique": point})


def test_what_is_made_for_a_key_in_software_opens_with_its_private_key() -> None:
    for key in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())):
        made, encrypted = credential.make_credential(software_ek(key), b"\0\x0b" + bytes(32), SECRET)
        seed = credential.seed_of(key, encrypted)
        assert credential.unwrap(seed, b"\0\x0b" + bytes(32), made) == SECRET
        with pytest.raises(Malformed):
            credential.unwrap(seed, b"\0\x0b" + bytes(31) + b"\x01", made)


def test_no_key_of_the_profile_gets_a_credential() -> None:
    with pytest.raises(Malformed):
        credential.make_credential(templates.AK, b"\0\x0b" + bytes(32), SECRET)
