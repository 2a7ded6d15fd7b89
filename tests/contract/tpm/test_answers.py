"""Every byte of an answer that is not a key's own or chance is the same from both TPMs.

What is set to zero before comparing, and nothing else: points and moduli of keys, the digests of names that follow
from them, signatures, the digests of tickets, nonces, the firmware version, the clock in milliseconds,
and the reset counts that a key outside the endorsement hierarchy hides (Part 1, 36.7)."""

from dataclasses import dataclass, replace
from typing import Any

from bcd.adapters.tpm.link import Link
from bcd.protocol.tpm2 import commands, templates
from bcd.protocol.tpm2.commands import Command, CreatePrimaryIn
from bcd.protocol.tpm2.structures import (
    Algorithm,
    AnswerAuth,
    Attest,
    Attribute,
    CertifyInfo,
    Cipher,
    CommandAuth,
    CreationTicket,
    Handle,
    PcrSelection,
    Point,
    Public,
    Scheme,
    SensitiveCreate,
    Signature,
    Symmetric,
)
from bcd.protocol.tpm2.wire import Reader, decode, encode, read
from tests.contract.tpm import sent
from tests.contract.tpm.sent import AK, EK, NODE_KEY, READABLE, SESSION, UNWRITTEN
from tests.fakes.software_tpm import SoftwareTpm

OK = bytes(4)
# The endorsement hierarchy's own do not hide how often the machine was reset.
HIDES = {AK: False, NODE_KEY: True}


@dataclass(frozen=True)
class Sent:
    """A command, and what its answer is read as; `signer` of an attestation."""

    name: str
    row: Command[Any, Any]
    data: bytes
    signer: int = AK


def made(name: str, template: Public, hierarchy: int, auth: bytes = b"", outside: bytes = b"", *pcrs: Any) -> Sent:
    wanted = CreatePrimaryIn(SensitiveCreate(auth, b""), template, outside, tuple(PcrSelection(*one) for one in pcrs))
    return Sent(name, commands.CREATE_PRIMARY, commands.write_command(commands.CREATE_PRIMARY, (hierarchy,), wanted))


SHA256, SHA384 = Algorithm.SHA256, Algorithm.SHA384
PCRS = ((SHA256, b"\xff\xff\xff"),)
ATTRIBUTES = "ownerwrite|authwrite|ownerread|authread|no_da"
STORAGE = replace(
    templates.EK_ECC_P256,
    attributes=templates.EK_ECC_P256.attributes & ~Attribute.ADMIN_WITH_POLICY | Attribute.USER_WITH_AUTH,
    policy=b"",
)
SHA384_KEY = replace(sent.TEMPLATE, name_algorithm=SHA384)
NOT_FIXED = sent.with_attributes(remove=Attribute.FIXED_TPM | Attribute.FIXED_PARENT)
RSA_SIGNS = replace(
    templates.EK_RSA_2048,
    attributes=sent.TEMPLATE.attributes,
    policy=b"",
    parameters=replace(templates.EK_RSA_2048.parameters, symmetric=sent.NO_CIPHER, key_bits=1024),  # type: ignore[type-var, arg-type]
)
NULL = Handle.NULL
ENDING = CommandAuth(SESSION, b"", 0, b"")

ALL: list[Sent] = [
    made("a node key", sent.TEMPLATE, Handle.OWNER),
    made("the AK", templates.AK, Handle.ENDORSEMENT),
    made("the ECC endorsement key", templates.EK_ECC_P256, Handle.ENDORSEMENT),
    Sent("ReadPublic of a node key", commands.READ_PUBLIC, sent.read_public(NODE_KEY)),
    Sent("ReadPublic of the AK", commands.READ_PUBLIC, sent.read_public(AK)),
    Sent("ReadPublic of the endorsement key", commands.READ_PUBLIC, sent.read_public(EK)),
    Sent("Sign", commands.SIGN, sent.sign()),
    Sent("Sign with SHA-384", commands.SIGN, sent.sign(digest=bytes(48), scheme=Scheme(Algorithm.ECDSA, SHA384))),
    Sent("Sign what looks like a TPM's own", commands.SIGN, sent.sign(digest=b"\xffTCG" + bytes(28))),
    Sent("Quote over no PCR", commands.QUOTE, sent.quote(selections=())),
    Sent("Quote over all PCRs", commands.QUOTE, sent.quote(selections=PCRS)),
    Sent("Quote over two banks", commands.QUOTE, sent.quote(selections=[(SHA384, b"\x01\0\x80"), *PCRS])),
    Sent("Quote by the key's own scheme", commands.QUOTE, sent.quote(scheme=sent.ECDSA)),
    Sent("Quote with 64 bytes of data", commands.QUOTE, sent.quote(data=bytes(range(64)))),
    Sent("Quote with the most data there is room for", commands.QUOTE, sent.quote(data=bytes(66))),
    Sent("Quote by a node key", commands.QUOTE, sent.quote(NODE_KEY, scheme=sent.ECDSA), NODE_KEY),
    Sent("Certify", commands.CERTIFY, sent.certify()),
    Sent("Certify by a node key", commands.CERTIFY, sent.certify(AK, NODE_KEY, sent.ECDSA), NODE_KEY),
    Sent("Certify itself", commands.CERTIFY, sent.certify(AK, AK)),
    Sent("PCR_Read of eight", commands.PCR_READ, sent.pcr_read((SHA256, b"\xff\0\0"))),
    Sent("PCR_Read of more than eight", commands.PCR_READ, sent.pcr_read((SHA256, b"\xfc\xff\xff"))),
    Sent("PCR_Read of two banks", commands.PCR_READ, sent.pcr_read((SHA256, b"\x1f\0\0"), (SHA384, b"\xff\0\0"))),
    Sent("PCR_Read of what is all ones", commands.PCR_READ, sent.pcr_read((SHA384, b"\0\0\xff"))),
    Sent("PCR_Read of four selections", commands.PCR_READ, sent.pcr_read(*[(SHA256, b"\1\0\0")] * 4)),
    Sent("PCR_Read of none", commands.PCR_READ, sent.pcr_read((SHA256, bytes(3)))),
    Sent("PCR_Read without selection", commands.PCR_READ, sent.pcr_read()),
    Sent("NV_ReadPublic", commands.NV_READ_PUBLIC, sent.nv_read_public(READABLE)),
    Sent("NV_ReadPublic of what was never written", commands.NV_READ_PUBLIC, sent.nv_read_public(UNWRITTEN)),
    Sent("NV_Read", commands.NV_READ, sent.nv_read(READABLE)),
    Sent("NV_Read by the owner", commands.NV_READ, sent.nv_read(READABLE, Handle.OWNER, 5, 3)),
    Sent("NV_Read to the end", commands.NV_READ, sent.nv_read(READABLE, size=10, at=10)),
    Sent("NV_Read of nothing at the end", commands.NV_READ, sent.nv_read(READABLE, size=0, at=20)),
    Sent("StartAuthSession", commands.START_AUTH_SESSION, sent.start()),
    Sent("PolicySecret", commands.POLICY_SECRET, sent.policy_secret()),
    Sent("FlushContext of a session", commands.FLUSH_CONTEXT, sent.flush(SESSION)),
    Sent("a longer nonce", commands.START_AUTH_SESSION, sent.start(bytes(32))),
    Sent("SHA-384", commands.START_AUTH_SESSION, sent.start(bytes(48), hash_=SHA384)),
    Sent("a cipher", commands.START_AUTH_SESSION, sent.start(symmetric=Symmetric(Algorithm.AES, Cipher(128, 0x43)))),
    Sent("FlushContext of the second session", commands.FLUSH_CONTEXT, sent.flush(SESSION + 1)),
    Sent("a trial session", commands.START_AUTH_SESSION, sent.start(kind=3)),
    Sent("FlushContext of the AK", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("a key of no hierarchy", sent.TEMPLATE, NULL),
    Sent("FlushContext of it", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("a key named by SHA-384", SHA384_KEY, Handle.OWNER, b"", b"outside", *PCRS),
    Sent("ReadPublic of it", commands.READ_PUBLIC, sent.read_public(AK)),
    Sent("FlushContext of that", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("a key with a password", sent.TEMPLATE, Handle.OWNER, b"secret", b"", (SHA384, b"\x01\0\0")),
    Sent("Sign with it", commands.SIGN, sent.sign(AK, auth=CommandAuth(Handle.PASSWORD, b"", 0, b"secret\0\0"))),
    Sent("FlushContext of that one", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("a storage key", STORAGE, Handle.OWNER),
    Sent("FlushContext of the storage key", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("a key that may leave", NOT_FIXED, Handle.OWNER),
    Sent("FlushContext of the one that may leave", commands.FLUSH_CONTEXT, sent.flush(AK)),
    made("an RSA key that signs", RSA_SIGNS, Handle.OWNER),
]


def masked(one: Sent, answer: bytes) -> bytes:
    """The answer with zeros for what is chance; nothing of it is lost on the way."""
    reader = Reader(answer)
    head = reader.take(10)
    assert head[6:10] == OK, f"{one.name}: {answer.hex()}"
    handles = reader.take(4 * one.row.answer_handles)
    sessions: list[AnswerAuth] = []
    size = b""
    if one.row.authorizations:
        size = reader.take(4)
        parameters = reader.take(int.from_bytes(size))
        sessions = [read(AnswerAuth, reader) for _ in range(one.row.authorizations)]
    else:
        parameters = reader.rest()
    reader.end()
    decoded = decode(one.row.answer, parameters)
    assert encode(decoded) == parameters
    shown = [encode(replace(session, nonce=bytes(len(session.nonce)))) for session in sessions]
    return head + handles + size + encode(_blank(decoded, one)) + b"".join(shown)


def _blank(decoded: Any, one: Sent) -> Any:
    changes: dict[str, Any] = {}
    for field, value in vars(decoded).items():
        if field == "attest":
            changes[field] = encode(_blank_attest(decode(Attest, value), HIDES[one.signer]))
        elif isinstance(value, Public):
            changes[field] = replace(value, unique=_blank_unique(value.unique))
        elif isinstance(value, Signature):
            halves = replace(value.ecdsa, r=bytes(len(value.ecdsa.r)), s=bytes(len(value.ecdsa.s)))
            changes[field] = replace(value, ecdsa=halves)
        elif isinstance(value, CreationTicket):
            changes[field] = replace(value, digest=bytes(len(value.digest)))
        elif field in ("name", "qualified_name") and one.row is not commands.NV_READ_PUBLIC:
            changes[field] = _blank_name(value)
        elif field == "nonce":
            changes[field] = bytes(len(value))
    return replace(decoded, **changes)


def _blank_unique(unique: bytes | Point) -> bytes | Point:
    if isinstance(unique, Point):
        return Point(bytes(len(unique.x)), bytes(len(unique.y)))
    return bytes(len(unique))


def _blank_name(name: bytes) -> bytes:
    return name[:2] + bytes(len(name) - 2)


def _blank_attest(attest: Attest, hides: bool) -> Attest:
    clock = replace(attest.clock, clock_ms=0)
    if hides:
        clock = replace(clock, resets=0, restarts=0)
    attested = attest.attested
    if isinstance(attested, CertifyInfo):
        attested = CertifyInfo(_blank_name(attested.name), _blank_name(attested.qualified_name))
    signer = _blank_name(attest.qualified_signer)
    return replace(attest, qualified_signer=signer, clock=clock, firmware=0, attested=attested)


def prepared(tpm: SoftwareTpm) -> Link:
    tpm.store(READABLE, bytes(range(sent.NV_BYTES)), ATTRIBUTES)
    tpm.store(UNWRITTEN, None, "ownerwrite|authread|no_da")
    tpm.extend(3, bytes(range(32)))
    return tpm.link()


def test_the_same_commands_have_the_same_answers(both: tuple[SoftwareTpm, SoftwareTpm]) -> None:
    ours, theirs = (prepared(one) for one in both)
    for one in ALL:
        assert masked(one, ours.transmit(one.data)).hex() == masked(one, theirs.transmit(one.data)).hex(), one.name
    for link in (ours, theirs):
        link.close()


def test_every_command_is_among_them_but_the_one_that_wants_a_credential() -> None:
    rows = {one.row.name for one in ALL}
    assert {row.name for row in commands.COMMANDS} - rows == {"ActivateCredential"}


def test_a_difference_is_seen(both: tuple[SoftwareTpm, SoftwareTpm]) -> None:
    """Whoever compares must be able to tell: another nonce, another PCR, another key's attributes."""
    link = prepared(both[0])
    answers = {}
    for one in ALL[:3]:
        answers[one.name] = masked(one, link.transmit(one.data))
    assert len(set(answers.values())) == 3
    quotes = [
        Sent("one", commands.QUOTE, sent.quote(data=data, selections=selections))
        for data, selections in ((b"a", PCRS), (b"b", PCRS), (b"a", [(SHA256, b"\xf7\xff\xff")]))
    ]
    assert len({masked(one, link.transmit(one.data)) for one in quotes}) == 3
