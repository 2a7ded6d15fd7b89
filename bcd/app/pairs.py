"""The pair in use: one owner, so that nothing is sent with the old one once the new one has been used."""

import threading
from dataclasses import dataclass

from bcd.domain.model.running import OLD_KEY_S
from bcd.ports.gateway import Pair
from bcd.ports.keys import NodeKey


@dataclass(frozen=True)
class _Old:
    pair: Pair
    until_s: float


class PairInUse:
    """Holds the pair new connections are made with, and the replaced ones until nothing can still sign with them."""

    def __init__(self, pair: Pair) -> None:
        self._lock = threading.Lock()
        self._pair = pair
        self._old: list[_Old] = []

    @property
    def pair(self) -> Pair:
        with self._lock:
            return self._pair

    def replace(self, pair: Pair, boottime_s: float) -> None:
        with self._lock:
            self._old.append(_Old(self._pair, boottime_s + OLD_KEY_S))
            self._pair = pair

    def let_go(self, boottime_s: float) -> tuple[NodeKey, ...]:
        """The keys that were replaced five minutes ago or more, each once: it is for whoever gets them to release
        them."""
        with self._lock:
            gone = tuple(old.pair.key for old in self._old if boottime_s >= old.until_s)
            self._old = [old for old in self._old if boottime_s < old.until_s]
        return gone
