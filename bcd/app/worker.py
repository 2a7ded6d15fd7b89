"""A thread for what takes its time: the network, the disk."""

import queue
import threading
from collections.abc import Callable
from typing import Protocol

from bcd.app.inbox import Event, Send, Trouble
from bcd.domain.model.failures import Failure

Task = Callable[[], Event | None]


class Worker(Protocol):
    """Carries tasks out one after another and puts what they return, or why they failed, in the inbox."""

    def do(self, name: str, task: Task) -> None: ...

    def end(self) -> None:
        """No further task; one under way is left to itself."""
        ...


class ThreadWorker:
    """A `Worker` with a thread of its own."""

    def __init__(self, name: str, send: Send) -> None:
        self._tasks: queue.SimpleQueue[tuple[str, Task] | None] = queue.SimpleQueue()
        self._send = send
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def do(self, name: str, task: Task) -> None:
        self._tasks.put((name, task))

    def end(self) -> None:
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            event = outcome(*task)
            if event is not None:
                self._send(event)


def outcome(name: str, task: Task) -> Event | None:
    """What the task returns, or the Trouble it ran into."""
    try:
        return task()
    except Failure as failure:
        return Trouble(name, failure.text)
    except Exception as error:  # noqa: BLE001 - a defect here costs an attempt, never the node
        return Trouble(name, f"internal error ({type(error).__name__}: {error})")
