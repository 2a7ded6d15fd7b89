"""The port `Supervisor`: systemd's datagrams over real sockets, and the one in memory."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.adapters.host.systemd import Systemd
from bcd.ports.supervisor import Supervisor
from tests.fakes.running_node import MemorySupervisor


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address)
        sock.settimeout(5)
        yield sock


@pytest.fixture(autouse=True)
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)


def test_its_lines_arrive_as_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with listening(path) as sock:
        Systemd().tell("READY=1", "STATUS=session up; né")
        assert sock.recv(4096) == "READY=1\nSTATUS=session up; né".encode()
        Systemd().tell("WATCHDOG=1")
        assert sock.recv(4096) == b"WATCHDOG=1"


def test_an_abstract_socket_is_written_with_an_at(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"bcd-test-{os.getpid()}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    with listening(f"\0{name}") as sock:
        Systemd().tell("STOPPING=1")
        assert sock.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("address", ["", "/nonexistent/notify", "@nobody-listens-there", "vsock:2:1234", "x" * 300])
def test_nobody_there_is_no_failure(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    Systemd().tell("READY=1")


def test_a_supervisor_that_takes_nothing_does_not_hold_the_node_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queue is full: a watchdog's datagram that waits would be the hang it is there to find."""
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with listening(path):
        for _ in range(2000):
            Systemd().tell("WATCHDOG=1")


def test_without_a_socket_nothing_is_sent() -> None:
    Systemd().tell("READY=1")


@pytest.mark.parametrize(
    ("usec", "pid", "limit_s"),
    [
        ("30000000", None, 30.0),
        ("30000000", "own", 30.0),
        ("1500000", "own", 1.5),
        ("30000000", "1", None),
        ("30000000", "", None),
        ("0", "own", None),
        ("-5", "own", None),
        ("soon", "own", None),
        (None, "own", None),
        (None, None, None),
    ],
)
def test_the_watchdogs_limit_is_for_this_process(
    usec: str | None, pid: str | None, limit_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if usec is not None:
        monkeypatch.setenv("WATCHDOG_USEC", usec)
    if pid is not None:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    assert Systemd().watchdog_s() == limit_s


def test_the_one_in_memory_is_one() -> None:
    supervisor: Supervisor = MemorySupervisor(5.0)
    supervisor.tell("READY=1", "STATUS=x")
    assert supervisor.watchdog_s() == 5.0
    assert MemorySupervisor().watchdog_s() is None
