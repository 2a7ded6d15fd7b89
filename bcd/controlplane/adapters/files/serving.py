"""The serving certificate: made when it is missing, near its end, or for other hosts than are configured."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bcd.controlplane.adapters.files.directory import SERVING, SERVING_CA, Directory
from bcd.controlplane.adapters.pki import keys, leaves
from bcd.controlplane.domain.failures import Failure
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.log import Log

T = TypeVar("T")
LOOK_EVERY = timedelta(hours=1)


class ServingCertificate:
    """Key and chain, PEM both, looked at anew every hour while the server runs."""

    def __init__(self, directory: Directory, hosts: tuple[str, ...], clock: WallClock, log: Log) -> None:
        self._directory = directory
        self._hosts = hosts
        self._clock = clock
        self._log = log
        self._looked = clock.now()
        self._pair = serving_pair(directory, hosts, self._looked)
        # gRPC asks on a thread of its own for every handshake.
        self._lock = threading.Lock()

    def __call__(self) -> tuple[bytes, bytes]:
        with self._lock:
            now = self._clock.now()
            if abs(now - self._looked) >= LOOK_EVERY:
                self._looked = now
                try:
                    self._pair = serving_pair(self._directory, self._hosts, now)
                except Failure as failure:
                    self._log.fault("the serving certificate was not renewed", failure)
            return self._pair


def serving_pair(directory: Directory, hosts: tuple[str, ...], now: datetime) -> tuple[bytes, bytes]:
    """Key and chain (leaf, then serving CA), PEM. A pair that will do is kept; the leaf is stored after its key."""
    authority = directory.authority(SERVING_CA)
    stored = directory.read(f"{SERVING}.key")
    key = _or_none(keys.from_pem, stored)
    leaf = _or_none(x509.load_pem_x509_certificate, directory.read(f"{SERVING}.pem"))
    if key is None or leaf is None or not leaves.still_serves(leaf, key, authority, hosts, now):
        key = keys.new_key()
        leaf = leaves.serving_leaf(authority, key, hosts, now)
        directory.write(f"{SERVING}.key", keys.to_pem(key))
        directory.write(f"{SERVING}.pem", leaf.public_bytes(serialization.Encoding.PEM))
    return keys.to_pem(key), leaf.public_bytes(serialization.Encoding.PEM) + authority.pem


def _or_none(parse: Callable[[bytes], T], data: bytes | None) -> T | None:
    try:
        return parse(data) if data is not None else None
    except (ValueError, TypeError):
        return None
