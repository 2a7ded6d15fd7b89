"""Telling systemd (sd_notify(3), sd_watchdog_enabled(3)); silent where nobody asked."""

import os
import socket

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG_US = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"


class Systemd:
    def __init__(self) -> None:
        self._address = os.environ.get(ADDRESS, "")
        if self._address.startswith("@"):
            # An abstract socket, written with @ for its leading zero byte.
            self._address = "\0" + self._address[1:]

    def watchdog_s(self) -> float | None:
        """Seconds within which systemd wants to hear of this process, or None."""
        try:
            pid = int(os.environ.get(WATCHDOG_PID, os.getpid()))
            limit = int(os.environ[WATCHDOG_US])
        except (KeyError, ValueError):
            return None
        return limit / 1_000_000 if limit > 0 and pid == os.getpid() else None

    def tell(self, *lines: str) -> None:
        """`READY=1`, `STATUS=…`, `WATCHDOG=1`, `STOPPING=1`. Lost without a word when nobody listens."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                # A supervisor that does not read must not hold up what it watches.
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return
