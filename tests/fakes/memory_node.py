"""A node's data directory on the memory disk: with an identity in it or without."""

import errno
import os
from dataclasses import dataclass, field

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.adapters.keys.file import FileKeys
from bcd.domain.lifecycle.load import Load
from bcd.domain.model.datadir import IDENTITY, KEY
from bcd.domain.model.identity import Identity, Trust
from bcd.ports.keys import KeyStore
from bcd.protocol.files import identity_json, node_key
from bcd.protocol.pki import certificates
from tests.fakes import pki
from tests.fakes.clock import ManualClock
from tests.fakes.joining import Recorded
from tests.fakes.memory_disk import File, MemoryDisk

PATH = "/var/lib/bcd"
TRUST = Trust(3, (pki.COMMAND_ROOT,), b"bundle", b"signed bundle")


def identity(**departures: object) -> Identity:
    """The identity whose leaf is `pki.leaf` with these departures; its key is `pki.NODE_KEY`."""
    chain = pki.chain(**departures)
    return Identity(certificates.parse_leaf(chain[0]), chain, TRUST, pki.NOW)


def record(number: int = 1001) -> bytes:
    """`node.key` of `pki.private_key(number)`; that of the leaf without a number."""
    return node_key.encode_file_key(pki.private_key(number))


class Disk(MemoryDisk):
    """A memory disk with files that may not be read by this user."""

    denied: frozenset[str] = frozenset()

    def open(self, directory: int, name: str) -> int:
        if name in self.denied:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return super().open(directory, name)


@dataclass
class MemoryNode:
    """`owner` is the `[helper] user`."""

    owner: Owner | None = None
    disk: Disk = field(default_factory=Disk)
    clock: ManualClock = field(default_factory=ManualClock)
    events: Recorded = field(default_factory=Recorded)
    keys: KeyStore = field(default_factory=FileKeys)

    def __post_init__(self) -> None:
        self.fs = LocalFs(PATH, self.clock, self.owner, self.disk)

    def plant(self, **files: bytes | File) -> "MemoryNode":
        """Files by name, with _ for each dot."""
        for name, data in files.items():
            self.put(name.replace("_", "."), data)
        return self

    def put(self, name: str, data: bytes | File) -> None:
        self.disk.plant(f"{PATH}/{name}", data if isinstance(data, File) else File(data))

    def joined(self, **departures: object) -> "MemoryNode":
        """With an identity and its key."""
        self.put(IDENTITY, identity_json.encode(identity(**departures)))
        self.put(KEY, record())
        return self

    @property
    def files(self) -> dict[str, bytes]:
        return self.disk.files(PATH)

    @property
    def load(self) -> Load:
        return Load(self.fs, self.keys, self.events, PATH)

    def told(self, level: str) -> list[str]:
        return [text for told, text, _ in self.events.lines if told == level]
