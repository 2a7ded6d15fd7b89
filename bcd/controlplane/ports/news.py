"""Port: the sessions that live in this process."""

from collections.abc import Set
from typing import Protocol

from bcd.controlplane.domain.news import Item
from bcd.domain.model.names import NodeId


class News(Protocol):
    """May be called from any thread."""

    def tell(self, item: Item) -> None:
        """Reaches the sessions it concerns soon; never waits, never fails. Only what is durable is told."""
        ...

    def live(self) -> Set[NodeId]:
        """The nodes that have a session now."""
        ...


class NoSessions:
    """Where no server runs."""

    def tell(self, item: Item) -> None:
        pass

    def live(self) -> Set[NodeId]:
        return frozenset()
