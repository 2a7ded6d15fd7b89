"""What a TPM does over several commands, and when something befalls it: the same of both."""

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_der_public_key

from bcd.adapters.tpm.client import Key
from bcd.adapters.tpm.link import Link
from bcd.protocol.tpm2 import commands, credential, names, templates
from bcd.protocol.tpm2.commands import AttestOut, Empty, SignIn
from bcd.protocol.tpm2.structures import (
    NO_HASH_CHECK,
    Algorithm,
    Attest,
    Attribute,
    ClockInfo,
    Handle,
    Public,
    QuoteInfo,
    Signature,
)
from bcd.protocol.tpm2.wire import decode
from tests.contract.tpm import sent
from tests.contract.tpm.sent import ECDSA
from tests.contract.tpm.test_answers import STORAGE
from tests.fakes.software_tpm import PERSISTENT_EK, SoftwareTpm

NODE_KEY = Key(Handle.OWNER, templates.node_key(bytes([7]) * 32))
AK = Key(Handle.ENDORSEMENT, templates.AK)
RSA_EK = Key(Handle.ENDORSEMENT, templates.EK_RSA_2048)
ECC_EK = Key(Handle.ENDORSEMENT, templates.EK_ECC_P256)
DIGEST = hashlib.sha256(b"what is signed").digest()


def code(link: Link, command: bytes) -> int:
    return int.from_bytes(link.transmit(command)[6:10])


def public(tpm: SoftwareTpm, key: Key) -> Public:
    client = tpm.client()
    try:
        return client.load(key).public
    finally:
        client.close()


def verified(signer: Public, signature: Signature, digest: bytes) -> None:
    key = load_der_public_key(names.spki(signer))
    assert isinstance(key, ec.EllipticCurvePublicKey)
    der = encode_dss_signature(int.from_bytes(signature.ecdsa.r), int.from_bytes(signature.ecdsa.s))
    key.verify(der, digest, ec.ECDSA(Prehashed(hashes.SHA256())))


def quoted(tpm: SoftwareTpm, selections: tuple[tuple[int, bytes], ...] = ()) -> tuple[Attest, AttestOut, Public]:
    client = tpm.client()
    try:
        wanted = decode_quote(selections)
        answer, [ak] = client.use((AK,), commands.QUOTE, wanted)
        return decode(Attest, answer.parameters.attest), answer.parameters, ak
    finally:
        client.close()


def decode_quote(selections: tuple[tuple[int, bytes], ...]) -> commands.QuoteIn:
    chosen = tuple(commands.PcrSelection(*one) for one in selections)
    return commands.QuoteIn(b"nonce", sent.NULL, chosen)


# ---- keys


def test_a_key_is_derived_again_the_same_and_another_unique_is_another_key(tpm: SoftwareTpm) -> None:
    first = public(tpm, NODE_KEY)
    other = public(tpm, Key(Handle.OWNER, templates.node_key(bytes([8]) * 32)))
    assert public(tpm, NODE_KEY) == first != other
    assert public(tpm, Key(Handle.ENDORSEMENT, NODE_KEY.template)) != first
    assert public(tpm, RSA_EK) == public(tpm, RSA_EK)


@pytest.mark.parametrize("key", [NODE_KEY, AK, RSA_EK, ECC_EK], ids=["node key", "AK", "RSA EK", "ECC EK"])
def test_the_public_area_is_the_templates_but_for_the_key_and_names_follow_from_it(key: Key, tpm: SoftwareTpm) -> None:
    client = tpm.client()
    loaded = client.load(key)
    answer = client.run(commands.READ_PUBLIC, (loaded.handle,), Empty()).parameters
    client.close()
    assert templates.same_but_unique(answer.public, key.template)
    assert answer.name == names.name(answer.public)
    own = hashlib.sha256(key.hierarchy.to_bytes(4) + answer.name).digest()
    assert answer.qualified_name == b"\0\x0b" + own


def test_a_signature_verifies(tpm: SoftwareTpm) -> None:
    client = tpm.client()
    answer, [signer] = client.use((NODE_KEY,), commands.SIGN, SignIn(DIGEST, ECDSA, NO_HASH_CHECK))
    client.close()
    verified(signer, answer.parameters.signature, DIGEST)


def test_a_quote_and_a_certification_verify_and_say_who_signed(tpm: SoftwareTpm) -> None:
    attest, answer, ak = quoted(tpm, ((Algorithm.SHA256, b"\x01\0\0"),))
    verified(ak, answer.signature, hashlib.sha256(answer.attest).digest())
    own = hashlib.sha256(AK.hierarchy.to_bytes(4) + names.name(ak)).digest()
    assert attest.qualified_signer == b"\0\x0b" + own
    client = tpm.client()
    done, [node, ak] = client.use((NODE_KEY, AK), commands.CERTIFY, commands.CertifyIn(b"nonce", sent.NULL))
    client.close()
    verified(ak, done.parameters.signature, hashlib.sha256(done.parameters.attest).digest())
    certified = decode(Attest, done.parameters.attest).attested
    assert certified.name == names.name(node)


def test_a_node_key_hides_the_reset_count_and_always_in_the_same_way(tpm: SoftwareTpm) -> None:
    def clock() -> ClockInfo:
        client = tpm.client()
        wanted = commands.QuoteIn(b"", ECDSA, ())
        answer, _ = client.use((NODE_KEY,), commands.QUOTE, wanted)
        client.close()
        return decode(Attest, answer.parameters.attest).clock

    first, second = clock(), clock()
    assert first.resets != quoted(tpm)[0].clock.resets
    assert first.resets == second.resets
    tpm.power_cycle(loss=False)
    assert clock().resets == (first.resets + 1) % (1 << 32)


# ---- credentials


def opened(tpm: SoftwareTpm, ek: Key, change: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> bytes | int:
    """What ActivateCredential opens, or the code it refuses with."""
    client = tpm.client()
    link = client._link
    ak, key = client.load(AK), client.load(ek)
    blob, secret = change(*credential.make_credential(key.public, names.name(ak.public), b"the secret"))
    assert code(link, sent.start()) == 0
    assert code(link, sent.policy_secret()) == 0
    answer = link.transmit(sent.activate(blob, secret, ak.handle, key.handle))
    again = code(link, sent.policy_secret())
    # A policy session is used up on success, kept on failure.
    assert (again == 0x910 + 1) == (answer[6:10] == bytes(4))
    client.close()
    read = commands.read_answer(commands.ACTIVATE_CREDENTIAL, answer)
    return read.number if isinstance(read, commands.Code) else read.parameters.secret


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("ek", [RSA_EK, ECC_EK], ids=["RSA", "ECC"])
def test_a_credential_is_opened(ek: Key, tpm: SoftwareTpm) -> None:
    assert opened(tpm, ek, lambda blob, secret: (blob, secret)) == b"the secret"


Change = Callable[[bytes, bytes], tuple[bytes, bytes]]
OPENED = b"the secret"
CREDENTIALS: dict[str, tuple[Change, int | bytes, int | bytes]] = {
    "a changed byte of the HMAC": (lambda blob, secret: (flipped(blob, 5), secret), 0x1DF, 0x1DF),
    "a changed byte of what is encrypted": (lambda blob, secret: (flipped(blob, len(blob) - 1), secret), 0x1DF, 0x1DF),
    "an empty credential": (lambda _blob, secret: (b"", secret), 0x1DA, 0x1DA),
    "a credential that is cut off": (lambda blob, secret: (blob[:-1], secret), 0x1DF, 0x1DF),
    "half an HMAC": (lambda blob, secret: (blob[:20], secret), 0x1DA, 0x1DA),
    "an HMAC of another length": (lambda blob, secret: (b"\0\x10" + blob[2:], secret), 0x1DF, 0x1DF),
    "a changed byte of the secret": (lambda blob, secret: (blob, flipped(secret, len(secret) - 1)), 0x101, 0x2E7),
    "a secret that is cut off": (lambda blob, secret: (blob, secret[:-1]), 0x2D5, 0x2DA),
    "an empty secret": (lambda blob, _secret: (blob, b""), 0x2D5, 0x2DA),
    # Nothing may follow an RSA secret, and anything a point.
    "a secret that is too long": (lambda blob, secret: (blob, secret + b"\0"), 0x2D5, OPENED),
}


@pytest.mark.parametrize("what", CREDENTIALS)
@pytest.mark.parametrize("kind", ["RSA", "ECC"])
def test_a_credential_that_is_not_right_is_refused(what: str, kind: str, tpm: SoftwareTpm) -> None:
    change, by_rsa, by_ecc = CREDENTIALS[what]
    expected = by_rsa if kind == "RSA" else by_ecc
    assert opened(tpm, RSA_EK if kind == "RSA" else ECC_EK, change) == expected


def test_a_credential_for_another_key_is_refused(tpm: SoftwareTpm) -> None:
    client = tpm.client()
    ek = client.load(ECC_EK).public
    client.close()
    other = b"\0\x0b" + bytes(32)
    assert opened(tpm, ECC_EK, lambda _blob, _secret: credential.make_credential(ek, other, b"x")) == 0x1DF


# ---- places


def test_three_objects_and_three_sessions_fit(tpm: SoftwareTpm) -> None:
    """B30."""
    link = tpm.link()
    assert [code(link, sent.create()) for _ in range(4)] == [0, 0, 0, 0x902]
    assert [code(link, sent.start()) for _ in range(4)] == [0, 0, 0, 0x903]
    assert code(link, sent.flush(0x80000001)) == code(link, sent.flush(0x03000002)) == 0
    assert link.transmit(sent.create())[10:14] == bytes.fromhex("80000001")
    assert link.transmit(sent.start())[10:14] == bytes.fromhex("03000002")
    link.close()


def test_the_persistent_endorsement_key_takes_a_place_while_it_is_looked_at(tpm: SoftwareTpm) -> None:
    tpm.persist_ek()
    link = tpm.link()
    assert code(link, sent.read_public(PERSISTENT_EK)) == 0
    assert [code(link, sent.create()) for _ in range(3)] == [0, 0, 0]
    assert code(link, sent.read_public(PERSISTENT_EK)) == 0x902
    assert code(link, sent.flush(0x80000000)) == 0
    answer = commands.read_answer(commands.READ_PUBLIC, link.transmit(sent.read_public(PERSISTENT_EK)))
    link.close()
    assert not isinstance(answer, commands.Code)
    assert answer.parameters.public == public(tpm, RSA_EK)


def test_a_policy_session_is_good_once(tpm: SoftwareTpm) -> None:
    link = tpm.link()
    assert code(link, sent.start()) == 0
    assert code(link, sent.policy_secret()) == 0
    # Twice is not the policy.
    assert code(link, sent.policy_secret()) == 0
    for key in (AK, ECC_EK):
        assert code(link, sent.create(key.template, key.hierarchy)) == 0
    wrong = sent.activate(bytes(68), bytes(68), 0x80000000, 0x80000001)
    assert code(link, wrong) == 0xA9D
    link.close()


def test_a_storage_key_signs_nothing(tpm: SoftwareTpm) -> None:
    link = tpm.link()
    template = replace(STORAGE, attributes=STORAGE.attributes | Attribute.NO_DA)
    assert code(link, sent.create(template)) == code(link, sent.create()) == 0
    storage, node = 0x80000000, 0x80000001
    assert code(link, sent.sign(storage)) == 0x19C
    assert code(link, sent.quote(storage, scheme=ECDSA)) == 0x19C
    assert code(link, sent.certify(node, storage, ECDSA)) == 0x29C
    assert code(link, sent.certify(storage, node, ECDSA)) == 0
    link.close()


# ---- from outside


@pytest.mark.parametrize("loss", [False, True], ids=["orderly", "loss"])
def test_after_a_power_cycle_nothing_is_loaded_and_keys_are_the_same(loss: bool, tpm: SoftwareTpm) -> None:
    before = public(tpm, NODE_KEY), public(tpm, AK), public(tpm, ECC_EK)
    none = public(tpm, Key(Handle.NULL, NODE_KEY.template))
    link = tpm.link()
    assert code(link, sent.create()) == code(link, sent.start()) == 0
    tpm.extend(3, bytes(32))
    tpm.power_cycle(loss=loss)
    assert code(link, sent.read_public(0x80000000)) == 0x910
    assert code(link, sent.flush(0x03000000)) == 0x1CB
    link.close()
    assert (public(tpm, NODE_KEY), public(tpm, AK), public(tpm, ECC_EK)) == before
    assert public(tpm, Key(Handle.NULL, NODE_KEY.template)) != none
    attest, _, _ = quoted(tpm, ((Algorithm.SHA256, b"\x08\0\0"),))
    assert isinstance(attest.attested, QuoteInfo)
    assert attest.attested.pcr_digest == hashlib.sha256(bytes(32)).digest()


def test_after_a_loss_of_power_the_clock_is_behind_and_not_safe(tpm: SoftwareTpm) -> None:
    before = quoted(tpm)[0].clock
    assert before.safe == 1
    tpm.power_cycle(loss=True)
    after = quoted(tpm)[0].clock
    assert (after.resets, after.safe) == (before.resets + 1, 0)
    tpm.power_cycle(loss=False)
    orderly = quoted(tpm)[0].clock
    assert orderly.resets == before.resets + 2
    assert orderly.clock_ms >= after.clock_ms


def test_clear_changes_the_node_key_and_not_the_attestation_key(tpm: SoftwareTpm) -> None:
    tpm.store(0x01C10001, b"content", "ownerwrite|authread|no_da")
    node, ak = public(tpm, NODE_KEY), public(tpm, AK)
    link = tpm.link()
    assert code(link, sent.create()) == code(link, sent.start()) == 0
    link.transmit(sent.create(templates.AK, Handle.NULL))
    tpm.clear()
    link = tpm.link()
    assert code(link, sent.nv_read_public(0x01C10001)) == 0x18B
    link.close()
    assert public(tpm, NODE_KEY) != node
    assert public(tpm, AK) == ak
    assert quoted(tpm)[0].clock.resets == 0


def test_another_endorsement_seed_changes_the_attestation_key_and_not_the_node_key(tpm: SoftwareTpm) -> None:
    node, ak, ek = public(tpm, NODE_KEY), public(tpm, AK), public(tpm, RSA_EK)
    tpm.change_endorsement_seed()
    assert public(tpm, NODE_KEY) == node
    assert public(tpm, AK) != ak
    assert public(tpm, RSA_EK) != ek


@pytest.mark.parametrize("which", [Handle.OWNER, Handle.ENDORSEMENT], ids=["owner", "endorsement"])
def test_a_hierarchys_password_guards_it_alone(which: Handle, tpm: SoftwareTpm) -> None:
    """B34."""
    tpm.set_password(which, "secret")
    link = tpm.link()
    hierarchies = (Handle.OWNER, Handle.ENDORSEMENT)
    codes = {one: code(link, sent.create(templates.AK, one)) for one in hierarchies}
    right = sent.CommandAuth(Handle.PASSWORD, b"", 1, b"secret")
    assert codes == {one: 0x9A2 if one == which else 0 for one in hierarchies}
    assert code(link, sent.create(templates.AK, which, right)) == 0
    assert code(link, sent.start()) == 0
    assert code(link, sent.policy_secret(which)) == 0x9A2
    assert code(link, sent.policy_secret(which, auth=right)) == 0
    link.close()


@pytest.mark.parametrize("which", [Handle.OWNER, Handle.ENDORSEMENT], ids=["owner", "endorsement"])
def test_a_disabled_hierarchy_says_so_until_the_next_start(which: Handle, tpm: SoftwareTpm) -> None:
    tpm.persist_ek()
    tpm.store(0x01C10001, b"content", "ownerwrite|authread|no_da")
    tpm.switch_off(which)
    link = tpm.link()
    hierarchies = (Handle.OWNER, Handle.ENDORSEMENT)
    codes = {one: code(link, sent.create(templates.AK, one)) for one in hierarchies}
    assert codes == {one: 0x185 if one == which else 0 for one in hierarchies}
    # Its hierarchy is the one, its range of handles the other's.
    assert code(link, sent.read_public(PERSISTENT_EK)) == 0x18B
    assert code(link, sent.nv_read_public(0x01C10001)) == (0x18B if which == Handle.OWNER else 0)
    tpm.power_cycle(loss=False)
    assert code(link, sent.read_public(PERSISTENT_EK)) == 0
    assert code(link, sent.create(templates.AK, which)) == 0
    link.close()


# ---- B27: locked out after five boots, no password in use


def signs_and_loses_power(tpm: SoftwareTpm, template: Public) -> list[int]:
    """The codes of six boots' signatures; what the TPM asks to be sent again is."""
    codes = []
    for _ in range(6):
        link = tpm.link()
        assert code(link, sent.create(template)) == 0
        first = code(link, sent.sign(0x80000000, DIGEST))
        codes.append(code(link, sent.sign(0x80000000, DIGEST)) if first == 0x922 else first)
        tpm.power_cycle(loss=True)
    return codes


def test_a_node_key_is_never_locked(tpm: SoftwareTpm) -> None:
    assert signs_and_loses_power(tpm, NODE_KEY.template) == [0] * 6


def test_a_key_without_noda_is_locked_by_the_third_loss_of_power(tpm: SoftwareTpm) -> None:
    attributes = NODE_KEY.template.attributes & ~Attribute.NO_DA
    assert signs_and_loses_power(tpm, replace(NODE_KEY.template, attributes=attributes)) == [0] * 3 + [0x921] * 3
    link = tpm.link()
    assert code(link, sent.create()) == code(link, sent.sign(0x80000000, DIGEST)) == 0
    link.close()


def test_three_wrong_passwords_lock_what_counts_them_and_nothing_else(tpm: SoftwareTpm) -> None:
    tpm.store(0x01C10001, b"contents", "ownerwrite|authread", b"secret")
    tpm.store(0x01C10002, b"contents", "ownerwrite|authread|no_da", b"secret")
    link = tpm.link()
    wrong, right = (sent.CommandAuth(Handle.PASSWORD, b"", 1, one) for one in (b"wrong", b"secret"))
    first = code(link, sent.nv_read(0x01C10001, auth=right))
    # Once in each boot the TPM notes that such an authorization is under way, before it is looked at.
    assert (first, code(link, sent.nv_read(0x01C10001, auth=right))) in ((0x922, 0), (0, 0))
    codes = [code(link, sent.nv_read(0x01C10001, auth=wrong)) for _ in range(4)]
    assert codes == [0x98E, 0x98E, 0x98E, 0x921]
    assert code(link, sent.nv_read(0x01C10001, auth=right)) == 0x921
    assert code(link, sent.nv_read(0x01C10002, auth=right)) == 0
    assert code(link, sent.create()) == code(link, sent.sign(0x80000000, DIGEST)) == 0
    link.close()


# ---- B42: missing PCR bank


def test_a_quote_over_a_bank_that_is_not_there_succeeds_with_an_empty_selection(tpm: SoftwareTpm) -> None:
    tpm.only_bank("sha384")
    link = tpm.link()
    read = commands.read_answer(commands.PCR_READ, link.transmit(sent.pcr_read((Algorithm.SHA256, b"\xff\xff\xff"))))
    link.close()
    assert not isinstance(read, commands.Code)
    assert read.parameters.values == ()
    attest, _, _ = quoted(tpm, ((Algorithm.SHA256, b"\xff\xff\xff"), (Algorithm.SHA384, b"\x01\0\0")))
    assert isinstance(attest.attested, QuoteInfo)
    assert [one.selected for one in attest.attested.pcrs] == [bytes(3), b"\x01\0\0"]
    assert attest.attested.pcr_digest == hashlib.sha256(bytes(48)).digest()
