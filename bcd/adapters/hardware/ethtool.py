"""The permanent address of a network device, as its driver gave it when the device was registered.

A bond gives all its ports one address, and sysfs shows that; only the driver still knows each port's own.
"""

import array
import fcntl
import socket
import struct
from typing import Protocol

# linux/sockios.h, linux/ethtool.h, linux/netdevice.h
SIOCETHTOOL = 0x8946
ETHTOOL_GPERMADDR = 0x20
MAX_ADDR_LEN_BYTES = 32
IFNAMSIZ_BYTES = 16
MAC_BYTES = 6

# struct ethtool_perm_addr: command and room or length in bytes, in the machine's order; then the address.
_PERM_ADDR = struct.Struct(f"=II{MAX_ADDR_LEN_BYTES}s")
# struct ifreq: the name, and a union of 24 bytes (16 on 32-bit machines) that holds a pointer here. The kernel copies
# all of it, so a shorter one would read past the end.
_IFREQ = struct.Struct(f"@{IFNAMSIZ_BYTES}sP16x")


class PermanentAddress(Protocol):
    def __call__(self, device: str, /) -> str:
        """The permanent MAC of the network device of that name, `aa:bb:cc:dd:ee:ff`; empty when it has none, or none
        is known. May be all zeros. Never fails."""
        ...


def ask_driver(device: str) -> str:
    """`PermanentAddress` of the network namespace this process is in. Needs no privilege."""
    room = array.array("B", encode_request())
    address, _ = room.buffer_info()
    try:
        request = encode_ifreq(device, address)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)
    except (OSError, ValueError):
        return ""
    return decode_answer(room.tobytes())


def ask_nobody(_device: str) -> str:
    """`PermanentAddress` of a tree of files that is not this kernel's."""
    return ""


def encode_ifreq(device: str, address: int) -> bytes:
    """struct ifreq pointing at `address`. ValueError when the name does not fit: a cut one is another device's."""
    name = device.encode("utf-8", "surrogateescape")
    if not 0 < len(name) < IFNAMSIZ_BYTES or b"\0" in name:
        raise ValueError(f"no name of a network device: {device!r}")
    return _IFREQ.pack(name, address)


def encode_request() -> bytes:
    """struct ethtool_perm_addr with the room for any address."""
    return _PERM_ADDR.pack(ETHTOOL_GPERMADDR, MAX_ADDR_LEN_BYTES, b"")


def decode_answer(answer: bytes) -> str:
    """The MAC in struct ethtool_perm_addr; empty when the address has another length (InfiniBand: 20 bytes)."""
    if len(answer) != _PERM_ADDR.size:
        return ""
    command, length_bytes, address = _PERM_ADDR.unpack(answer)
    if command != ETHTOOL_GPERMADDR or length_bytes != MAC_BYTES:
        return ""
    return bytes(address[:MAC_BYTES]).hex(":")
