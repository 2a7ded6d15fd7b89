"""What a running node is made of, and what the parts of one of its lives share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bcd.app.inbox import Send
from bcd.app.pairs import PairInUse
from bcd.app.worker import ThreadWorker, Worker
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.renew import Renew
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model.identity import Leaf
from bcd.domain.model.loading import Loaded
from bcd.domain.model.running import Running
from bcd.ports.clock import Clock
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.gateway import Gateway
from bcd.ports.journal import NodeJournal
from bcd.ports.keys import KeyStore
from bcd.ports.supervisor import Supervisor


@dataclass(frozen=True)
class Parts:
    """`open_journal` opens the loaded node's journal, under the lock; `check` raises what keeps a node from starting.

    `fs`, `load` and `change` serve the thread that decides, `renew` and `take_in` the one that writes: each has a
    directory of its own, both the data directory, since a lock belongs to one. `worker` makes what carries their tasks
    out; a name, and where their events go. `tpm_wait_s` is how long a TPM that the identity needs is waited for: a
    device may show up late in a boot."""

    fs: Fs
    load: Load
    keys: KeyStore
    change: ChangeIdentity
    renew: Renew
    take_in: TakeIn
    gateway: Callable[[Callable[[bytes], None]], Gateway]
    open_journal: Callable[[Loaded], NodeJournal]
    check: Callable[[], None]
    clock: Clock
    entropy: Entropy
    events: Events
    supervisor: Supervisor
    boot_id: str
    version: str
    worker: Callable[[str, Send], Worker] = ThreadWorker
    tpm_wait_s: float = 0.0


class LoadAnew(Exception):
    """Everything known of the identity is to be forgotten and read again; after a retirement this leaf is not to be
    dialled with again soon."""

    def __init__(self, retired: Leaf | None = None) -> None:
        super().__init__()
        self.retired = retired


class Held:
    """What one life knows. `state` is replaced by the thread that decides alone; others read it."""

    def __init__(self, clock: Clock, journal: NodeJournal, pairs: PairInUse, state: Running) -> None:
        self.clock = clock
        self.journal = journal
        self.pairs = pairs
        self.state = state

    def now(self) -> datetime:
        """The estimated time."""
        return self.state.now(self.clock.now(), self.clock.boottime_s())

    def left_s(self) -> float:
        """Seconds until the certificate ends; negative when it has."""
        return (self.state.leaf.not_after - self.now()).total_seconds()
