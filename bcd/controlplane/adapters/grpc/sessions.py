"""The sessions that live, and how news reaches them."""

import asyncio
import threading
from collections.abc import Set
from enum import Enum, auto

from bcd.controlplane.domain.gateway import Presented
from bcd.controlplane.domain.news import BundleChanged, Item, NodeRevoked, RenewalDue
from bcd.domain.model.names import NodeId

# A node drops its old session itself when the new one is welcome; until it does, ending it would look like a fault.
QUIET_AFTER_S = 5.0


class End(Enum):
    """Why a session ends that is not revoked."""

    STOPPING = auto()
    # The node has a session with a newer certificate, or closed this one.
    QUIETLY = auto()


class Session:
    """One stream. What it has yet to say is the newest of each kind, so that a slow node costs no memory."""

    def __init__(self, presented: Presented) -> None:
        self.node_id = presented.node_id
        # Each renewal ends later than the one before: the order of a node's certificates.
        self.until = presented.leaf.not_after
        self._revoked: NodeRevoked | None = None
        self._end: End | None = None
        self._bundle: BundleChanged | None = None
        self._renewal: RenewalDue | None = None
        self._something = asyncio.Event()

    def take(self, item: Item | End) -> None:
        match item:
            case NodeRevoked():
                self._revoked = item
            case End():
                self._end = item
            case BundleChanged():
                self._bundle = item
            case RenewalDue():
                self._renewal = item
        self._something.set()

    async def next(self, within_s: float) -> Item | End | None:
        """What to say now, the gravest first; None when nothing came within `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._something.wait()
        except TimeoutError:
            return None
        found: Item | End | None = None
        if self._revoked is not None:
            found, self._revoked = self._revoked, None
        elif self._end is not None:
            found, self._end = self._end, None
        elif self._bundle is not None:
            found, self._bundle = self._bundle, None
        elif self._renewal is not None:
            found, self._renewal = self._renewal, None
        else:
            self._something.clear()
        return found


class Sessions:
    """`ports.news.News`. All but `tell` and `live` on the event loop that `begin` was called on."""

    def __init__(self, quiet_after_s: float = QUIET_AFTER_S) -> None:
        self._quiet_after_s = quiet_after_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[NodeId, set[Session]] = {}
        self._up: dict[Session, NodeId] = {}
        self._lock = threading.Lock()
        self._stopping = False

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()

    def tell(self, item: Item) -> None:
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._spread, item)
        except RuntimeError:
            # The loop is closed: no session lives any more.
            pass

    def live(self) -> Set[NodeId]:
        with self._lock:
            return frozenset(self._up.values())

    def open(self, session: Session) -> None:
        """Before its Hello is decided: news of a change that comes right after must find it."""
        self._open.setdefault(session.node_id, set()).add(session)
        if self._stopping:
            session.take(End.STOPPING)

    def welcome(self, session: Session) -> None:
        """It is up; of the node's sessions those with an older certificate have had their time, be it this one."""
        with self._lock:
            self._up[session] = session.node_id
        loop = asyncio.get_running_loop()
        up = [other for other in self._open.get(session.node_id, ()) if other in self._up]
        newest = max(other.until for other in up)
        for other in up:
            if other.until < newest:
                loop.call_later(self._quiet_after_s, other.take, End.QUIETLY)

    def close(self, session: Session) -> None:
        with self._lock:
            self._up.pop(session, None)
        of_node = self._open.get(session.node_id, set())
        of_node.discard(session)
        if not of_node:
            self._open.pop(session.node_id, None)

    def stop(self) -> None:
        """Ends every session, and every one that still begins."""
        self._stopping = True
        self._every(End.STOPPING)

    def _spread(self, item: Item) -> None:
        match item:
            case NodeRevoked(node_id) | RenewalDue(node_id):
                for session in self._open.get(node_id, ()):
                    session.take(item)
            case BundleChanged():
                self._every(item)

    def _every(self, item: Item | End) -> None:
        for of_node in self._open.values():
            for session in of_node:
                session.take(item)
