"""Reading `config.toml` and what lies beside it: the JoinService encryption key and the serving CA.

None of them is a secret, and each is checked by what it says: a pin, or the rules of protocol.files.config."""

import errno
import os

from bcd.domain.model.failures import Failure, FixConfiguration, Message, Refused
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.files.config import ENCRYPTION_KEY_FILE, MAX_CONFIG_BYTES
from bcd.protocol.pki import seal


def read_config(path: str) -> bytes:
    """The file's bytes; FixConfiguration (NO_CONFIG, CONFIG_SYNTAX) or Refused (PERMISSION_DENIED)."""
    try:
        return _read(path)
    except OSError as error:
        raise _failure(error, path, FixConfiguration(Message.NO_CONFIG, path=path)) from None


def read_encryption_key(path: str, pins: Pins) -> seal.Recipient:
    """The key a token is sealed to, once it matches `join_encryption_key_pin`; FixConfiguration otherwise."""
    try:
        recipient = seal.decode_recipient(_read(path))
    except OSError as error:
        missing = FixConfiguration(Message.ENCRYPTION_KEY, path=path, why="no such file")
        raise _failure(error, path, missing) from None
    except seal.MalformedJwk as error:
        raise FixConfiguration(Message.ENCRYPTION_KEY, path=path, why=error) from None
    if not pins.match(recipient.spki):
        presented = Pin.of(recipient.spki)
        raise FixConfiguration(
            Message.ENCRYPTION_PIN, have=pins, path=os.path.basename(path) or ENCRYPTION_KEY_FILE, presented=presented
        )
    return recipient


def read_serving_ca(path: str) -> bytes | None:
    """The PEM beside the configuration, None when there is none to be had; its pin is checked where it is used."""
    try:
        return _read(path)
    except OSError:
        return None


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        data = b""
        while len(data) <= MAX_CONFIG_BYTES and (part := os.read(descriptor, MAX_CONFIG_BYTES + 1 - len(data))):
            data += part
        return data
    finally:
        os.close(descriptor)


def _failure(error: OSError, path: str, missing: Failure) -> Failure:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return missing
        case errno.EACCES | errno.EPERM:
            return Refused(Message.PERMISSION_DENIED, path=path)
        case _:
            return FixConfiguration(Message.CONFIG_SYNTAX, path=path, why=(error.strerror or "cannot read").lower())
