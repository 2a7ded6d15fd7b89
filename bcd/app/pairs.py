"""The pair in use: one owner, so that nothing is sent with the old one once the new one has been used."""

import threading
from dataclasses import dataclass

from bcd.domain.model.running import OLD_KEY_S
from bcd.ports.events import Events
from bcd.ports.gateway import Pair


@dataclass(frozen=True)
class _Old:
    pair: Pair
    until_s: float


class PairInUse:
    """Holds the pair new connections are made with, and the replaced ones until nothing can still sign with them."""

    def __init__(self, pair: Pair, events: Events) -> None:
        self._lock = threading.Lock()
        self._pair = pair
        self._old: list[_Old] = []
        self._events = events

    @property
    def pair(self) -> Pair:
        with self._lock:
            return self._pair

    def replace(self, pair: Pair, boottime_s: float) -> None:
        with self._lock:
            self._old.append(_Old(self._pair, boottime_s + OLD_KEY_S))
            self._pair = pair

    def release(self, boottime_s: float) -> None:
        """Lets go of the keys that were replaced five minutes ago or more."""
        with self._lock:
            gone = [old for old in self._old if boottime_s >= old.until_s]
            self._old = [old for old in self._old if boottime_s < old.until_s]
        for old in gone:
            old.pair.key.release()
            self._events.info("the old key is released")
