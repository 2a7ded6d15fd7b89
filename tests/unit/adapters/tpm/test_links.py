"""The two links: one read, a bound, no late reply for another's, and opened anew after an error or a late reply."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.device import DeviceLink
from bcd.adapters.tpm.link import Late
from bcd.adapters.tpm.stream import SocketLink
from bcd.domain.model.failures import Message

COMMAND = b"\x80\x01\x00\x00\x00\x0a\x00\x00\x01\x7e"
SHORT_S = 0.2
LONG_S = 10.0


class Device:
    """A device that gives each reply to one read: what a shorter read leaves is dropped, as the driver does."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, int]] = []
        self.ours: list[socket.socket] = []
        self.when_open: Callable[[], None] = lambda: None

    def open(self, path: str, flags: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(LONG_S)
        # As the system does it.
        theirs.setblocking(not flags & os.O_NONBLOCK)
        self.opened.append((path, flags))
        self.ours.append(ours)
        self.when_open()
        return theirs.detach()

    def replies(self, reply: bytes) -> None:
        self.ours[-1].send(reply)

    def close(self) -> None:
        for ours in self.ours:
            ours.close()


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.close()


def link(device: Device, bound_s: float = LONG_S) -> DeviceLink:
    return DeviceLink("/dev/tpmrm7", bound_s, device.open)


@contextmanager
def answering(device: Device, *replies: bytes) -> Iterator[list[bytes]]:
    """Answers the device's commands in a thread: the first opening makes the socket, so it waits for that."""
    got: list[bytes] = []

    def serve() -> None:
        for reply in replies:
            got.append(device.ours[-1].recv(4096))
            device.ours[-1].send(reply)

    thread = threading.Thread(target=serve)
    device.when_open = thread.start
    yield got
    thread.join(LONG_S)


def test_a_reply_of_4096_bytes_comes_in_one_read(device: Device) -> None:
    """B32."""
    reply = os.urandom(4096)
    with answering(device, reply, b"second") as got:
        tpm = link(device)
        assert tpm.transmit(COMMAND) == reply
        assert tpm.transmit(COMMAND + b"2") == b"second"
        tpm.close()
    assert got == [COMMAND, COMMAND + b"2"]
    [(path, flags)] = device.opened
    assert path == "/dev/tpmrm7"
    assert flags & os.O_CLOEXEC


def test_opening_waits_for_nobody_and_a_reply_is_waited_for(device: Device) -> None:
    """A serial port waits for a carrier, with no bound: whoever named one by mistake is told so."""
    asked = threading.Event()

    def serve() -> None:
        device.ours[0].recv(4096)
        # The link's thread is in its read, or about to be: without waiting it would find nothing.
        asked.wait(SHORT_S)
        device.replies(b"reply")

    thread = threading.Thread(target=serve)
    device.when_open = thread.start
    tpm = link(device)
    assert tpm.transmit(COMMAND) == b"reply"
    thread.join(LONG_S)
    [(_, flags)] = device.opened
    assert flags & os.O_NONBLOCK
    tpm.close()


def test_no_command_is_written_over_a_file_that_is_named_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"what was there")
    opened: list[int] = []

    def open_(name: str, flags: int) -> int:
        opened.append(os.open(name, flags))
        return opened[-1]

    tpm = DeviceLink(str(path), LONG_S, open_)
    for _ in range(2):
        with pytest.raises(OSError, match="not a TPM's device") as raised:
            tpm.transmit(COMMAND)
        assert raised.value.errno == errno.ENOTTY
    assert path.read_bytes() == b"what was there"
    assert opened[0] == opened[1], "and it was closed"
    tpm.close()


def test_a_late_reply_ends_with_its_descriptor_and_the_next_command_opens(device: Device) -> None:
    """B39. So does what the late command loaded, whose handle nobody knows."""
    tpm = link(device, SHORT_S)
    with pytest.raises(Late):
        tpm.transmit(COMMAND)
    with pytest.raises(Late):
        tpm.transmit(b"never sent")
    [ours] = device.ours
    assert ours.recv(4096) == COMMAND
    ours.send(b"late")
    assert ours.recv(4096) == b"", "closed, once the reply was there"
    device.when_open = lambda: device.replies(b"its own")
    assert tpm.transmit(b"next") == b"its own"
    assert device.ours[1].recv(4096) == b"next"
    tpm.close()


def test_a_descriptor_that_is_closed_under_a_command_stays_open_until_the_reply(device: Device) -> None:
    """Its number would be another file's, and that file's content the reply."""
    tpm = link(device)
    got: list[bytes] = []
    caller = threading.Thread(target=lambda: got.append(tpm.transmit(COMMAND)))
    caller.start()
    while not device.ours:
        caller.join(0.001)
    [ours] = device.ours
    assert ours.recv(4096) == COMMAND
    tpm.close()
    ours.send(b"reply")
    caller.join(LONG_S)
    assert got == [b"reply"]
    assert ours.recv(4096) == b""


def test_an_error_at_opening_is_the_systems_and_the_next_command_opens(device: Device) -> None:
    fails = iter([True, False])

    def open_(path: str, flags: int) -> int:
        if next(fails):
            raise OSError(errno.EBUSY, "")
        return device.open(path, flags)

    tpm = DeviceLink("/dev/tpmrm7", SHORT_S, open_)
    with pytest.raises(OSError) as caught:
        tpm.transmit(COMMAND)
    assert caught.value.errno == errno.EBUSY
    with pytest.raises(Late):
        tpm.transmit(COMMAND)
    tpm.close()


def test_after_an_error_on_the_descriptor_it_is_opened_anew(device: Device) -> None:
    """As after TPM2_Clear, when the kernel answers EFAULT to everything on it."""
    tpm = link(device)
    device.when_open = lambda: device.replies(b"a reply")
    assert tpm.transmit(COMMAND) == b"a reply"
    device.ours[0].close()
    with pytest.raises(ConnectionError):
        tpm.transmit(COMMAND)
    assert tpm.transmit(COMMAND) == b"a reply"
    assert len(device.opened) == 2
    tpm.close()
    tpm.close()


def test_a_device_that_ends_gives_an_empty_reply(device: Device) -> None:
    with answering(device, b""):
        tpm = link(device)
        assert tpm.transmit(COMMAND) == b""
        tpm.close()


@contextmanager
def server(folder: Path, *talks: Callable[[socket.socket], None]) -> Iterator[str]:
    """One connection after the other, each with its talk."""
    path = folder / "tpm"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            for talk in talks:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(LONG_S)
                    talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield str(path)
        thread.join(LONG_S)


def in_pieces(connection: socket.socket) -> None:
    assert connection.recv(4096) == COMMAND
    for byte in b"\x80\x01\x00\x00\x00\x0c\x00\x00\x00\x00ab":
        connection.sendall(bytes([byte]))


def test_a_reply_in_pieces_is_read_to_its_end(tmp_path: Path) -> None:
    with server(tmp_path, in_pieces) as path:
        tpm = SocketLink(path, LONG_S)
        assert tpm.transmit(COMMAND) == b"\x80\x01\x00\x00\x00\x0c\x00\x00\x00\x00ab"
        tpm.close()


@pytest.mark.parametrize(
    "reply",
    [b"", b"\x80\x01", b"\x80\x01\x00\x00\x00\x20\x00\x00\x00\x00", b"\x80\x01\xff\xff\xff\xff\0\0\0\0" + b"x" * 9],
)
def test_a_cut_reply_comes_as_it_is_and_the_next_command_connects_anew(reply: bytes, tmp_path: Path) -> None:
    def cut(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(reply)

    with server(tmp_path, cut, in_pieces) as path:
        tpm = SocketLink(path, LONG_S)
        assert tpm.transmit(COMMAND) == reply
        assert tpm.transmit(COMMAND).endswith(b"ab")
        tpm.close()


def test_no_more_than_4096_bytes_are_taken(tmp_path: Path) -> None:
    def flood(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"\x80\x01\xff\xff\xff\xff" + bytes(8000))

    with server(tmp_path, flood) as path:
        tpm = SocketLink(path, LONG_S)
        assert len(tpm.transmit(COMMAND)) == 4096
        tpm.close()


def test_a_late_reply_of_a_socket_goes_to_nobody(tmp_path: Path) -> None:
    gone = threading.Event()

    def late(connection: socket.socket) -> None:
        connection.recv(4096)
        gone.wait(LONG_S)

    with server(tmp_path, late, in_pieces) as path:
        tpm = SocketLink(path, SHORT_S)
        with pytest.raises(Late):
            tpm.transmit(COMMAND)
        gone.set()
        patient = SocketLink(path, LONG_S)
        assert patient.transmit(COMMAND).endswith(b"ab")
        patient.close()


def test_a_reply_that_drips_in_is_late_when_its_time_is_over(tmp_path: Path) -> None:
    """The bound is the command's, not each byte's."""
    over = threading.Event()

    def drips(connection: socket.socket) -> None:
        connection.recv(4096)
        with suppress(BrokenPipeError):
            for byte in b"\x80\x01\x00\x00\x00\x0c\x00\x00\x00\x00ab":
                connection.sendall(bytes([byte]))
                over.wait(SHORT_S / 2)

    with server(tmp_path, drips) as path:
        tpm = SocketLink(path, SHORT_S)
        with pytest.raises(Late):
            tpm.transmit(COMMAND)
        over.set()


def test_a_socket_that_takes_no_more_connections_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """Somebody else's is served, and others wait before us."""
    path = str(tmp_path / "tpm")
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            SocketLink(path, SHORT_S).transmit(COMMAND)
        except (Late, OSError) as error:
            ended.append(error)

    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as before:
        listener.bind(path)
        listener.listen(0)
        before.connect(path)
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(LONG_S)
    [error] = ended
    assert isinstance(error, Late) or failures.of_errno(error, path, "", "").message is Message.TPM_BUSY


def test_the_reply_to_a_command_that_ctrl_c_ends_is_not_taken_for_that_to_the_next(tmp_path: Path) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupts(connection: socket.socket) -> None:
        connection.recv(4096)
        signal.pthread_kill(main, signal.SIGINT)
        # Where a client that keeps the connection would find it.
        connection.recv(4096)

    with server(tmp_path, interrupts, in_pieces) as path:
        tpm = SocketLink(path, LONG_S)
        with pytest.raises(KeyboardInterrupt):
            tpm.transmit(COMMAND)
        assert tpm.transmit(COMMAND).endswith(b"ab")
        tpm.close()


def test_a_socket_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SocketLink(str(tmp_path / "none")).transmit(COMMAND)
