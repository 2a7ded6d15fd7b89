"""Reading `config.toml` and what lies beside it. None of it is a secret, and each is checked by what it says: a pin, or
the rules of protocol.files.config."""

import errno
import os

from bcd.domain.model.failures import Failure, FixConfiguration, Message, Refused
from bcd.protocol.files.config import MAX_CONFIG_BYTES


def read_config(path: str) -> bytes:
    """The file's bytes; FixConfiguration (NO_CONFIG, CONFIG_SYNTAX) or Refused (PERMISSION_DENIED)."""
    try:
        return read(path)
    except OSError as error:
        raise failure(error, path, _no_config(error, path)) from None


def _no_config(error: OSError, path: str) -> Failure:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return FixConfiguration(Message.NO_CONFIG, path=path)
    is_directory = error.errno == errno.EISDIR
    why = "is a directory: name the file in it with --config" if is_directory else words(error)
    return FixConfiguration(Message.CONFIG_SYNTAX, path=path, why=why)


def read_serving_ca(path: str) -> bytes | None:
    """The PEM beside the configuration, None when there is none to be had; its pin is checked where it is used."""
    try:
        return read(path)
    except OSError:
        return None


def read(path: str) -> bytes:
    """The file's first MAX_CONFIG_BYTES + 1 bytes; OSError as the system has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        data = b""
        while len(data) <= MAX_CONFIG_BYTES and (part := os.read(descriptor, MAX_CONFIG_BYTES + 1 - len(data))):
            data += part
        return data
    finally:
        os.close(descriptor)


def failure(error: OSError, path: str, otherwise: Failure) -> Failure:
    """What `error` means to an operator; `otherwise` when it is not about permission."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refused(Message.PERMISSION_DENIED, path=path)
    return otherwise


def words(error: OSError) -> str:
    """The system's own, to stand in a sentence."""
    return (error.strerror or "cannot be read").lower()
