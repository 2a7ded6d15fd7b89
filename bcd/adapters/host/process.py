"""What a process that holds a secret does to itself (decision 16)."""

import ctypes
import os
import resource
import sys
from typing import NoReturn

_PR_SET_DUMPABLE = 4


def harden() -> None:
    """No core file, no ptrace by the same user, `/proc/<pid>` root's; new files are the owner's alone."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)


def restart_without(variable: str, flag: str, limit_bytes: int) -> NoReturn:
    """This program anew, `variable` gone from its environment and its value readable from the descriptor `flag` names.

    Deleting it from os.environ would not do: the block the kernel shows in /proc/<pid>/environ is the one the process
    was started with."""
    value = os.environb.pop(variable.encode())
    reader, writer = os.pipe()
    # Cut far below a pipe's capacity (64 KiB), so that this cannot block; one byte too many is still seen as too many.
    os.write(writer, value[:limit_bytes])
    os.close(writer)
    os.set_inheritable(reader, True)
    os.execv(sys.executable, [*sys.orig_argv, f"{flag}={reader}"])  # noqa: S606 - no shell


def restart_dropping(variable: str) -> NoReturn:
    """This program anew without `variable` and without what it held."""
    os.environb.pop(variable.encode())
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - no shell
