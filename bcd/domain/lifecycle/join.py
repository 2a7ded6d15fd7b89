"""Joining: one request, kept until it is answered (begin_join, ask_to_join), and the answer stored (store_join)."""

from collections.abc import Callable
from dataclasses import dataclass

from bcd.domain.lifecycle.ask_to_join import AskToJoin
from bcd.domain.lifecycle.await_tpm import AwaitTpm
from bcd.domain.lifecycle.begin_join import BeginJoin, Wanted
from bcd.domain.lifecycle.hand_over import HandOver
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.store_join import StoreJoin
from bcd.domain.model.datadir import LOCK_WAIT_S, PENDING
from bcd.domain.model.failures import Message, Refused, TryLater
from bcd.domain.model.identity import Identity
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import Loaded, NotJoined
from bcd.ports.credential import CredentialSource
from bcd.ports.events import Events
from bcd.ports.fs import Fs


@dataclass(frozen=True)
class Joined:
    """`already`: the identity was there before, and no credential was read."""

    identity: Identity
    kind: KeyKind
    already: bool


@dataclass(frozen=True)
class Join:
    """`check_directory` raises FixConfiguration for a data directory that others can get into: no key is to be born
    there. `tpm_wait_s` is how long a TPM that the identity needs is waited for, since a device may show up late in a
    boot."""

    fs: Fs
    check_directory: Callable[[], None]
    load: Load
    await_tpm: AwaitTpm
    begin: BeginJoin
    ask: AskToJoin
    store: StoreJoin
    hand_over: HandOver
    credential: CredentialSource
    events: Events
    tpm_wait_s: float = 0.0

    def __call__(self, wanted: Wanted) -> Joined:
        """The identity of this machine, there already or new and durable. Any Failure leaves what was on disk."""
        with self.fs.lock(LOCK_WAIT_S):
            match self.await_tpm(self.load, self.tpm_wait_s):
                case NotJoined(orphan_key):
                    pass
                case Loaded(identity, kind):
                    return self._already(identity, kind, wanted)
            self.check_directory()
            begun = self.begin(wanted)
            response = self.ask(begun)
            identity = Identity(response.leaf, response.chain, response.trust, response.server_time)
            self.store(identity, begun.key, response.signed, orphan_key=orphan_key)
            self._put_in_order()
            self.credential.spent()
            return Joined(identity, begun.key.kind, already=False)

    def _already(self, identity: Identity, kind: KeyKind, wanted: Wanted) -> Joined:
        if wanted.node_id is not None and wanted.node_id != identity.node_id:
            raise Refused(Message.OTHER_NODE, node=identity.node_id, wanted=wanted.node_id)
        self._put_in_order()
        self.credential.spent()
        return Joined(identity, kind, already=True)

    def _put_in_order(self) -> None:
        try:
            self.hand_over()
            # Left by a cut between the last two lines of store_join.
            self.fs.remove(PENDING)
        except TryLater as error:
            # A join unit runs at every boot, also from a read-only root: the identity is there and works.
            self.events.warning("joined, but the files could not be put in order", why=error.text)
