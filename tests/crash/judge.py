"""What a data directory must be after a cut, and what a second join must make of it, however it was cut."""

from collections.abc import Iterable
from dataclasses import dataclass

from bcd.adapters.keys.file import FileKeys
from bcd.domain.lifecycle.join import Joined
from bcd.domain.model.datadir import IDENTITY, JOURNAL, JOURNAL_SIDE_FILES, KEY, MAX_FILE_BYTES, NEXT_KEY, PENDING
from bcd.domain.model.failures import Failure
from bcd.domain.model.keys import KeyState
from bcd.domain.model.loading import Decision, Loaded, NotJoined
from bcd.ports.clock import Clock
from bcd.ports.fs import Fs
from bcd.ports.journal import JournalOf
from bcd.protocol.files import join_pending
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import csr
from tests.fakes import joining
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential


class Lost(AssertionError):
    """The cut lost something; the text says what."""


@dataclass(frozen=True)
class Previous:
    """What lay in the directory before the join and must be found in it for ever: contents, by the beginning of the
    name under which they may be found."""

    contents: tuple[tuple[str, bytes], ...] = ()


def judge_load(fs: Fs, path: str, sent: bytes | None) -> None:
    """`sent` is the request that had left the machine at the cut, or None."""
    found = joining.load(fs, path).look()
    _judge_journal(fs, found)
    match found:
        case NotJoined():
            pending = _pending(fs)
            if sent is not None and pending != sent:
                raise Lost("the request that was sent is not there to be sent again")
        case Loaded(identity, _):
            if sent is None:
                raise Lost("an identity nobody asked for")
            if identity.leaf.spki != _key_of(sent):
                raise Lost("the identity is of another key than was sent")
        case _:
            raise Lost(f"load says {type(found).__name__}")


def second_join(
    fs: Fs, path: str, plane: ControlPlane, sent: bytes | None, previous: Previous, clock: Clock | None = None
) -> Joined:
    """Runs `bcd join` once more, without a token when the request had been sent, and judges what it leaves."""
    credential = Credential(None) if sent is not None else Credential()
    try:
        joined = joining.join(fs, path, plane, credential, clock=clock)(ANY_NODE)
    except Failure as failure:
        raise Lost(f"the next join fails: {failure.text}") from None
    judge_end(fs, path, joined, sent, previous)
    if credential.taken and sent is not None:
        raise Lost("a token was needed again")
    if len(plane.issued) != 1:
        raise Lost(f"{len(plane.issued)} certificates were issued")
    return joined


def judge_end(fs: Fs, path: str, joined: Joined, sent: bytes | None, previous: Previous) -> None:
    """The directory after a join that succeeded: one identity and its key, all that lay there before, nothing else."""
    if sent is not None and joined.identity.leaf.spki != _key_of(sent):
        raise Lost("joined with another key than was sent")
    found = joining.load(fs, path).look()
    if not isinstance(found, Loaded) or found.identity != joined.identity:
        raise Lost("what was joined does not load")
    files = {entry.name: fs.read(entry.name, MAX_FILE_BYTES) or b"" for entry in fs.entries()}
    rest = {name: data for name, data in files.items() if name not in (IDENTITY, KEY)}
    for beginning, content in previous.contents:
        name = next((name for name in rest if name.startswith(beginning) and rest[name] == content), None)
        if name is None:
            raise Lost(f"a previous {beginning} is gone")
        del rest[name]
    if rest:
        raise Lost(f"left behind: {', '.join(sorted(rest))}")


def previous_of(names: Iterable[str], files: dict[str, bytes]) -> Previous:
    """What must outlive a join of these files: everything but a stale next key."""
    kept = [name for name in names if name != NEXT_KEY]
    return Previous(tuple((JOURNAL if name.startswith(JOURNAL) else name, files[name]) for name in kept))


def request_of(plane: ControlPlane) -> bytes | None:
    return plane.sent[-1].pending.csr if plane.sent else None


def judge_told(fs: Fs, path: str, joined: Joined, previous: Previous) -> None:
    """After a cut once the join has said that it succeeded: all is there, and there is nothing left to be done."""
    judge_end(fs, path, joined, None, previous)


def _judge_journal(fs: Fs, found: Decision) -> None:
    names = {entry.name for entry in fs.entries()}
    if JOURNAL not in names and names & set(JOURNAL_SIDE_FILES):
        # SQLite would play what is in them into the journal that is made there next.
        raise Lost("a journal is gone and its side files are not")
    owner = joining.JournalIn(fs).look()
    if isinstance(found, Loaded) and isinstance(owner, JournalOf) and owner.owner not in (None, found.identity.node_id):
        raise Lost("the identity lies beside another node's journal")


def _pending(fs: Fs) -> bytes | None:
    data = fs.read(PENDING, MAX_FILE_BYTES)
    if data is None:
        return None
    try:
        pending = join_pending.decode(data)
    except MalformedFile as error:
        raise Lost(f"join.pending {error}") from None
    if isinstance(FileKeys().open(pending.key), KeyState):
        raise Lost("join.pending holds no usable key")
    return pending.csr


def _key_of(request: bytes) -> bytes:
    return csr.key_of(request)
