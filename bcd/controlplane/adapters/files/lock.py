"""The directory's lock: flock on its descriptor, so no lock file is left behind (decision 3)."""

import fcntl
import os
from itertools import pairwise

_COMMAND = "bcd-controlplane"


def try_lock(directory_fd: int) -> bool:
    """Whether this process holds the lock now; the kernel drops it with the process, however that ends."""
    try:
        fcntl.flock(directory_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(directory_fd: int) -> str:
    """Who holds it, as `bcd-controlplane (pid 4711)`; `another process` when /proc does not tell."""
    status = os.fstat(directory_fd)
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            # 1: FLOCK  ADVISORY  WRITE 4711 fd:00:131 0 EOF
            for words in map(str.split, locks):
                if "->" not in words and words[1:2] == ["FLOCK"] and words[5:6] == [wanted]:
                    return _name(int(words[4]))
    except (OSError, ValueError):
        pass
    return "another process"


def serves(name: str) -> bool:
    """Whether this holder is a server, which keeps the lock for as long as it runs."""
    return name.startswith(f"{_COMMAND} serve ")


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).decode(errors="replace").split("\0")
    except OSError:
        return f"process {pid}"
    for program, command in pairwise(words):
        # As a console script, or as python -m (whose word is the path of __main__.py).
        if program.endswith((f"/{_COMMAND}", "bcd.controlplane", "bcd/controlplane/__main__.py")):
            return f"{_COMMAND} {command} (pid {pid})"
    return f"process {pid}"
