"""A signal that comes just before a wait, or to another thread: what waits in the main thread hears of it at once."""

import subprocess
import sys

# The other thread takes the signal; the main thread, in a wait of half a minute, is told by nobody else.
_PROGRAM = """
import queue, signal, threading, time
{listen}
heard = queue.SimpleQueue()
stopped = threading.Event()
def stop():
    stopped.set(); heard.put(1)
{install}
def other():
    # By then the main thread waits, also on a machine that has much else to do.
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(60)
threading.Thread(target=other, daemon=True).start()
try:
    heard.get(timeout=5)
    print("heard")
except queue.Empty:
    print("late")
"""
PLAIN = "signal.signal(signal.SIGTERM, lambda *_: stop())"
OURS = "on_stop(stop, stopped.is_set)"


def said(listen: str, install: str) -> str:
    program = _PROGRAM.format(listen=listen, install=install)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_a_stop_is_heard_whichever_thread_it_came_to() -> None:
    assert said("from bcd.adapters.host.signals import on_stop", OURS) == "heard"


def test_pythons_own_way_waits_the_wait_out() -> None:
    """The negative twin."""
    assert said("", PLAIN) == "late"
