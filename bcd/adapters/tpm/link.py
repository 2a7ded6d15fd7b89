"""The seam inside the adapter: a command's bytes out, its reply's bytes in."""

from typing import Protocol

# The kernel's own bound for the slowest commands is longer, for all that bcd sends shorter.
BOUND_S = 30.0


class Late(Exception):
    """No reply within the bound, or the reply to the command before is still awaited."""


class Link(Protocol):
    def transmit(self, command: bytes) -> bytes:
        """The reply to `command`, at most 4096 bytes, as it came: short or empty if it was cut.

        OSError as the system gave it, after which the next command opens anew; Late when there was no reply in time,
        after which the late reply is never taken for another's and the kernel's device has lost what was loaded."""
        ...

    def close(self) -> None:
        """Gives the TPM back. The next command opens it again."""
        ...
