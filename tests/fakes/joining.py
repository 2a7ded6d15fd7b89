"""Everything a join needs besides a file system: a control plane in memory and the small ports."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bcd.adapters.keys.file import FileKeys
from bcd.domain.lifecycle.ask_to_join import AskToJoin
from bcd.domain.lifecycle.attest import Attest
from bcd.domain.lifecycle.await_tpm import AwaitTpm
from bcd.domain.lifecycle.begin_join import BeginJoin, Wanted
from bcd.domain.lifecycle.hand_over import HandOver
from bcd.domain.lifecycle.join import Join
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.store_join import StoreJoin
from bcd.domain.model.claims import Claims
from bcd.domain.model.datadir import JOURNAL, MAX_FILE_BYTES
from bcd.domain.model.failures import Message, Usage
from bcd.domain.model.joining import Answer, Failed, Issued, JoinDenied
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin
from bcd.domain.model.pins import Pins
from bcd.domain.model.tokens import JoinToken
from bcd.ports.attestor import Attestor
from bcd.ports.clock import Clock
from bcd.ports.fs import Fs
from bcd.ports.hardware import Hardware
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal
from bcd.ports.keys import KeyStore
from bcd.protocol.pki import csr, ecdsa, seal
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.clock import ManualClock

TOKEN = b"bcjt_0123456789_a-token-of-the-tests"
RECIPIENT = seal.Recipient(pki.ENCRYPTION_KEY.public_key())
ANY_NODE = Wanted(Role.NODE, None)


class ControlPlane:
    """Port `JoinTransport`: one token, good for one key; the same request is answered again, any other refused.

    `sent` are the questions that left the node, `on_send` is called as each does; `scripted` answers come first.
    """

    def __init__(self, on_send: Callable[[], None] | None = None, scripted: Sequence[Answer] = ()) -> None:
        self.sent: list[JoinQuestion] = []
        self.on_send = on_send
        self.issued: dict[bytes, bytes] = {}
        self.closed = False
        self._scripted = list(scripted)

    def join(self, question: JoinQuestion) -> Answer:
        self.sent.append(question)
        if self.on_send is not None:
            self.on_send()
        if self._scripted:
            return self._scripted.pop(0)
        pending = question.pending
        key = csr.key_of(pending.csr)
        if key not in self.issued:
            no = "" if pending.attestor == "tpm" else self._no(pending)
            if no:
                return JoinDenied(no)
            chain = pki.chain(key=ecdsa.public_key(key), role=pending.role)
            self.issued[key] = pki.join_response(request=pending.csr, certificates=chain)
        return Issued(self.issued[key])

    def _no(self, pending: PendingJoin) -> str:
        if pending.sealed is None or self.issued:
            return "r-used-up"
        try:
            token = seal.open_sealed(pki.ENCRYPTION_KEY, pending.sealed.sealed, pending.csr)
        except seal.DoesNotOpen:
            return "r-seal"
        return "" if token == TOKEN else "r-token"

    def close(self) -> None:
        self.closed = True


class Silent:
    """Port `JoinTransport`: nobody answers."""

    def join(self, question: JoinQuestion) -> Answer:
        return Failed("nobody is there", never=True)

    def close(self) -> None:
        """There is no connection."""


class Credential:
    """Port `CredentialSource`: TOKEN, or none when `text` is None. Counts how often it was read."""

    def __init__(self, text: bytes | None = TOKEN) -> None:
        self.text = text
        self.taken = 0
        self.was_spent = False

    def take(self) -> JoinToken:
        self.taken += 1
        if self.text is None:
            raise Usage(Message.NO_TOKEN)
        return JoinToken(self.text)

    def spent(self) -> None:
        self.was_spent = True


class Machine:
    """Port `Hardware`."""

    def claims(self) -> Claims:
        return Claims(board_serial="B-4711", hostname="rack-3-7")


class Half:
    """Port `Entropy`: always the middle."""

    def fraction(self) -> float:
        return 0.5


@dataclass
class Recorded:
    """Port `Events`: kept, as (level, text, fields)."""

    lines: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)

    def info(self, text: str, **fields: object) -> None:
        self.lines.append(("info", text, fields))

    def warning(self, text: str, **fields: object) -> None:
        self.lines.append(("warning", text, fields))

    def error(self, text: str, **fields: object) -> None:
        self.lines.append(("error", text, fields))


class JournalIn:
    """Port `Journal` over whatever file system the node has."""

    def __init__(self, fs: Fs) -> None:
        self._fs = fs

    def look(self) -> JournalState:
        data = self._fs.read(JOURNAL, MAX_FILE_BYTES)
        if data is None:
            return NoJournal()
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(data)
            (owner,) = connection.execute("SELECT node_id FROM meta").fetchone()
        except sqlite3.Error as error:
            return CorruptJournal(str(error))
        finally:
            connection.close()
        return JournalOf(None if owner is None else NodeId(owner))


def journal_of(owner: str | None) -> bytes:
    """A `journal.db` that belongs to `owner`."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE meta (node_id TEXT, journal_id TEXT, server_time TEXT)")
        connection.execute("INSERT INTO meta VALUES (?, 'j-1', NULL)", (owner,))
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


def load(fs: Fs, path: str) -> Load:
    return Load(fs, FileKeys(), Recorded(), path)


def join(
    fs: Fs,
    path: str,
    plane: JoinTransport,
    credential: Credential,
    *,
    clock: Clock | None = None,
    record: Fs | None = None,
    events: Recorded | None = None,
    keys: KeyStore | None = None,
    attestor: Attestor | None = None,
    hardware: Hardware | None = None,
    recipient: Callable[[], seal.Recipient] = lambda: RECIPIENT,
    signing_pins: Pins = pki.PINS,
    check_directory: Callable[[], None] = lambda: None,
    tpm_wait_s: float = 0.0,
) -> Join:
    """The real lifecycle with fakes at every port but `fs` and the keys."""
    told = events if events is not None else Recorded()
    time = clock if clock is not None else ManualClock()
    store = keys if keys is not None else FileKeys()
    attest = Attest(attestor if attestor is not None else MemoryAttestor(), time, told)
    await_tpm = AwaitTpm(time, told)
    return Join(
        fs=fs,
        check_directory=check_directory,
        load=Load(fs, store, told, path),
        await_tpm=await_tpm,
        begin=BeginJoin(fs, path, store, attest, await_tpm, credential, recipient, time, told, tpm_wait_s),
        ask=AskToJoin(fs, attest, plane, hardware or Machine(), signing_pins, time, Half(), told, version="0.0.0-test"),
        store=StoreJoin(fs, record, JournalIn(fs), time, told),
        hand_over=HandOver(fs, told),
        credential=credential,
        events=told,
        tpm_wait_s=tpm_wait_s,
    )
