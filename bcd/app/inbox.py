"""What happens to a running node, and where the one thread that decides hears of it."""

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bcd.domain.lifecycle.renew import RenewOutcome
from bcd.ports.gateway import Ended, Heard


class Stop:
    """Somebody asked the node to end."""


class Stopping(BaseException):
    """Raised by a stop out of what nothing else would end."""


@dataclass(frozen=True)
class NotDialled:
    """No connection came of dial `number`."""

    number: int
    ended: Ended


@dataclass(frozen=True)
class Said:
    """Something heard on connection `number`."""

    number: int
    heard: Heard


@dataclass(frozen=True)
class RenewalEnded:
    outcome: RenewOutcome


@dataclass(frozen=True)
class Trouble:
    """A worker's task did not end as it should: `why` for an operator."""

    task: str
    why: str


class ChangedOnDisk:
    """The disk holds another identity than the one in use."""


Event = Stop | NotDialled | Said | RenewalEnded | Trouble | ChangedOnDisk
Send = Callable[[Event], None]


class Inbox:
    """Events for the life that runs; those of one that is over are dropped, whoever still sends them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int, Event]] = queue.SimpleQueue()
        self._life = 0
        self._stopped = False
        self._interruptible = False

    @property
    def stopped(self) -> bool:
        """Whether somebody asked the node to end, also when that event was not taken yet."""
        return self._stopped

    def begin(self) -> Send:
        """A new life; what it returns is how its threads send."""
        self._life += 1
        life = self._life
        return lambda event: self._queue.put((life, event))

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """While it lasts, a stop raises Stopping: to be put around what waits in the thread of the signal handlers and
        may be cut off anywhere."""
        self._interruptible = True
        try:
            if self._stopped:
                raise Stopping
            yield
        finally:
            self._interruptible = False

    def stop(self) -> None:
        """Ends the node, whichever life it is in. Safe in a signal handler."""
        self._stopped = True
        self._queue.put((0, Stop()))
        if self._interruptible:
            # Once: whoever asks twice must not break into the end.
            self._interruptible = False
            raise Stopping

    def get(self, timeout_s: float) -> Event | None:
        """The next event, or None when none came in time."""
        try:
            life, event = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        return event if life in (0, self._life) else None
