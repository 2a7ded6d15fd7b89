"""How long a process takes to end, on a machine that has other things to do as well."""

import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path


def seconds_to_end(process: "subprocess.Popen[bytes]", how: signal.Signals, patience_s: float = 20.0) -> float:
    """From the signal to the end, without the time that its main thread or we stood in line for a processor.

    The process is left to be waited for. AssertionError when it still runs after `patience_s`.
    """
    ours = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    its = Path(f"/proc/{process.pid}/task/{process.pid}/schedstat")
    end = os.pidfd_open(process.pid)
    try:
        in_line_s = _in_line_s(ours) + _in_line_s(its)
        began_s = time.monotonic()
        process.send_signal(how)
        ready = select.poll()
        ready.register(end, select.POLLIN)
        assert ready.poll(patience_s * 1000), f"still running {patience_s:.0f} s after {how.name}"
        # The kernel keeps its numbers until somebody waits for it.
        return time.monotonic() - began_s - (_in_line_s(ours) + _in_line_s(its) - in_line_s)
    finally:
        os.close(end)


def _in_line_s(schedstat: Path) -> float:
    """The second number: nanoseconds spent runnable and not running. 0 where the kernel does not count them."""
    try:
        return int(schedstat.read_text().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0
