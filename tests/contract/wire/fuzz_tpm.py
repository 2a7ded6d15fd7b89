"""`python -m tests.contract.wire.fuzz_tpm TARGET SEEDS [--broken HOW] [-runs=N …]`: replies that no TPM gives.

A process of its own: libFuzzer, which atheris puts around a function, ends the process it runs in. SEEDS is an empty
folder, into which the real replies of tests/contract/fixtures/tpm2-replies are written in the target's own form. What
follows is libFuzzer's. Whatever a target raises is a defect, and ends the run.
"""

import errno
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["bcd.protocol.tpm2", "bcd.adapters.tpm"]):
    from bcd.adapters.tpm.client import AnotherKey, Client, Key
    from bcd.adapters.tpm.device import DeviceLink
    from bcd.adapters.tpm.failures import Refusal, of_code
    from bcd.adapters.tpm.identify import LinkedTpm
    from bcd.adapters.tpm.link import Late
    from bcd.adapters.tpm.stream import SocketLink
    from bcd.protocol.tpm2 import commands, names, structures, templates, wire

from bcd.domain.model.failures import Failure
from tests.contract.fixtures import tpm2_replies

# TPM_BADTAG with TPM_TAG_RSP_COMMAND.
TPM_1_2 = bytes.fromhex("00c40000000a0000001e")
# TPMS_AUTH_RESPONSE of an empty password.
EMPTY_AUTH = bytes.fromhex("0000010000")
NO_SCHEME = structures.Scheme(structures.Algorithm.NULL, None)
DIGEST = bytes(32)
# In a script, instead of a reply: an errno follows; no reply at all.
ERRNO, LATE = 0xEE, 0xEF
# In the first byte of a target's input: a reply's lengths are put right, so that what is within is reached.
FRAMED = 0x80
# A reply is no longer, and libFuzzer alone would not go beyond the longest seed.
MAX_LEN = 5000


def answers(data: bytes) -> None:
    """The first byte says which command the rest answers."""
    first = data[0] if data else 0
    command = commands.COMMANDS[(first & ~FRAMED) % len(commands.COMMANDS)]
    reply = _framed(command, data[1:]) if first & FRAMED else data[1:]
    try:
        answer = commands.read_answer(command, reply)
    except (wire.Malformed, commands.NotTpm2):
        return
    if isinstance(answer, commands.Code):
        assert str(answer)
        return
    # Nothing was overlooked, nothing made up.
    assert int.from_bytes(reply[2:6]) == len(reply) <= commands.MAX_ANSWER_BYTES
    written = wire.encode(answer.parameters)
    at = commands.HEADER_BYTES + 4 * command.answer_handles + 4 * bool(command.authorizations)
    end = at + len(written)
    assert reply[at:end] == written
    for _ in range(command.authorizations):
        end += 2 + int.from_bytes(reply[end : end + 2]) + 1
        end += 2 + int.from_bytes(reply[end : end + 2])
    assert end == len(reply)
    if isinstance(public := getattr(answer.parameters, "public", None), structures.Public):
        for of in (names.name, names.spki):
            with suppress(wire.Malformed):
                of(public)


def _framed(command: commands.Command[Any, Any], reply: bytes) -> bytes:
    start = commands.HEADER_BYTES + 4 * command.answer_handles
    if command.authorizations:
        inner = len(reply) - start - 4 - len(EMPTY_AUTH) * command.authorizations
        reply = reply[:start] + max(inner, 0).to_bytes(4) + reply[start + 4 :]
    return reply[:2] + len(reply).to_bytes(4) + reply[6:]


class Script:
    """`Link` that answers with what stands in `data`, one reply after the other by their own lengths."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def transmit(self, command: bytes) -> bytes:
        left = self._left
        if left[:1] == bytes([ERRNO]):
            self._left = left[2:]
            raise OSError(left[1] if len(left) > 1 else None, "")
        if left[:1] == bytes([LATE]):
            self._left = left[1:]
            raise Late
        says = int.from_bytes(left[2:6])
        end = says if says >= commands.HEADER_BYTES else len(left)
        self._left = left[end:]
        return left[:end]

    def close(self) -> None:
        return


NODE_KEY = Key(structures.Handle.OWNER, templates.node_key(tpm2_replies.DIGEST))
AK = Key(structures.Handle.ENDORSEMENT, templates.AK)
EK = Key(structures.Handle.ENDORSEMENT, templates.EK_RSA_2048)
CERTIFY = commands.CertifyIn(DIGEST, NO_SCHEME)
SIGN = commands.SignIn(DIGEST, NO_SCHEME, structures.NO_HASH_CHECK)
READ_PUBLIC: tuple[Any, ...] = (commands.READ_PUBLIC, (0x81010001,), commands.Empty())


def _loads(client: Client) -> None:
    for key in (NODE_KEY, AK, NODE_KEY, EK, Key(structures.Handle.OWNER, templates.node_key(DIGEST))):
        client.load(key)
    client.release(AK)


PROGRAMS: tuple[Callable[[Client], object], ...] = (
    lambda client: client.run(*READ_PUBLIC),
    lambda client: client.use((NODE_KEY,), commands.SIGN, SIGN),
    lambda client: client.use((NODE_KEY, AK), commands.CERTIFY, CERTIFY),
    _loads,
    lambda client: LinkedTpm(lambda: client).identify(),
)


def _documented(program: Callable[[Client], object], client: Client) -> None:
    try:
        program(client)
    except (Failure, AnotherKey):
        pass
    except Refusal as refusal:
        assert isinstance(of_code(refusal, "it"), Failure)
    client.close()


def client(data: bytes) -> None:
    """The first byte says what is done, the rest is what the TPM answers meanwhile."""
    program = PROGRAMS[data[0] % len(PROGRAMS)] if data else PROGRAMS[0]
    _documented(program, Client(Script(data[1:]), "it", lambda _: None))


class Stream(SocketLink):
    """The socket link with a peer that has said all it will."""

    def __init__(self, said: bytes) -> None:
        super().__init__("it", 1.0)
        self._said: bytes | None = said

    def _connected(self, until: float) -> socket.socket:
        if self._said is None:
            raise ConnectionRefusedError
        if self._socket is None:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            theirs.sendall(self._said)
            theirs.shutdown(socket.SHUT_WR)
            self._theirs, self._said = theirs, None
        return self._socket


def links(data: bytes) -> None:
    """The first byte: over a stream, or over a device that gives the rest in one read or in two."""
    how = data[0] % 3 if data else 0
    if how == 0:
        _documented(PROGRAMS[0], Client(Stream(data[1:]), "it", lambda _: None))
        return
    kept: list[socket.socket] = []

    def opened(_path: str, _flags: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept.append(ours)
        half = len(data) // how
        for part in (data[1:half], data[half:]):
            ours.send(part)
        return theirs.detach()

    _documented(PROGRAMS[0], Client(DeviceLink("it", 10.0, opened), "it", lambda _: None))
    for one in kept:
        one.close()


def _unknown_selector(self: wire.Chosen, reader: wire.Reader, seen: dict[str, Any]) -> object:
    return self.arms[seen[self.selector]].read(reader, seen)


def _short_take(self: wire.Reader, size_bytes: int) -> bytes:
    taken = self._data[self._at : self._at + size_bytes]
    self._at += len(taken)
    return taken


def _no_room(self: Client, named: tuple[int, ...]) -> bool:
    self._flush(next(iter(self._loaded)))
    return True


# Decoders and a client as somebody might have written them: each has to be found.
BROKEN: dict[str, tuple[type, str, object]] = {
    "unknown-selector": (wire.Chosen, "read", _unknown_selector),
    "short-take": (wire.Reader, "take", _short_take),
    "no-room": (Client, "_make_room", _no_room),
}


def seeds(target: str, replies: dict[str, bytes]) -> Iterator[bytes]:
    """The real replies as `target` reads them."""
    codes = [command.name for command in commands.COMMANDS]
    if target == "answers":
        for name, reply in replies.items():
            number = codes.index(name.split("-")[0])
            yield from (bytes([number | how]) + reply for how in (0, FRAMED))
        return
    if target == "links":
        yield from (bytes([how]) + reply for how in range(3) for reply in replies.values())
        return
    firsts = [reply for reply in replies.values() if len(reply) == commands.HEADER_BYTES]
    yield from (bytes([program]) + reply for program in range(len(PROGRAMS)) for reply in [*firsts, TPM_1_2])
    key, ak, ek = (replies[f"CreatePrimary-{name}"] for name in ("node-key", "ak", "ek-rsa"))
    done, full = replies["FlushContext-done"], replies["CreatePrimary-no-room"]
    gone = replies["FlushContext-gone"]
    yield bytes([0]) + replies["ReadPublic-key"]
    yield bytes([1]) + key + replies["Sign-digest"]
    yield bytes([1]) + key + replies["Sign-digest"] + bytes([ERRNO, errno.EINVAL])
    yield bytes([1]) + key + full + replies["Sign-digest"]
    yield bytes([2]) + key + ak + replies["Certify-key"]
    yield bytes([2]) + key + ak + gone + done + done + key + ak + replies["Certify-key"]
    yield bytes([2]) + key + bytes([ERRNO, errno.EINVAL]) + key + ak + replies["Certify-key"]
    yield bytes([3]) + key + ak + ek + done + key + done
    yield bytes([3]) + key + ak + ek + bytes([ERRNO, errno.EFAULT]) + key
    yield bytes([3]) + key + full + done + ak + bytes([LATE])
    none, index = replies["NV_ReadPublic-none"], replies["NV_ReadPublic-index"]
    banks = replies["PCR_Read-bank"] * 5
    yield bytes([4]) + banks + none + ek + none + replies["CreatePrimary-ek-ecc"] + none * 8 + key + done * 3
    yield bytes([4]) + banks + index + replies["NV_Read-content"] + replies["ReadPublic-ek"] + none * 9 + key


TARGETS = {"answers": answers, "client": client, "links": links}


def main(arguments: Sequence[str]) -> None:
    target, folder, *options = arguments
    if options[:1] == ["--broken"]:
        owner, name, wrong = BROKEN[options[1]]
        setattr(owner, name, wrong)
        options = options[2:]
    for number, seed in enumerate(seeds(target, tpm2_replies.kept())):
        (Path(folder) / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], *options, f"-max_len={MAX_LEN}", folder], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
