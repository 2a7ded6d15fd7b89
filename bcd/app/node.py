"""`bcd node`: a session that lives, a certificate that is renewed, until the control plane revokes the identity.

One thread decides (app.life); two work: one dials (app.session), one renews and writes (app.writing). What they find
comes back as an event (app.inbox).
"""

from contextlib import ExitStack
from dataclasses import dataclass

from bcd.app.inbox import Inbox, Stopping
from bcd.app.life import Life
from bcd.app.parts import LoadAnew, Parts
from bcd.domain.lifecycle.await_tpm import TPM_LOOK_S
from bcd.domain.model.datadir import KEY, LOCK_WAIT_S, MAX_FILE_BYTES, NEXT_KEY
from bcd.domain.model.failures import Message, MustJoinAgain, NotJoined, NotThereYet, TryLater
from bcd.domain.model.identity import Leaf
from bcd.domain.model.keys import KeyState, KeyUnavailable
from bcd.domain.model.loading import Loaded
from bcd.ports.gateway import Pair
from bcd.ports.journal import NodeJournal

# SIGTERM ends a node within a second, whatever it waits for.
LOCK_LOOK_S = 0.5


@dataclass(frozen=True)
class Node(Parts):
    def __call__(self, inbox: Inbox) -> None:
        """Runs until `inbox` is told to stop. IdentityDead when the identity was revoked; a Failure of loading."""
        retired: Leaf | None = None
        while True:
            begun = self._begin(inbox)
            if begun is None:
                return
            loaded, journal = begun
            try:
                # A TPM that answers nothing is asked for half a minute; a cut here is one like any other.
                with inbox.interruptible():
                    pair = self._pair(loaded)
                Life(self, inbox, identity=loaded.identity, pair=pair, journal=journal, retired=retired)()
                return
            except LoadAnew as anew:
                retired = anew.retired
            except Stopping:
                return
            finally:
                journal.close()

    def _begin(self, inbox: Inbox) -> tuple[Loaded, NodeJournal] | None:
        """The identity and its journal, once the TPM that it needs is there; None when there was a stop."""
        until_s = self.clock.boottime_s() + self.tpm_wait_s
        told = ""
        while True:
            self.check()
            with ExitStack() as locked:
                if not self._lock(locked, inbox):
                    return None
                try:
                    with inbox.interruptible():
                        loaded = self.load()
                except Stopping:
                    return None
                except NotThereYet as failure:
                    if self.clock.boottime_s() >= until_s:
                        raise
                    why = failure.text
                else:
                    if not isinstance(loaded, Loaded):
                        raise NotJoined(Message.NOT_JOINED)
                    return loaded, self.open_journal(loaded)
            # Without the lock: whoever resets meanwhile need not wait for a TPM.
            if why != told:
                told = why
                self.events.info("waiting for the TPM", why=why)
            self.clock.wait(TPM_LOOK_S)

    def _lock(self, locked: ExitStack, inbox: Inbox) -> bool:
        """Takes the lock, in short waits: a stop is heard between them. False when there was one."""
        until_s = self.clock.boottime_s() + LOCK_WAIT_S
        while not inbox.stopped:
            try:
                locked.enter_context(self.fs.lock(LOCK_LOOK_S))
                return True
            except TryLater as failure:
                if failure.message is not Message.LOCKED or self.clock.boottime_s() >= until_s:
                    raise
        return False

    def _pair(self, loaded: Loaded) -> Pair:
        """The leaf with its key: in `node.key`, or still in `node.key.next` where the disk could not be put right."""
        leaf = loaded.identity.leaf
        unavailable: KeyUnavailable | None = None
        for name in (KEY, NEXT_KEY):
            record = self.fs.read(name, MAX_FILE_BYTES)
            key = self.keys.open(record) if record is not None else None
            if isinstance(key, KeyUnavailable):
                # The other one may be the leaf's all the same.
                unavailable = key
            elif key is not None and not isinstance(key, KeyState) and key.spki == leaf.spki:
                return Pair(leaf, loaded.identity.chain, key)
        if unavailable is not None:
            raise TryLater(Message.KEY_UNAVAILABLE, why=unavailable.why)
        raise MustJoinAgain(Message.KEY_MISMATCH)
