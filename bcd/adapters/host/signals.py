"""SIGTERM and SIGINT, heard at once by a program that has threads."""

import os
import signal
import threading
import time
from collections.abc import Callable

_STOPS = (signal.SIGTERM, signal.SIGINT)
# Ignored unless somebody asks for it; here it only ends a wait.
_NUDGE = signal.SIGURG
_NUDGE_AGAIN_S = 0.05


def on_stop(hear: Callable[[], None], heard: Callable[[], bool]) -> None:
    """From now on `hear` is called in this, the main, thread for each of them; `heard` says whether it was.

    Python runs handlers in the main thread alone, and nothing wakes that when the system gave the signal to another
    thread, or just before a wait began: a node would end when its wait does. So a thread, which the C handler wakes
    through a pipe, interrupts the main thread until it has heard."""
    main = threading.get_ident()
    out, into = os.pipe()
    os.set_blocking(into, False)

    def nudge() -> None:
        while byte := os.read(out, 1):
            while byte[0] in _STOPS and not heard():
                signal.pthread_kill(main, _NUDGE)
                time.sleep(_NUDGE_AGAIN_S)

    for number in _STOPS:
        signal.signal(number, lambda *_: hear())
    signal.signal(_NUDGE, lambda *_: None)
    signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    threading.Thread(target=nudge, name="bcd-signals", daemon=True).start()
