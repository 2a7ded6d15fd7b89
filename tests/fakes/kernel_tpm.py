"""A TPM by the kernel's own two devices, with the commands that bcd never sends. For the tests in a guest."""

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bcd.protocol.tpm2 import commands
from bcd.protocol.tpm2.commands import MAX_ANSWER_BYTES, CreatePrimaryIn, Empty, StartAuthSessionIn
from bcd.protocol.tpm2.structures import Algorithm, Handle, Public, SensitiveCreate, Symmetric

# One space of objects a descriptor, by the resource manager; and the TPM itself, which one process at a time has.
MANAGED = "/dev/tpmrm0"
BARE = "/dev/tpm0"
# TPM2_Clear by the lockout hierarchy, whose password is empty.
CLEAR = bytes.fromhex("80020000001b000001264000000a00000009400000090000000000")
# Handle types (Part 2, 7.2). A session that the kernel has swapped out is an active one.
TRANSIENT, PERSISTENT, NV, LOADED_SESSION, ACTIVE_SESSION = 0x80000000, 0x81000000, 0x01000000, 0x02000000, 0x03000000
_WAIT_MS = 10_000

T = TypeVar("T")


class Device:
    """A descriptor, and on it what the kernel does: nothing here is bcd's."""

    def __init__(self, path: str = MANAGED, flags: int = os.O_NONBLOCK) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags)

    def close(self) -> None:
        os.close(self.descriptor)

    def write(self, command: bytes) -> int:
        return os.write(self.descriptor, command)

    def read(self, size_bytes: int = MAX_ANSWER_BYTES) -> bytes:
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.poll(_WAIT_MS)
        return os.read(self.descriptor, size_bytes)

    def code(self, command: bytes) -> int:
        """The response code to `command`."""
        self.write(command)
        return int.from_bytes(self.read()[6:10])

    def handles(self, kind: int) -> list[str]:
        """TPM2_GetCapability(TPM_CAP_HANDLES): at most 64 of a kind."""
        self.write(struct.pack(">HIIIII", 0x8001, 22, 0x17A, 1, kind, 64))
        listed = self.read()[19:]
        return [f"0x{handle:08x}" for (handle,) in struct.iter_unpack(">I", listed)]


@contextmanager
def opened(path: str = MANAGED, flags: int = os.O_NONBLOCK) -> Iterator[Device]:
    device = Device(path, flags)
    try:
        yield device
    finally:
        device.close()


def bare() -> dict[str, list[str]]:
    """What the TPM holds, by kind: the kernel swaps everything of its clients out between two commands."""
    kinds = {
        "transient": TRANSIENT,
        "persistent": PERSISTENT,
        "nv": NV,
        "loaded sessions": LOADED_SESSION,
        "active sessions": ACTIVE_SESSION,
    }
    with opened(BARE) as device:
        return {name: device.handles(kind) for name, kind in kinds.items()}


def clear() -> None:
    with opened(BARE) as device:
        assert device.code(CLEAR) == 0


def create_primary(template: Public, hierarchy: Handle = Handle.OWNER) -> bytes:
    wanted = CreatePrimaryIn(SensitiveCreate(b"", b""), template, b"", ())
    return commands.write_command(commands.CREATE_PRIMARY, (hierarchy,), wanted)


def read_public(handle: int) -> bytes:
    return commands.write_command(commands.READ_PUBLIC, (handle,), Empty())


def start_session() -> bytes:
    wanted = StartAuthSessionIn(bytes(16), b"", 1, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
    return commands.write_command(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted)


def drop_capabilities() -> None:
    """This process stays root, and may no more than its files' owners let it."""
    # _LINUX_CAPABILITY_VERSION_3, this process; effective, permitted and inheritable, twice 32 bits.
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0


def errno_of(step: Callable[[], object]) -> str:
    """The name of the error that `step` ends with; empty when it succeeds."""
    try:
        step()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return ""


@contextmanager
def unbound() -> Iterator[None]:
    """The driver lets the TPM go, and takes it again."""
    [device] = [path.resolve() for path in Path("/sys/class/tpm").glob("tpm*/device")]
    driver = (device / "driver").resolve()
    (driver / "unbind").write_text(device.name)
    try:
        yield
    finally:
        (driver / "bind").write_text(device.name)


def managed() -> str:
    """Where the resource manager is now."""
    [path] = Path("/dev").glob("tpmrm*")
    return str(path)
