"""`init`: every key once, the store, and the configuration last. Killed anywhere, the next run goes on from there."""

import os
from collections.abc import Callable
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bcd.controlplane.adapters.files import atomic, config
from bcd.controlplane.adapters.files import directory as d
from bcd.controlplane.adapters.files.directory import Directory, translated
from bcd.controlplane.adapters.pki import authorities, keys
from bcd.controlplane.domain.failures import FixDirectory, NotPermitted, TryLater
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import Settings


def open_new(path: str) -> Directory:
    """The directory, made if need be, 0700, locked, without foreign files and not complete yet."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise translated(error, path) from None
    directory = Directory(path)
    if not directory.try_lock():
        raise TryLater(Message.LOCKED, path=path, holder=directory.holder())
    if directory.read(config.NAME) is not None:
        raise NotPermitted(Message.ALREADY_INITIALIZED, path=path, domain=directory.settings().trust_domain)
    atomic.remove_leftovers(directory.fd)
    for name in sorted(set(directory.names()) - d.NAMES):
        raise FixDirectory(Message.NOT_EMPTY, path=path, name=name)
    os.fchmod(directory.fd, 0o700)
    return directory


def make_keys(directory: Directory, now: datetime) -> None:
    """A key is durable before the certificate that names it, and what is there already stays."""
    for name in (d.ROOT_CA, d.ISSUING_CA, d.SERVING_CA, d.JOIN_SIGNING, d.JOIN_ENCRYPTION):
        if directory.read(f"{name}.key") is None:
            directory.write(f"{name}.key", keys.to_pem(keys.new_key()))
    _certificate(
        directory,
        d.ROOT_CA,
        lambda: authorities.self_issued("node root CA", directory.key(d.ROOT_CA), now, path_length=1),
    )
    _certificate(
        directory,
        d.ISSUING_CA,
        lambda: authorities.issued_by(
            directory.authority(d.ROOT_CA), "node issuing CA", directory.key(d.ISSUING_CA), now
        ),
    )
    _certificate(
        directory,
        d.SERVING_CA,
        lambda: authorities.self_issued("serving CA", directory.key(d.SERVING_CA), now, path_length=0),
    )


def complete(directory: Directory, settings: Settings) -> None:
    """Last of all: from here on it is a control plane."""
    directory.write(config.NAME, config.encode(settings))


def _certificate(directory: Directory, name: str, make: Callable[[], x509.Certificate]) -> None:
    if directory.read(f"{name}.pem") is None:
        directory.write(f"{name}.pem", make().public_bytes(serialization.Encoding.PEM))
