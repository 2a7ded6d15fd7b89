"""Commands as bytes, right or with something wrong in them, and what they speak of: what is loaded and stored then."""

from collections.abc import Iterable
from dataclasses import replace

from bcd.protocol.tpm2 import commands, templates
from bcd.protocol.tpm2.commands import (
    ActivateCredentialIn,
    CertifyIn,
    CommandCode,
    CreatePrimaryIn,
    Empty,
    FlushContextIn,
    NvReadIn,
    PcrReadIn,
    PolicySecretIn,
    QuoteIn,
    SignIn,
    StartAuthSessionIn,
)
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    NO_HASH_CHECK,
    Algorithm,
    Cipher,
    CommandAuth,
    Handle,
    HashCheck,
    PcrSelection,
    Public,
    Scheme,
    SensitiveCreate,
    Symmetric,
    Tag,
    policy,
)
from bcd.protocol.tpm2.wire import encode

# What is loaded when a mistake is made, in this order, and what is stored.
NODE_KEY, AK, EK = 0x80000000, 0x80000001, 0x80000002
SESSION, OTHER_SESSION = 0x03000000, 0x03000001
PERSISTENT_EK = 0x81010001
ABSENT_PERSISTENT = 0x81010002
READABLE, WITH_PASSWORD, UNWRITTEN, OWNERS, COUNTED, ABSENT = (0x01C10001 + number for number in range(6))
NV_BYTES = 20
PASSWORD = b"secret"

TEMPLATE = templates.node_key(b"\x07" * 32)
ECDSA = Scheme(Algorithm.ECDSA, Algorithm.SHA256)
NO_CIPHER = Symmetric(Algorithm.NULL, None)
NULL = Scheme(Algorithm.NULL, None)
WRONG = CommandAuth(Handle.PASSWORD, b"", 1, b"wrong")


def framed(code: int, body: bytes, tag: int = Tag.SESSIONS) -> bytes:
    return tag.to_bytes(2) + (10 + len(body)).to_bytes(4) + code.to_bytes(4) + body


def area(*auths: CommandAuth) -> bytes:
    sessions = b"".join(encode(one) for one in auths)
    return len(sessions).to_bytes(4) + sessions


def handles(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4) for number in numbers)


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(2) + data


def cut(command: bytes, by: int) -> bytes:
    """Without its last bytes, and saying so."""
    return resized(command[:-by])


def resized(command: bytes) -> bytes:
    return command[:2] + len(command).to_bytes(4) + command[6:]


def longer(command: bytes) -> bytes:
    return resized(command + b"\0")


def create(template: Public = TEMPLATE, hierarchy: int = Handle.OWNER, auth: CommandAuth = EMPTY_PASSWORD) -> bytes:
    wanted = CreatePrimaryIn(SensitiveCreate(b"", b""), template, b"", ())
    return commands.write_command(commands.CREATE_PRIMARY, (hierarchy,), wanted, (auth,))


def created(public: bytes, sensitive: bytes = sized(bytes(4)), rest: bytes = bytes(6)) -> bytes:
    """CreatePrimary with these bytes for its parameters."""
    parameters = sensitive + sized(public) + rest
    return framed(CommandCode.CREATE_PRIMARY, handles(Handle.OWNER) + area(EMPTY_PASSWORD) + parameters)


def with_attributes(add: int = 0, remove: int = 0, of: Public = TEMPLATE) -> Public:
    return replace(of, attributes=of.attributes & ~remove | add)


def with_parameters(of: Public = TEMPLATE, **changes: object) -> Public:
    return replace(of, parameters=replace(of.parameters, **changes))  # type: ignore[arg-type, type-var]


def read_public(handle: int) -> bytes:
    return commands.write_command(commands.READ_PUBLIC, (handle,), Empty())


def sign(
    key: int = NODE_KEY,
    digest: bytes = bytes(32),
    scheme: Scheme = ECDSA,
    check: HashCheck = NO_HASH_CHECK,
    auth: CommandAuth = EMPTY_PASSWORD,
) -> bytes:
    return commands.write_command(commands.SIGN, (key,), SignIn(digest, scheme, check), (auth,))


def nv_read_public(index: int) -> bytes:
    return commands.write_command(commands.NV_READ_PUBLIC, (index,), Empty())


def nv_read(index: int, by: int | None = None, size: int = 8, at: int = 0, auth: CommandAuth = EMPTY_PASSWORD) -> bytes:
    reader = index if by is None else by
    return commands.write_command(commands.NV_READ, (reader, index), NvReadIn(size, at), (auth,))


def pcr_read(*selections: tuple[int, bytes]) -> bytes:
    wanted = tuple(PcrSelection(bank, selected) for bank, selected in selections)
    return commands.write_command(commands.PCR_READ, (), PcrReadIn(wanted))


def flush(handle: int) -> bytes:
    return commands.write_command(commands.FLUSH_CONTEXT, (), FlushContextIn(handle))


def start(
    nonce: bytes = bytes(16),
    salt: bytes = b"",
    kind: int = 1,
    symmetric: Symmetric = NO_CIPHER,
    hash_: int = Algorithm.SHA256,
    key: int = Handle.NULL,
    bind: int = Handle.NULL,
) -> bytes:
    wanted = StartAuthSessionIn(nonce, salt, kind, symmetric, hash_)
    return commands.write_command(commands.START_AUTH_SESSION, (key, bind), wanted)


def policy_secret(
    entity: int = Handle.ENDORSEMENT,
    session: int = SESSION,
    nonce: bytes = b"",
    command_hash: bytes = b"",
    auth: CommandAuth = EMPTY_PASSWORD,
) -> bytes:
    wanted = PolicySecretIn(nonce, command_hash, b"", 0)
    return commands.write_command(commands.POLICY_SECRET, (entity, session), wanted, (auth,))


def activate(
    credential: bytes,
    secret: bytes,
    activated: int = AK,
    key: int = EK,
    auths: tuple[CommandAuth, ...] = (EMPTY_PASSWORD, policy(SESSION)),
) -> bytes:
    wanted = ActivateCredentialIn(credential, secret)
    return commands.write_command(commands.ACTIVATE_CREDENTIAL, (activated, key), wanted, auths)


def quote(
    key: int = AK,
    data: bytes = b"nonce",
    scheme: Scheme = NULL,
    selections: Iterable[tuple[int, bytes]] = ((Algorithm.SHA256, b"\x01\0\0"),),
    auth: CommandAuth = EMPTY_PASSWORD,
) -> bytes:
    wanted = QuoteIn(data, scheme, tuple(PcrSelection(bank, selected) for bank, selected in selections))
    return commands.write_command(commands.QUOTE, (key,), wanted, (auth,))


def certify(
    certified: int = NODE_KEY,
    key: int = AK,
    scheme: Scheme = NULL,
    auths: tuple[CommandAuth, ...] = (EMPTY_PASSWORD, EMPTY_PASSWORD),
    data: bytes = b"nonce",
) -> bytes:
    return commands.write_command(commands.CERTIFY, (certified, key), CertifyIn(data, scheme), auths)


PUBLIC = encode(TEMPLATE)
# Where the fields of PUBLIC stand: type, name algorithm, attributes, policy, symmetric, scheme, curve, kdf, x, y.
AES = Symmetric(Algorithm.AES, Cipher(128, Algorithm.CFB))


def patched(at: int, new: str, public: bytes = PUBLIC) -> bytes:
    replaced = bytes.fromhex(new)
    return public[:at] + replaced + public[at + len(replaced) :]
