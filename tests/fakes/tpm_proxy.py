"""What stands between bcd and a software TPM: it sees every command, and answers some of them otherwise.

Each command goes to the TPM over a connection of its own, so that several processes, and tpm2-tools beside them, use
one swtpm at the same time; swtpm itself serves one connection until that ends.
"""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bcd.adapters.tpm.link import Late
from bcd.adapters.tpm.stream import SocketLink
from bcd.protocol.tpm2.commands import HEADER_BYTES, CommandCode
from tests.fakes.swtpm import READY_S


@dataclass(frozen=True)
class Delay:
    """The TPM carries the command out; its answer comes that much later."""

    seconds: float


@dataclass(frozen=True)
class Lose:
    """The TPM carries the command out; nobody hears of it, and the connection stays."""


@dataclass(frozen=True)
class Cut:
    """The TPM carries the command out; instead of an answer the connection ends."""


@dataclass(frozen=True)
class Answer:
    """These bytes, which a reader of a stream takes for whole by the length in bytes 2 to 5; the TPM never sees the
    command."""

    reply: bytes


@dataclass(frozen=True)
class Before:
    """`happens` (a reset, say), and then the TPM gets the command."""

    happens: Callable[[], object]


Act = Delay | Lose | Cut | Answer | Before


def refuse(code: int) -> Answer:
    """A response code without a TPM: 0x922 "again", 0x100 not started, 0x9a2 a password."""
    return Answer(bytes.fromhex("80010000000a") + code.to_bytes(4))


@dataclass
class _Rule:
    command: CommandCode | None
    act: Act
    left: int | None


@dataclass
class TpmProxy:
    """One that serves `path`. `sent` is every command it got, whole, in order, whatever became of it."""

    path: str
    tpm_path: str
    sent: list[bytes] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _open: set[socket.socket] = field(default_factory=set)

    @property
    def env(self) -> dict[str, str]:
        return {"BCD_FAKEHW_TPM": f"socket:{self.path}"}

    @property
    def codes(self) -> list[int]:
        """The command codes, in order; 0 for what was too short to have one."""
        return [int.from_bytes(command[6:10]) for command in self.sent]

    @property
    def counts(self) -> Counter[str]:
        """How often each command came, by the specification's name; another one by its number."""
        known = {code.value: code.name for code in CommandCode}
        return Counter(known.get(code, f"0x{code:08x}") for code in self.codes)

    def forget(self) -> None:
        """Counts from here."""
        self.sent.clear()

    def on(self, command: CommandCode | None, act: Act, times: int | None = None) -> None:
        """From now on `act` for `command` (None: for every one), so many times or always. An earlier rule that still
        holds goes first."""
        with self._lock:
            self._rules.append(_Rule(command, act, times))

    def clear(self) -> None:
        """No rules."""
        with self._lock:
            self._rules.clear()

    def _act(self, command: bytes) -> Act | None:
        code = int.from_bytes(command[6:10])
        with self._lock:
            self.sent.append(command)
            for rule in self._rules:
                if rule.left != 0 and rule.command in (None, code):
                    rule.left = rule.left and rule.left - 1
                    return rule.act
        return None

    def _carried_out(self, command: bytes) -> bytes:
        with self._lock:
            link = SocketLink(self.tpm_path)
            try:
                return link.transmit(command)
            finally:
                link.close()

    def _answer(self, command: bytes) -> bytes | None:
        """What goes back: b"" for nothing, None for the connection's end."""
        act = self._act(command)
        if isinstance(act, Answer):
            return act.reply
        if isinstance(act, Before):
            act.happens()
        try:
            reply = self._carried_out(command)
        except (OSError, Late):
            # Without a TPM behind it there is none in front.
            return None
        match act:
            case Delay(seconds):
                self._ended.wait(seconds)
            case Lose():
                return b""
            case Cut():
                return None
        return reply

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._open.add(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while command := _command(connection):
                reply = self._answer(command)
                if reply is None:
                    break
                connection.sendall(reply)
        self._open.discard(connection)

    def end(self) -> None:
        self._ended.set()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _command(connection: socket.socket) -> bytes:
    """The next command, by the length in its header; what there is when the other side ends before."""
    command = b""
    wanted = HEADER_BYTES
    while len(command) < wanted:
        more = connection.recv(wanted - len(command))
        if not more:
            break
        command += more
        if len(command) == HEADER_BYTES:
            wanted = int.from_bytes(command[2:6])
    return command


@contextmanager
def between(tpm_path: str, path: Path | None = None) -> Iterator[TpmProxy]:
    """A proxy for the TPM at `tpm_path`, at `path` or beside it."""
    proxy = TpmProxy(str(path or f"{tpm_path}.proxy"), tpm_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(proxy.path)
        listener.listen()
        thread = threading.Thread(target=proxy.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=READY_S)
            proxy.end()
            Path(proxy.path).unlink(missing_ok=True)
