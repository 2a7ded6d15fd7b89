"""Storing what a join brought, so that no cut splits key and certificate (specification, "What the join does")."""

from dataclasses import dataclass

from bcd.domain.lifecycle.set_aside import set_journal_aside
from bcd.domain.model import datadir
from bcd.domain.model.datadir import IDENTITY, JOIN_RECORD, KEY, LOCK_WAIT_S, NEXT_KEY, PENDING
from bcd.domain.model.identity import Identity
from bcd.domain.model.names import NodeId
from bcd.ports.clock import Clock
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.journal import CorruptJournal, Journal, JournalOf, NoJournal
from bcd.ports.keys import NodeKey
from bcd.protocol.files import identity_json


@dataclass(frozen=True)
class StoreJoin:
    """`fs` is the data directory; `record` the helper's, or None without `[helper]`."""

    fs: Fs
    record: Fs | None
    journal: Journal
    clock: Clock
    events: Events

    def __call__(self, identity: Identity, key: NodeKey, signed: bytes, *, orphan_key: bool) -> None:
        """Durable in this order; a cut after any line leaves either the pending join or the whole identity. `signed` is
        the serialized statement that `identity` is from; `orphan_key`: there is a `node.key` without an identity. The
        caller holds the lock."""
        # Root's record first: an identity without it would be one the helper does not know.
        if self.record is not None:
            with self.record.lock(LOCK_WAIT_S):
                self.record.write(JOIN_RECORD, signed)
        # Another node's journal would be refused by this node.
        self._set_journal_aside(identity.node_id)
        # A key that no identity stands beside may be all that is left of one.
        if orphan_key:
            self.fs.move_aside(KEY, datadir.orphan_name(KEY, self.clock.now()))
        # Left by a renewal of an identity that is no more.
        self.fs.remove(NEXT_KEY)
        # The key before the certificate, under the name a load promotes it from once the certificate is there.
        self.fs.write(NEXT_KEY, key.record)
        # From here on this machine has joined.
        self.fs.write(IDENTITY, identity_json.encode(identity))
        self.fs.rename(NEXT_KEY, KEY)
        # Last: until now a cut could have needed it to ask again.
        self.fs.remove(PENDING)

    def _set_journal_aside(self, node: NodeId) -> None:
        now = self.clock.now()
        match self.journal.look():
            case JournalOf(owner) if owner is not None and owner != node:
                new_name = datadir.other_nodes_journal(owner, now)
            case CorruptJournal(why):
                self.events.warning("the journal is corrupt and is set aside", why=why)
                new_name = datadir.corrupt_name(datadir.JOURNAL, now)
            case JournalOf() | NoJournal():
                return
        set_journal_aside(self.fs, new_name)
