"""Commands run as processes that are forked, and not started: see `tests.fakes.warm_server`.

The first of a kind is started as an operator starts it, and so is whatever lives long, reads much, or is told something
by its environment that Python or a library reads only when it starts.
"""

import atexit
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

PROGRAMS = ("bcd", "bcd-fakehw", "bcd-controlplane")
# Others see them in the list of processes.
LONG_LIVED = ("node", "serve")
# Words that only name a command together with the next one.
GROUPS = ("token", "nodes", "trust", "ek-roots", "ek", "refusals", "approvals", "tpm")
# What a pipe takes before anybody reads.
PIPE_BYTES = 1 << 16

Done = tuple[int, bytes, bytes]


@dataclass
class Warm:
    """The process that forks, for all commands that start in the same surroundings."""

    process: "subprocess.Popen[bytes]"
    requests: socket.socket

    @classmethod
    def start(cls) -> "Warm":
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            words = [sys.executable, "-P", str(Path(__file__).with_name("warm_server.py"))]
            process = subprocess.Popen(words, env=_inherited(), stdin=its, stdout=subprocess.DEVNULL)
        made = cls(process, ours)
        atexit.register(made.end)
        return made

    def end(self) -> None:
        self.requests.close()
        self.process.wait(60)

    def run(self, words: Sequence[str], stdin: bytes | int, extra: Mapping[str, str], timeout_s: float) -> Done:
        """Exit status, standard output, standard error. subprocess.TimeoutExpired when it was killed after that long.

        `words[0]` is the path of the console script."""
        if stdin == subprocess.DEVNULL:
            with open(os.devnull, "rb") as nothing:
                return self.run(words, nothing.fileno(), extra, timeout_s)
        asked = json.dumps({"words": [*words], "env": {**extra}}).encode()
        ends = [*os.pipe(), *os.pipe(), *os.pipe()]
        its_in, in_, out, its_out, err, its_err = ends
        status, its_status = socket.socketpair()
        try:
            given = stdin if isinstance(stdin, int) else its_in
            socket.send_fds(self.requests, [asked], [given, its_out, its_err, its_status.fileno()])
            for end in (its_in, its_out, its_err):
                os.close(end)
                ends.remove(end)
            its_status.close()
            if isinstance(stdin, bytes):
                try:
                    os.write(in_, stdin)
                except BrokenPipeError:
                    # It ended without reading.
                    pass
            os.close(in_)
            ends.remove(in_)
            said = _until_the_end([out, err, status.fileno()], time.monotonic() + timeout_s)
        finally:
            for end in ends:
                os.close(end)
            its_status.close()
            status.close()
        if said is None:
            raise subprocess.TimeoutExpired([*words], timeout_s)
        wrote, complained, code = said
        assert code, f"the process that forks is gone: {self.process.poll()}"
        return int(code), wrote, complained


def _until_the_end(descriptors: list[int], until_s: float) -> list[bytes] | None:
    """All that comes from each of them; None when one of them has not ended by then."""
    said = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as open_:
        for descriptor in descriptors:
            open_.register(descriptor, selectors.EVENT_READ)
        while open_.get_map():
            ready = open_.select(max(0.0, until_s - time.monotonic()))
            if not ready:
                return None
            for key, _ in ready:
                more = os.read(key.fd, PIPE_BYTES)
                said[key.fd] += more
                if not more:
                    open_.unregister(key.fd)
    return list(said.values())


def _inherited() -> dict[str, str]:
    """What every command here inherits. pytest tells in a variable which test runs."""
    own = ("BCD_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


_lock = Lock()
_by_surroundings: dict[tuple[object, ...], Warm] = {}
_seen: set[tuple[str, ...]] = set()


def warm_for(words: Sequence[str], stdin: bytes | int, extra: Mapping[str, str]) -> Warm | None:
    """Who runs this command; None when it is to be started."""
    if words[0] not in PROGRAMS or (len(words) > 1 and words[1] in LONG_LIVED):
        return None
    if not all(name.startswith("BCD_") for name in extra) or (isinstance(stdin, bytes) and len(stdin) > PIPE_BYTES):
        return None
    # Mounts and network are the thread's own.
    spaces = [os.readlink(f"/proc/thread-self/ns/{name}") for name in ("mnt", "net")]
    surroundings = (*spaces, os.getcwd(), *sorted(_inherited().items()))
    kind = tuple(words[: 3 if len(words) > 1 and words[1] in GROUPS else 2])
    with _lock:
        if kind not in _seen:
            _seen.add(kind)
            return None
        if surroundings not in _by_surroundings:
            _by_surroundings[surroundings] = Warm.start()
        return _by_surroundings[surroundings]
