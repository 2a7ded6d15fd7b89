"""sd_notify(3): telling the service manager that the server is ready."""

import os
import socket


def notify(state: str) -> None:
    """Sends `state` (`READY=1`) where NOTIFY_SOCKET says; without a service manager nothing happens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return
    # A leading @ is an abstract socket, whose name begins with a zero byte.
    name = f"\0{address[1:]}" if address[0] == "@" else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
        try:
            connection.sendto(state.encode(), name)
        except OSError:
            # The manager's own timeout says what is wrong better than we could.
            pass
