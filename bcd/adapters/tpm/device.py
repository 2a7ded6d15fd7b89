"""`Link` over the kernel's resource manager, /dev/tpmrm0."""

import os
import select
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
        self._late = False

    def transmit(self, command: bytes) -> bytes:
        if self._descriptor is None:
            # Blocking, a write returns when the TPM is done, whenever that is.
            self._descriptor = self._open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._drain(self._descriptor)
            os.write(self._descriptor, command)
            return self._reply(self._descriptor)
        except OSError:
            # After TPM2_Clear the kernel answers EFAULT to everything on this descriptor.
            self.close()
            raise

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None
        self._late = False

    def _drain(self, descriptor: int) -> None:
        if self._late:
            if not _readable(descriptor, 0):
                raise Late
            self._late = False
            os.read(descriptor, MAX_ANSWER_BYTES)

    def _reply(self, descriptor: int) -> bytes:
        if not _readable(descriptor, self._bound_s):
            self._late = True
            raise Late
        # One read: the driver drops what a first, shorter one leaves.
        return os.read(descriptor, MAX_ANSWER_BYTES)


def _readable(descriptor: int, bound_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(bound_s * 1000))
