"""Port `Tpm`, on a software TPM that nobody here wrote, with tpm2-tools as the third opinion."""

import hashlib
import re
import socket
import struct
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.device import DeviceLink
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.identify import LinkedTpm
from bcd.adapters.tpm.stream import SocketLink
from bcd.domain.model.tpm import EkKind, EndorsementKey, TpmFound
from bcd.ports.tpm import Tpm
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.commands import Empty
from bcd.protocol.tpm2.structures import Handle, Public
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes import swtpm
from tests.fakes.swtpm import SwTpm

# The twelve of the TPM profile, by Part 2, 6.5.2.
ALLOWED = {0x131, 0x173, 0x169, 0x14E, 0x176, 0x151, 0x147, 0x158, 0x17E, 0x15D, 0x148, 0x165}
RSA, ECC = 0x01C00002, 0x01C0000A


class Recording(SocketLink):
    """The socket link, counting command codes."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.codes: Counter[int] = Counter()

    def transmit(self, command: bytes) -> bytes:
        self.codes[int.from_bytes(command[6:10])] += 1
        return super().transmit(command)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """The state of a TPM with a manufacturer's certificates: RSA-2048 and, of a later template, P-384."""
    with tempfile.TemporaryDirectory() as home:
        state = Path(home) / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        yield state


@pytest.fixture
def home() -> Iterator[Path]:
    # A Unix socket's path has room for 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "run"


@pytest.fixture
def certified(made: Path, home: Path) -> Iterator[SwTpm]:
    with swtpm.running(home, made) as tpm:
        yield tpm


@pytest.fixture
def bare(home: Path) -> Iterator[SwTpm]:
    with swtpm.running(home) as tpm:
        yield tpm


def identified(tpm: SwTpm) -> tuple[TpmFound, Counter[int]]:
    link = Recording(tpm.path)
    port: Tpm = LinkedTpm(lambda: Client(link, tpm.path))
    return port.identify(), link.codes


def key(found: TpmFound, kind: EkKind) -> EndorsementKey:
    [one] = [one for one in found.endorsement_keys if one.kind is kind]
    return one


def spki_of(pem: Path) -> bytes:
    return load_pem_public_key(pem.read_bytes()).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def ek_by_tools(tpm: SwTpm, kind: str) -> bytes:
    """The endorsement key as tpm2-tools derive it by the TCG's template."""
    tpm.tool("tpm2_createek", "-c", "ek.ctx", "-G", kind, "-u", "ek.pem", "-f", "pem")
    tpm.tool("tpm2_flushcontext", "-t")
    return spki_of(tpm.home / "ek.pem")


def test_who_answers_is_libtpms_and_not_this_project(bare: SwTpm, capsys: pytest.CaptureFixture[str]) -> None:
    properties = bare.tool("tpm2_getcap", "properties-fixed")
    [manufacturer] = re.findall(r'TPM2_PT_MANUFACTURER:\n.*\n\s+value: "(\w+)"', properties)
    with capsys.disabled():
        print(f"\nthe TPM that answers is made by {manufacturer} (tpm2_getcap)")
    assert manufacturer == "IBM"


def test_a_manufactured_tpm(certified: SwTpm) -> None:
    found, codes = identified(certified)
    rsa, ecc = key(found, EkKind.RSA_2048), key(found, EkKind.ECC_P256)
    assert rsa.spki == ek_by_tools(certified, "rsa")
    assert ecc.spki == ek_by_tools(certified, "ecc")
    assert rsa.sha256 == f"sha256:{hashlib.sha256(rsa.spki).hexdigest()}"
    assert rsa.certificate is not None
    assert rsa.in_certificate
    assert ecc.certificate is None
    for stored in (rsa.certificate, *found.others):
        certified.tool("tpm2_nvread", hex(stored.index), "-o", "content")
        assert (certified.home / "content").read_bytes() == stored.data
    assert [one.index for one in found.others] == [0x01C00016]
    assert found.banks == ("sha256",)
    assert found.node_keys is None
    assert found.trouble is None
    assert set(codes) <= ALLOWED
    # The persistent RSA key is the certificate's, and is not derived: one node key, one ECC key, each flushed.
    assert codes[commands.CommandCode.CREATE_PRIMARY] == codes[commands.CommandCode.FLUSH_CONTEXT] == 2


def test_the_device_link_gives_the_same_report(certified: SwTpm) -> None:
    """Over a stand-in for the kernel's device: one reply to one read, and what a shorter read leaves is dropped."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def serve() -> None:
        tpm = SocketLink(certified.path)
        while command := ours.recv(4096):
            ours.send(tpm.transmit(command))
        tpm.close()

    kernel = threading.Thread(target=serve)
    kernel.start()
    link = DeviceLink("/dev/tpmrm0", open_=lambda _path, _flags: theirs.detach())
    found = LinkedTpm(lambda: Client(link, certified.path)).identify()
    kernel.join(10)
    ours.close()
    assert found == identified(certified)[0]


def test_a_tpm_without_certificates(bare: SwTpm) -> None:
    found, codes = identified(bare)
    assert key(found, EkKind.RSA_2048).spki == ek_by_tools(bare, "rsa")
    assert key(found, EkKind.ECC_P256).spki == ek_by_tools(bare, "ecc")
    assert [one.certificate for one in found.endorsement_keys] == [None, None]
    assert found.others == ()
    assert found.banks == ("sha1", "sha256", "sha384", "sha512")
    assert found.trouble is None
    assert set(codes) <= ALLOWED
    assert codes[commands.CommandCode.CREATE_PRIMARY] == codes[commands.CommandCode.FLUSH_CONTEXT] == 3


def test_nothing_in_the_tpm_is_another_before_and_after(certified: SwTpm) -> None:
    before = certified.kept(), certified.transient()
    identified(certified)
    assert (certified.kept(), certified.transient()) == before
    assert before[1] == ""
    assert "0x81010001" in before[0]


def stored(tpm: SwTpm, index: int, content: bytes, attributes: str = "ownerwrite|ownerread|authread|no_da") -> None:
    tpm.tool("tpm2_nvdefine", hex(index), "-C", "o", "-s", str(len(content)), "-a", attributes)
    (tpm.home / "content").write_bytes(content)
    tpm.tool("tpm2_nvwrite", hex(index), "-C", "o", "-i", "content")


def test_odd_certificates_are_reported_as_they_are(bare: SwTpm) -> None:
    """B43, B44: with padding, something before, longer than one read; the owner's alone to read; never written."""
    spki = key(identified(bare)[0], EkKind.ECC_P256).spki
    padded = b"vendor header" + spki + b"\xff" * 900
    stored(bare, ECC, padded)
    stored(bare, RSA, b"\0" * 20, "ownerwrite|ownerread|no_da")
    stored(bare, 0x01C00100, b"a chain")
    stored(bare, 0x01C00101, b"and more")
    stored(bare, 0x01C00103, b"behind a hole")
    bare.tool("tpm2_nvdefine", "0x01C00012", "-C", "o", "-s", "8", "-a", "ownerwrite|authread|no_da")
    found, codes = identified(bare)
    ecc, rsa = key(found, EkKind.ECC_P256), key(found, EkKind.RSA_2048)
    assert ecc.certificate is not None
    assert ecc.certificate.data == padded
    assert ecc.in_certificate
    assert rsa.certificate is not None
    assert rsa.certificate.data == bytes(20)
    assert not rsa.in_certificate
    assert [(one.index, one.data) for one in found.others] == [(0x01C00100, b"a chain"), (0x01C00101, b"and more")]
    assert found.trouble is None
    assert set(codes) <= ALLOWED


def test_a_persistent_key_that_is_not_the_certificates_is_not_taken_for_the_endorsement_key(certified: SwTpm) -> None:
    right = key(identified(certified)[0], EkKind.RSA_2048)
    certified.tool("tpm2_evictcontrol", "-C", "o", "-c", "0x81010001")
    certified.tool("tpm2_createprimary", "-C", "o", "-G", "rsa2048", "-c", "other.ctx")
    certified.tool("tpm2_evictcontrol", "-C", "o", "-c", "other.ctx", "0x81010001")
    certified.tool("tpm2_flushcontext", "-t")
    found, codes = identified(certified)
    assert key(found, EkKind.RSA_2048) == right
    assert codes[commands.CommandCode.CREATE_PRIMARY] == 3


def test_an_index_with_a_password_is_why_not_all_could_be_read(bare: SwTpm) -> None:
    attributes = "ownerwrite|authread|no_da"
    bare.tool("tpm2_nvdefine", "0x01C00014", "-C", "o", "-s", "4", "-a", attributes, "-p", "secret")
    (bare.home / "content").write_bytes(b"four")
    bare.tool("tpm2_nvwrite", "0x01C00014", "-C", "o", "-i", "content")
    stored(bare, 0x01C00016, b"readable")
    found, _ = identified(bare)
    assert [one.data for one in found.others] == [b"readable"]
    assert found.node_keys is None
    assert found.trouble is not None
    assert "NV_Read failed: TPM_RC_BAD_AUTH, session 1, 0x9a2" in found.trouble.text


def test_a_persistent_key_counts_only_when_the_certificate_names_it(bare: SwTpm) -> None:
    bare.tool("tpm2_createek", "-c", "0x81010001", "-G", "rsa", "-u", "ek.pem", "-f", "pem")
    bare.tool("tpm2_flushcontext", "-t")
    stored(bare, RSA, b"a certificate of another key")
    found, codes = identified(bare)
    assert not key(found, EkKind.RSA_2048).in_certificate
    assert codes[commands.CommandCode.CREATE_PRIMARY] == 3


def test_a_persistent_key_of_another_template_is_none_whatever_the_certificate_says(bare: SwTpm) -> None:
    bare.tool("tpm2_createprimary", "-C", "o", "-G", "rsa2048", "-c", "other.ctx")
    bare.tool("tpm2_evictcontrol", "-C", "o", "-c", "other.ctx", "0x81010001")
    bare.tool("tpm2_flushcontext", "-t")
    client = bare.client()
    other = client.run(commands.READ_PUBLIC, (0x81010001,), Empty()).parameters.public
    client.close()
    assert isinstance(other.unique, bytes)
    stored(bare, RSA, other.unique)
    found, _ = identified(bare)
    assert key(found, EkKind.RSA_2048).spki == ek_by_tools(bare, "rsa")
    assert not key(found, EkKind.RSA_2048).in_certificate


@pytest.mark.parametrize(("hierarchy", "node_keys", "keys"), [("owner", True, False), ("endorsement", False, True)])
def test_a_password_stops_what_it_guards_and_nothing_else(
    hierarchy: str, node_keys: bool, keys: bool, bare: SwTpm
) -> None:
    """B34: both answer 0x9a2."""
    bare.tool("tpm2_changeauth", "-c", hierarchy, "secret")
    found, _ = identified(bare)
    assert (found.node_keys is not None) == node_keys
    assert all((one.trouble is not None) == keys for one in found.endorsement_keys)
    assert all(bool(one.spki) != keys for one in found.endorsement_keys)
    assert found.trouble is not None
    assert f"the TPM's {hierarchy} hierarchy has a password" in found.trouble.text
    assert bare.transient() == ""


# ---- the client, against tpm2-tools


ATTRIBUTES = "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|sign"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (Key(Handle.OWNER, templates.node_key(bytes(range(1, 33)))), ("-C", "o", "-G", "ecc", "-a", ATTRIBUTES)),
        (
            Key(Handle.ENDORSEMENT, templates.AK),
            ("-C", "e", "-G", "ecc256:ecdsa-sha256:null", "-a", f"{ATTRIBUTES}|restricted"),
        ),
    ],
    ids=["node key", "AK"],
)
def test_tools_derive_the_same_key_from_the_same_template(key: Key, words: tuple[str, ...], bare: SwTpm) -> None:
    client = bare.client()
    public = client.load(key).public
    client.close()
    unique = key.template.unique
    assert not isinstance(unique, bytes)
    # The file is a TPMS_ECC_POINT as it lies in the tools' memory.
    halves = [struct.pack("=H128s", len(half), half) for half in (unique.x, unique.y)]
    (bare.home / "unique").write_bytes(b"".join(halves))
    bare.tool("tpm2_createprimary", "-g", "sha256", *words, "-u", "unique", "-c", "key.ctx")
    bare.tool("tpm2_readpublic", "-c", "key.ctx", "-f", "pem", "-o", "key.pem", "-n", "key.name")
    assert names.spki(public) == spki_of(bare.home / "key.pem")
    assert names.name(public) == (bare.home / "key.name").read_bytes()


@pytest.mark.parametrize(
    ("hierarchy", "template"),
    [
        (Handle.OWNER, templates.node_key(bytes([7]) * 32)),
        (Handle.ENDORSEMENT, templates.AK),
        (Handle.ENDORSEMENT, templates.EK_RSA_2048),
        (Handle.ENDORSEMENT, templates.EK_ECC_P256),
    ],
    ids=["node key", "AK", "EK RSA", "EK ECC"],
)
def test_tools_read_our_structures(hierarchy: Handle, template: Public, bare: SwTpm) -> None:
    client = bare.client()
    loaded = client.load(Key(hierarchy, template))
    answer = client.run(commands.READ_PUBLIC, (loaded.handle,), Empty()).parameters
    client.close()
    assert answer.public == loaded.public
    assert answer.name == names.name(loaded.public)
    assert decode(Public, encode(loaded.public)) == loaded.public
    written = encode(loaded.public)
    (bare.home / "public").write_bytes(len(written).to_bytes(2) + written)
    printed = bare.tool("tpm2_print", "-t", "TPM2B_PUBLIC", "public")
    assert f"raw: {template.attributes:#x}" in printed
    parts = [loaded.public.unique] if isinstance(loaded.public.unique, bytes) else vars(loaded.public.unique).values()
    for part in parts:
        assert part.hex() in printed
    assert loaded.public.policy.hex() in printed


def test_four_keys_and_a_foreign_one_share_three_slots(bare: SwTpm) -> None:
    """B30: the fourth object is what the TPM has no room for."""
    other = bare.client()
    other.load(Key(Handle.OWNER, templates.node_key(b"\xff" * 32)))
    other._link.close()
    client = bare.client()
    uniques = [bytes([number]) * 32 for number in range(4)]
    first = [client.load(Key(Handle.OWNER, templates.node_key(unique))).public for unique in uniques]
    again = [client.load(Key(Handle.OWNER, templates.node_key(unique))).public for unique in uniques]
    assert first == again
    assert len({names.name(public) for public in first}) == 4
    client.close()
    assert len(bare.transient().splitlines()) == 1, "the foreign one stays"


def test_a_handle_that_is_gone_is_refused_by_name(bare: SwTpm) -> None:
    client = bare.client()
    with pytest.raises(Refusal, match="ReadPublic: TPM_RC_HANDLE, handle 1, 0x18b"):
        client.run(commands.READ_PUBLIC, (0x81010001,), Empty())
    client.close()
