"""A process that has imported everything forks once a command: each command is a process of its own, but none of them
spends a fifth of a second on reading modules. `tests.fakes.warm` asks it.

A request is one message on standard input, a socket: JSON, and four descriptors, which are the command's three streams
and where its exit status goes. When standard input ends, so does this, and every command that still runs.
"""

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from typing import Any, NoReturn

import bcd
import bcd.entry

ENTRIES = {
    "bcd": bcd.entry.bcd,
    "bcd-fakehw": bcd.entry.bcd_fakehw,
    "bcd-controlplane": bcd.entry.bcd_controlplane,
}
MAX_REQUEST_BYTES = 1 << 16
_FIRST_FREE = 3


def main() -> None:
    for module in pkgutil.walk_packages(bcd.__path__, "bcd."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # A thread would not be there after a fork, and what it holds would be held for ever.
    assert os.listdir("/proc/self/task") == [str(os.getpid())]
    # Nobody's garbage: a collection in a command would copy every page of it.
    gc.freeze()
    # Ctrl-C is for the commands; the end of the tests is the end of standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, wakes = socket.socketpair()
    for one in (woken, wakes):
        one.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _serve(socket.socket(fileno=0), woken)


def _serve(asked: socket.socket, woken: socket.socket) -> None:
    # By process: where its status goes.
    running: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == woken.fileno():
                woken.recv(4096)
                _bury(running, poll)
            elif descriptor == asked.fileno():
                message, streams, _, _ = socket.recv_fds(asked, MAX_REQUEST_BYTES, 4)
                if not message:
                    for pid in running:
                        os.kill(pid, signal.SIGKILL)
                    return
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(message), streams[:3])
                for stream in streams[:3]:
                    os.close(stream)
                running[pid] = socket.socket(fileno=streams[3])
                # Nothing comes from there but its end, when whoever asked has lost patience.
                poll.register(running[pid], 0)
            else:
                # Unless it has just ended, and was buried.
                for pid in [pid for pid, status in running.items() if status.fileno() == descriptor]:
                    poll.unregister(descriptor)
                    os.kill(pid, signal.SIGKILL)


def _bury(running: dict[int, socket.socket], poll: "select.poll") -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as goes_to:
            try:
                poll.unregister(goes_to)
                goes_to.send(str(os.waitstatus_to_exitcode(status)).encode())
            except (KeyError, BrokenPipeError):
                # Killed, because nobody waits for it.
                pass


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """The command, as its console script starts it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_FIRST_FREE, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    # Python looks at a stream when it opens it.
    sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    os.environ.update(request["env"])
    sys.argv = request["words"]
    # What a process that starts itself again starts.
    sys.orig_argv = [sys.executable, *request["words"]]
    ENTRIES[os.path.basename(request["words"][0])]()
    os._exit(255)


if __name__ == "__main__":
    main()
