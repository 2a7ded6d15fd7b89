"""What the data directory says, for `status` and `doctor` alike: nothing is locked, nothing is written."""

import pwd
from dataclasses import dataclass
from datetime import datetime

from bcd.domain.lifecycle.load import Load
from bcd.domain.model import datadir
from bcd.domain.model.datadir import MAX_FILE_BYTES, PENDING, Fault
from bcd.domain.model.failures import Failure, FixConfiguration, Message, NotJoined
from bcd.domain.model.loading import Denied, Loaded, Mismatch, Unavailable, Unreadable
from bcd.domain.model.loading import NotJoined as NotJoinedYet
from bcd.domain.model.pending import PendingJoin
from bcd.ports.clock import Clock
from bcd.ports.fs import Fs
from bcd.ports.journal import Journal, JournalOf, JournalState, NoJournal, Told
from bcd.protocol.files import join_pending
from bcd.protocol.files.encoding import MalformedFile


@dataclass(frozen=True)
class PendingUnreadable:
    """`join.pending` is there and holds no request."""

    why: str


@dataclass(frozen=True)
class Sight:
    """One look. `found` is the identity, or the failure a node starting now would end with; `faults` are failures of
    modes and owners; `now` is the estimated time."""

    found: Loaded | Failure
    faults: tuple[Failure, ...]
    pending: PendingJoin | PendingUnreadable | None
    journal: JournalState
    directory: datadir.Directory | None
    now: datetime

    @property
    def told(self) -> Told:
        """What a node wrote in its journal; nothing where there is no journal of this node's."""
        return self.journal.told if isinstance(self.journal, JournalOf) else Told()

    @property
    def failure(self) -> Failure | None:
        """What a node starting now would end with, or None."""
        if isinstance(self.found, Loaded) and self.faults:
            return self.faults[0]
        return None if isinstance(self.found, Loaded) else self.found


@dataclass(frozen=True)
class Look:
    fs: Fs
    load: Load
    journal: Journal
    clock: Clock
    path: str
    owner_uid: int

    def __call__(self) -> Sight:
        """Never fails: what cannot be looked at is the failure found."""
        now = self.clock.now()
        try:
            directory = self.fs.look()
            faults = self._faults(directory)
            found = self._found()
            pending = self._pending()
            journal = self.journal.look()
        except Failure as failure:
            return Sight(failure, (), None, NoJournal(), None, now)
        if isinstance(found, Loaded):
            if found.identity.server_time is not None:
                # Decision 13: a clock behind the last time the server told is wrong for certain.
                now = max(now, found.identity.server_time)
            owner = journal.owner if isinstance(journal, JournalOf) else None
            node = found.identity.node_id
            if owner is not None and owner != node:
                path = f"{self.path}/{datadir.JOURNAL}"
                faults += (FixConfiguration(Message.FOREIGN_JOURNAL, owner=owner, node=node, path=path),)
        return Sight(found, faults, pending, journal, directory, now)

    def _found(self) -> Loaded | Failure:
        try:
            decision = self.load.look()
        except Failure as failure:
            # Something else than a file under the name of one: what else is there can be looked at all the same.
            return failure
        match decision:
            case Loaded() as loaded:
                return loaded
            case NotJoinedYet():
                return NotJoined(Message.NOT_JOINED)
            case Unreadable() | Denied() | Unavailable() | Mismatch():
                return self.load.failure(decision)

    def _pending(self) -> PendingJoin | PendingUnreadable | None:
        try:
            data = self.fs.read(PENDING, MAX_FILE_BYTES)
        except Failure as failure:
            # No node needs it: whatever lies under this name keeps none from starting.
            denied = failure.message is Message.PERMISSION_DENIED
            return PendingUnreadable("may not be read by this user" if denied else "is not a file that can be read")
        if data is None:
            return None
        try:
            return join_pending.decode(data)
        except MalformedFile as error:
            return PendingUnreadable(str(error))

    def _faults(self, directory: datadir.Directory | None) -> tuple[Failure, ...]:
        if directory is None:
            return ()
        found = datadir.faults(directory, self.fs.entries(), self.owner_uid)
        return tuple(told(fault, self.path) for fault in found)


def told(fault: Fault, directory: str) -> Failure:
    """The documented failure for `fault` in the data directory whose path is given."""
    path = f"{directory}/{fault.name}" if fault.name else directory
    if fault.want_uid is None:
        message = Message.FILE_LOOSE if fault.name else Message.DIRECTORY_LOOSE
        return FixConfiguration(message, path=path, mode=f"{fault.mode:04o}")
    owner, want = _user(fault.uid), _user(fault.want_uid)
    if fault.name:
        return FixConfiguration(Message.FILE_OWNER, name=fault.name, owner=owner, want=want, path=path)
    return FixConfiguration(Message.DIRECTORY_OWNER, owner=owner, want=want, path=path)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
