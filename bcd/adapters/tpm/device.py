"""`Link` over the kernel's resource manager, /dev/tpmrm0."""

import errno
import os
import stat
import threading
from collections.abc import Callable

from bcd.adapters.tpm.link import BOUND_S, Late
from bcd.protocol.tpm2.commands import MAX_ANSWER_BYTES


class DeviceLink:
    """The device at `path`, opened at the first command and kept: what it loads lives as long as the descriptor."""

    def __init__(self, path: str, bound_s: float = BOUND_S, open_: Callable[[str, int], int] = os.open) -> None:
        self._path = path
        self._bound_s = bound_s
        self._open = open_
        self._descriptor: int | None = None
        self._under_way: _Exchange | None = None

    def transmit(self, command: bytes) -> bytes:
        if self._under_way is not None and not self._under_way.over.is_set():
            raise Late
        if self._descriptor is None:
            self._descriptor = self._opened()
        exchange = self._under_way = _Exchange(self._descriptor, command)
        threading.Thread(target=exchange.run, name="bcd-tpm", daemon=True).start()
        if not exchange.over.wait(self._bound_s):
            # What the late command loads goes with its descriptor: nobody learns that handle.
            self.close()
            raise Late
        if exchange.error is not None:
            # After TPM2_Clear the kernel answers EFAULT to everything on this descriptor (Linux 6.12: EINVAL); and a
            # device that comes back while its old descriptor is open gets another name.
            self.close()
            raise exchange.error
        return exchange.reply

    def _opened(self) -> int:
        # A serial port named by mistake would wait here for a carrier. Not kept: a TPM's reply is to be waited for.
        descriptor = self._open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind) or stat.S_ISBLK(kind):
            # A path by mistake: a command would be written over what is there.
            os.close(descriptor)
            raise OSError(errno.ENOTTY, "a file or a disk, not a TPM's device")
        return descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None and not (self._under_way is not None and self._under_way.leave()):
            os.close(descriptor)


class _Exchange:
    """One command and its reply, in a thread of its own.

    Nothing else bounds it: while the TPM is at work, the driver keeps every call on the descriptor waiting, poll() with
    a timeout as well, and no signal ends that."""

    def __init__(self, descriptor: int, command: bytes) -> None:
        self.over = threading.Event()
        self.reply = b""
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._command = command
        self._lock = threading.Lock()
        self._left = False

    def run(self) -> None:
        try:
            os.write(self._descriptor, self._command)
            # One read: older drivers drop what a first, shorter one leaves.
            self.reply = os.read(self._descriptor, MAX_ANSWER_BYTES)
        except OSError as error:
            self.error = error
        with self._lock:
            self.over.set()
            if self._left:
                os.close(self._descriptor)

    def leave(self) -> bool:
        """Whether this is still under way, and so closes the descriptor itself: its number must not become another
        file's before the reply is read."""
        with self._lock:
            self._left = not self.over.is_set()
            return self._left
