"""The control plane's directory: its names, its lock, its keys."""

import errno
import os
import stat
from collections.abc import Callable
from typing import TypeVar

from cryptography import x509

from bcd.controlplane.adapters.files import atomic, config, lock
from bcd.controlplane.adapters.pki import authorities, keys
from bcd.controlplane.adapters.pki.authorities import Authority
from bcd.controlplane.domain.failures import FixDirectory, NotPermitted, TryLater
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import Settings

T = TypeVar("T")

ROOT_CA, ISSUING_CA, SERVING_CA = "node-root-ca", "issuing-ca", "serving-ca"
JOIN_SIGNING, JOIN_ENCRYPTION = "join-signing", "join-encryption"
SERVING = "serving"
STORE = "store.db"
SOCKET = "admin.sock"
ENDPOINTS = "endpoints.json"

_CERTIFIED = (ROOT_CA, ISSUING_CA, SERVING_CA, SERVING)
NAMES = frozenset(
    {f"{name}.key" for name in (*_CERTIFIED, JOIN_SIGNING, JOIN_ENCRYPTION)}
    | {f"{name}.pem" for name in _CERTIFIED}
    | {config.NAME, STORE, f"{STORE}-wal", f"{STORE}-shm", f"{STORE}-journal", SOCKET, ENDPOINTS}
)


class Directory:
    """An open directory, ours and private. Paths go through its descriptor, so a renamed directory stays the same."""

    def __init__(self, path: str) -> None:
        """FixDirectory or NotPermitted when it is not there, not ours or open to others."""
        self.path = path
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise FixDirectory(Message.NO_DIRECTORY, path=path) from None
        except NotADirectoryError:
            raise FixDirectory(Message.NOT_A_DIRECTORY, path=path) from None
        except OSError as error:
            raise translated(error, path) from None
        status = os.fstat(self.fd)
        if status.st_uid != os.geteuid():
            raise NotPermitted(Message.DIRECTORY_OWNER, path=path, owner=status.st_uid, user=os.geteuid())
        self._mode = stat.S_IMODE(status.st_mode)

    def check_private(self) -> None:
        """FixDirectory when others may look into it; of a directory that is no control plane's, that is what is said:
        nobody is to be told to close /tmp."""
        found = set(self.names())
        if found and not found & NAMES:
            raise FixDirectory(Message.NOT_A_CONTROL_PLANE, path=self.path)
        if self._mode & 0o077:
            raise FixDirectory(Message.DIRECTORY_LOOSE, path=self.path, mode=f"{self._mode:04o}", want="0700")

    def try_lock(self) -> bool:
        return lock.try_lock(self.fd)

    def holder(self) -> str:
        return lock.holder(self.fd)

    def close(self) -> None:
        os.close(self.fd)

    def inside(self, name: str) -> str:
        """A path for what takes paths alone (SQLite, Unix sockets): short, whatever the directory's own path is."""
        return f"/proc/self/fd/{self.fd}/{name}"

    def names(self) -> list[str]:
        return os.listdir(self.fd)

    def read(self, name: str) -> bytes | None:
        try:
            return atomic.read(self.fd, name)
        except OSError as error:
            raise translated(error, f"{self.path}/{name}") from None

    def write(self, name: str, data: bytes) -> None:
        try:
            atomic.write(self.fd, name, data)
        except OSError as error:
            raise translated(error, f"{self.path}/{name}") from None

    def settings(self) -> Settings:
        data = self.read(config.NAME)
        if data is None:
            raise FixDirectory(Message.NOT_INITIALIZED, path=self.path)
        try:
            return config.decode(data)
        except config.BadConfig as error:
            raise FixDirectory(
                Message.CONFIG_KEY, path=f"{self.path}/{config.NAME}", key=error.key, why=error.why
            ) from None

    def key(self, name: str) -> keys.PrivateKey:
        """FixDirectory when it is missing, broken or open to others."""
        file = f"{name}.key"
        data = self._needed(file)
        mode = stat.S_IMODE(os.stat(file, dir_fd=self.fd, follow_symlinks=False).st_mode)
        if mode & 0o077:
            raise FixDirectory(Message.DIRECTORY_LOOSE, path=f"{self.path}/{file}", mode=f"{mode:04o}", want="0600")
        return self._parsed(file, lambda: keys.from_pem(data))

    def certificate(self, name: str) -> x509.Certificate:
        file = f"{name}.pem"
        data = self._needed(file)
        return self._parsed(file, lambda: x509.load_pem_x509_certificate(data))

    def authority(self, name: str) -> Authority:
        key, certificate = self.key(name), self.certificate(name)
        if certificate.public_key() != key.public_key():
            raise FixDirectory(
                Message.FILE_BROKEN, path=f"{self.path}/{name}.pem", why=f"is not the certificate of {name}.key"
            )
        return authorities.Authority(certificate, key)

    def _needed(self, file: str) -> bytes:
        data = self.read(file)
        if data is None:
            raise FixDirectory(Message.FILE_BROKEN, path=f"{self.path}/{file}", why="is missing")
        return data

    def _parsed(self, file: str, parse: Callable[[], T]) -> T:
        try:
            return parse()
        except (ValueError, TypeError) as error:
            why = str(error).splitlines()[0][:120] if str(error) else "not PEM"
            raise FixDirectory(Message.FILE_BROKEN, path=f"{self.path}/{file}", why=why) from None


def translated(error: OSError, path: str) -> FixDirectory | NotPermitted | TryLater:
    """What the operating system said, as the documented message."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return NotPermitted(Message.PERMISSION_DENIED, path=path)
        case errno.ENOSPC | errno.EDQUOT:
            return TryLater(Message.NO_SPACE, path=path)
    return FixDirectory(Message.FILE_SYSTEM, path=path, what=error.strerror or str(error))
