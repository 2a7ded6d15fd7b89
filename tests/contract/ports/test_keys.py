"""The ports `KeyStore` and `NodeKey`: one contract over file keys and keys in a TPM, and what of a record is no key."""

import base64
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.x509 import load_der_x509_csr
from hypothesis import given
from hypothesis import strategies as st

from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.adapters.tpm.keys import LinkedKeys
from bcd.domain.model.failures import Failure, TryLater
from bcd.domain.model.keys import Hash, KeyKind, KeyMalformed, KeyState, KeyUnasked, KeyUnavailable
from bcd.ports.keys import KeyStore, NodeKey
from bcd.protocol.pki import ecdsa
from tests.fakes import swtpm
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.joining import Recorded
from tests.fakes.memory_tpm import ABSENT, LOCKED, MemoryTpmKeys
from tests.fakes.properties import few
from tests.fakes.swtpm import SwTpm

MESSAGE = b"what is to be signed"


def opened(store: KeyStore, record: bytes) -> NodeKey:
    key = store.open(record)
    assert not isinstance(key, KeyState)
    return key


def public(spki: bytes) -> ec.EllipticCurvePublicKey:
    key = serialization.load_der_public_key(spki)
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key


class KeysContract:
    @staticmethod
    def a_new_key_is_p256_and_no_other(store: KeyStore) -> None:
        one, other = store.create(), store.create()
        assert public(one.spki).curve.name == "secp256r1"
        assert one.spki != other.spki

    @staticmethod
    def the_key_of_a_record_is_the_key(store: KeyStore) -> None:
        key = store.create()
        again = opened(store, key.record)
        assert (again.spki, again.kind, again.record) == (key.spki, key.kind, key.record)

    @staticmethod
    def a_signature_is_64_bytes_over_sha256_of_the_message(store: KeyStore) -> None:
        made = store.create()
        for key in (made, opened(store, made.record)):
            signature = key.sign(MESSAGE)
            assert len(signature) == 64
            der = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
            public(made.spki).verify(der, MESSAGE, ec.ECDSA(hashes.SHA256()))

    @staticmethod
    def a_request_is_this_keys_and_has_nothing_else_in_it(store: KeyStore) -> None:
        key = store.create()
        request = load_der_x509_csr(key.request())
        assert request.is_signature_valid
        found = request.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        assert found == key.spki
        assert list(request.attributes) == []
        other = load_der_x509_csr(store.create().request())
        assert request.subject == other.subject

    @staticmethod
    def the_record_is_pem_and_nothing_shows_it(store: KeyStore) -> None:
        key = store.create()
        assert key.record.startswith(b"-----BEGIN ")
        assert key.record.endswith(b"-----\n")
        secret = key.record.splitlines()[1].decode()
        for shown in (repr(key), str(key), repr(vars(key)) if hasattr(key, "__dict__") else ""):
            assert secret not in shown

    @staticmethod
    def what_is_no_record_is_malformed_and_says_its_size(store: KeyStore) -> None:
        for record in (b"", b"\0" * 241, b"rubbish", store.create().record[:-30]):
            found = store.open(record)
            assert isinstance(found, KeyMalformed)
            assert found.size == len(record)
            assert found.why


every = pytest.mark.parametrize("check", checks_of(KeysContract).values(), ids=checks_of(KeysContract))


@every
def test_file_keys_meet_the_contract(check: Callable[[KeyStore], None]) -> None:
    check(FileKeys())


@every
def test_keys_of_a_tpm_in_memory_meet_the_contract(check: Callable[[KeyStore], None]) -> None:
    check(HostKeys(MemoryTpmKeys(), Recorded()))


@every
def test_keys_of_a_machine_without_a_tpm_meet_the_contract(check: Callable[[KeyStore], None]) -> None:
    check(HostKeys(MemoryTpmKeys(trouble=ABSENT), Recorded()))


@pytest.fixture(scope="module")
def tpm() -> Iterator[SwTpm]:
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home) / "tpm") as found:
        yield found


@every
def test_keys_of_a_software_tpm_meet_the_contract(check: Callable[[KeyStore], None], tpm: SwTpm) -> None:
    client = tpm.client()
    try:
        check(HostKeys(LinkedKeys(client), Recorded()))
    finally:
        client.close()
    assert tpm.transient() == ""


# --- Keys in a TPM


def test_a_tpm_record_is_the_unique_alone_and_nothing_of_the_key() -> None:
    key = HostKeys(MemoryTpmKeys(), Recorded()).create()
    lines = key.record.decode().split("\n")
    assert lines[0] == "-----BEGIN BCD TPM NODE KEY-----"
    assert len(base64.b64decode(lines[1])) == 32
    assert lines[2:] == ["-----END BCD TPM NODE KEY-----", ""]
    assert key.kind is KeyKind.TPM


@pytest.mark.parametrize("digest", Hash)
@pytest.mark.parametrize("store", [FileKeys(), HostKeys(MemoryTpmKeys(), Recorded())], ids=["file", "tpm"])
def test_a_key_signs_with_each_hash_and_says_the_same_kid(store: KeyStore, digest: Hash) -> None:
    key = store.create()
    algorithm = {Hash.SHA256: hashes.SHA256(), Hash.SHA384: hashes.SHA384(), Hash.SHA512: hashes.SHA512()}[digest]
    signature = key.sign(MESSAGE, digest)
    der = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
    public(key.spki).verify(der, MESSAGE, ec.ECDSA(algorithm))
    assert ecdsa.thumbprint(public(key.spki)) == ecdsa.thumbprint(public(opened(store, key.record).spki))


def test_each_hash_is_signed_by_a_software_tpm(tpm: SwTpm) -> None:
    client = tpm.client()
    key = HostKeys(LinkedKeys(client), Recorded()).create()
    for digest in Hash:
        assert ecdsa.verifies(public(key.spki), MESSAGE, key.sign(MESSAGE, digest), digest)
    client.close()


def test_a_cleared_tpm_derives_another_key_and_never_signs_as_the_one_before() -> None:
    held = MemoryTpmKeys()
    store = HostKeys(held, Recorded())
    key = store.create()
    held.clear()
    assert opened(store, key.record).spki != key.spki
    with pytest.raises(TryLater, match="was the TPM cleared"):
        key.sign(MESSAGE)


@pytest.mark.parametrize(("trouble", "absent"), [(ABSENT, True), (LOCKED, False)])
def test_a_tpm_that_cannot_be_asked_makes_no_key_malformed_or_another(trouble: Failure, absent: bool) -> None:
    held = MemoryTpmKeys()
    store = HostKeys(held, Recorded())
    record = store.create().record
    held.trouble = trouble
    assert store.open(record) == KeyUnavailable(trouble.text, absent)
    assert isinstance(store.open(tpm_record(bytes(33))), KeyMalformed)


@pytest.mark.parametrize(
    ("held", "level", "why"),
    [
        (MemoryTpmKeys(trouble=ABSENT), "info", "this machine has no TPM 2.0"),
        (MemoryTpmKeys(trouble=LOCKED), "warning", "the TPM cannot hold it"),
        (MemoryTpmKeys(signs=False), "warning", "the TPM cannot hold it"),
    ],
)
def test_a_tpm_that_takes_no_key_is_said_once_and_the_key_is_a_file(held: MemoryTpmKeys, level: str, why: str) -> None:
    events = Recorded()
    store = HostKeys(held, events)
    assert [store.create().kind for _ in range(3)] == [KeyKind.FILE] * 3
    [(said, text, _)] = events.lines
    assert said == level
    assert text == f"the node key is a file: {why}"


def test_a_tpm_that_somebody_named_and_is_not_there_is_warned_of() -> None:
    """A path by mistake is no machine without a TPM."""
    events = Recorded()
    store = HostKeys(MemoryTpmKeys(trouble=ABSENT), events, named=True)
    assert [store.create().kind for _ in range(3)] == [KeyKind.FILE] * 3
    [(said, text, fields)] = events.lines
    assert (said, text) == ("warning", "the node key is a file: the TPM cannot hold it")
    assert fields == {"why": ABSENT.text}


def test_a_new_key_costs_a_derivation_and_the_signature_of_its_request() -> None:
    held = MemoryTpmKeys()
    key = HostKeys(held, Recorded()).create()
    assert key.request() == key.request()
    assert held.commands == ["CreatePrimary", "Sign"]


def test_a_released_key_makes_room_and_a_tpm_in_trouble_does_not_stop_that() -> None:
    held = MemoryTpmKeys()
    key = HostKeys(held, Recorded()).create()
    key.release()
    assert held.loaded == set()
    key.sign(MESSAGE)
    assert held.commands == ["CreatePrimary", "Sign", "CreatePrimary", "Sign"]
    held.trouble = LOCKED
    key.release()


def test_where_new_keys_do_not_go_into_the_tpm_those_in_it_are_opened_all_the_same() -> None:
    held, events = MemoryTpmKeys(), Recorded()
    record = HostKeys(held, events).create().record
    store = HostKeys(held, events, makes=False)
    assert store.create().kind is KeyKind.FILE
    assert opened(store, record).kind is KeyKind.TPM
    assert events.lines == []


def test_who_asks_no_tpm_takes_a_record_at_its_word() -> None:
    assert FileKeys(KeyUnasked()).open(tpm_record(bytes(32))) == KeyUnasked()
    assert isinstance(FileKeys(KeyUnasked()).open(tpm_record(bytes(31))), KeyMalformed)


class AnotherCurve(FileKeys):
    def create(self) -> FileKey:
        return FileKey(ec.generate_private_key(ec.SECP384R1()))


class AlwaysTheSame(FileKeys):
    def create(self) -> FileKey:
        return FileKey(ec.derive_private_key(7, ec.SECP256R1()))


class OpensAnother(FileKeys):
    def open(self, record: bytes) -> FileKey | KeyState:
        found = super().open(record)
        return found if isinstance(found, KeyState) else self.create()


class _Der(FileKey):
    def sign(self, message: bytes, digest: Hash = Hash.SHA256) -> bytes:
        return self._key.sign(message, ec.ECDSA(hashes.SHA256()))


class SignsDer(FileKeys):
    def create(self) -> FileKey:
        return _Der(ec.generate_private_key(ec.SECP256R1()))


class _Telling(FileKey):
    def __repr__(self) -> str:
        return self.record.replace(b"\n", b"").decode()


class ShowsItsSecret(FileKeys):
    def create(self) -> FileKey:
        return _Telling(ec.generate_private_key(ec.SECP256R1()))


class Crashes(FileKeys):
    def open(self, record: bytes) -> FileKey | KeyState:
        return FileKey(serialization.load_pem_private_key(record, None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "caught_by"),
    [
        (AnotherCurve, "a_new_key_is_p256_and_no_other"),
        (AlwaysTheSame, "a_new_key_is_p256_and_no_other"),
        (OpensAnother, "the_key_of_a_record_is_the_key"),
        (SignsDer, "a_signature_is_64_bytes_over_sha256_of_the_message"),
        (ShowsItsSecret, "the_record_is_pem_and_nothing_shows_it"),
        (Crashes, "what_is_no_record_is_malformed_and_says_its_size"),
    ],
)
def test_a_wrong_implementation_fails_the_contract(wrong: Callable[[], KeyStore], caught_by: str) -> None:
    assert caught_by in failed_checks(KeysContract, wrong)


# --- Records that are something else

P256 = ec.generate_private_key(ec.SECP256R1())


def pem(
    key: object,
    form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
    secret: serialization.KeySerializationEncryption | None = None,
) -> bytes:
    encryption = secret or serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, encryption)  # type: ignore[attr-defined]


def tpm_record(unique: bytes) -> bytes:
    return b"-----BEGIN BCD TPM NODE KEY-----\n%s\n-----END BCD TPM NODE KEY-----\n" % base64.b64encode(unique)


OTHER = {
    "another curve": pem(ec.generate_private_key(ec.SECP384R1())),
    "rsa": pem(rsa.generate_private_key(65537, 2048)),
    "ed25519": pem(ed25519.Ed25519PrivateKey.generate()),
    "encrypted": pem(P256, secret=serialization.BestAvailableEncryption(b"secret")),
    "sec1": pem(P256, serialization.PrivateFormat.TraditionalOpenSSL),
    "public": P256.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ),
    "der": P256.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ),
    "torn tpm record": tpm_record(bytes(32))[:-5],
    "short tpm record": tpm_record(bytes(31)),
}


@pytest.mark.parametrize("what", OTHER)
def test_b06_what_is_not_a_p256_pkcs8_pem_is_malformed_and_shown_without_its_bytes(what: str) -> None:
    """Field report B06."""
    found = FileKeys().open(OTHER[what])
    assert isinstance(found, KeyMalformed)
    assert found.size == len(OTHER[what])
    assert found.why.isprintable()
    assert isinstance(FileKeys().open(pem(P256)), FileKey)


def test_a_tpm_record_is_a_key_that_cannot_be_asked_and_not_a_broken_file() -> None:
    assert isinstance(FileKeys().open(tpm_record(bytes(32))), KeyUnavailable)
    assert isinstance(FileKeys().open(tpm_record(bytes(33))), KeyMalformed)


@few
@given(cut=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_record_with_any_byte_changed_or_cut_opens_or_is_malformed(cut: int, byte: int) -> None:
    whole = pem(P256)
    at = cut % len(whole)
    for record in (whole[:at], whole[:at] + bytes((byte,)) + whole[at + 1 :]):
        found = FileKeys().open(record)
        assert isinstance(found, FileKey | KeyMalformed)
