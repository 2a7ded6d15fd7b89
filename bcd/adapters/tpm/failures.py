"""What an errno and a response code of the TPM mean to an operator: the one table."""

import errno
import os

from bcd.domain.model.failures import Failure, FixConfiguration, Message, TryLater
from bcd.protocol.tpm2.codes import AGAIN, Code, Rc
from bcd.protocol.tpm2.structures import Handle

_ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR, errno.ECONNREFUSED})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_BUSY = frozenset({errno.EBUSY, errno.ETIME, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR})
# ENOTTY is a link's own word for something that is no TPM.
_NOT_ONE = frozenset({errno.ENOTTY, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})
_HIERARCHIES = {Handle.OWNER: "owner", Handle.ENDORSEMENT: "endorsement"}


class Refusal(Exception):
    """The TPM answered `command`, which named `handles`, with a code."""

    def __init__(self, command: str, handles: tuple[int, ...], code: Code) -> None:
        super().__init__(f"{command}: {code}")
        self.command = command
        self.handles = handles
        self.code = code


def of_errno(error: OSError, device: str, command: str, setting: str) -> Failure:
    """The failure for an error of the link; `setting` is where a person names the device."""
    if error.errno is None or error.errno in _NOT_ONE:
        # Without a number: a socket's path that is too long.
        why = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
        return FixConfiguration(Message.TPM_NOT_ONE, device=device, why=why, setting=setting)
    why = os.strerror(error.errno)
    if error.errno in _ABSENT:
        return TryLater(Message.TPM_ABSENT, device=device, why=why, setting=setting)
    if error.errno in _FORBIDDEN:
        return TryLater(Message.TPM_OPEN, device=device, why=why)
    if error.errno in _BUSY:
        return busy(device, why)
    return failed(device, command, why)


def of_code(refusal: Refusal, device: str) -> Failure:
    """The failure for a response code."""
    code = refusal.code
    hierarchy = _HIERARCHIES.get(Handle(refusal.handles[0])) if _permanent(refusal) else None
    match code.base:
        case Rc.INITIALIZE:
            return TryLater(Message.TPM_NOT_STARTED, device=device)
        case Rc.BAD_AUTH | Rc.AUTH_FAIL if hierarchy:
            return TryLater(Message.TPM_PASSWORD, hierarchy=hierarchy, device=device)
        case Rc.HIERARCHY if hierarchy:
            return TryLater(Message.TPM_HIERARCHY, hierarchy=hierarchy, device=device)
        case Rc.LOCKOUT:
            return TryLater(Message.TPM_LOCKOUT, device=device)
        case Rc.OBJECT_MEMORY | Rc.OBJECT_HANDLES:
            return TryLater(Message.TPM_FULL, device=device, what="object")
        case Rc.SESSION_MEMORY | Rc.SESSION_HANDLES:
            return TryLater(Message.TPM_FULL, device=device, what="session")
        case base if base in AGAIN:
            return busy(device, str(code))
    return failed(device, refusal.command, str(code))


def busy(device: str, why: str) -> Failure:
    return TryLater(Message.TPM_BUSY, device=device, why=why)


def failed(device: str, command: str, why: str) -> Failure:
    return TryLater(Message.TPM_FAILED, device=device, command=command, why=why)


def old(device: str) -> Failure:
    return TryLater(Message.TPM_OLD, device=device)


def _permanent(refusal: Refusal) -> bool:
    return bool(refusal.handles) and refusal.handles[0] in _HIERARCHIES
