"""What an errno means to an operator: the one table (tests walk every errno through it)."""

import errno
import os

from bcd.domain.model.failures import Failure, FixConfiguration, Message, Refused, TryLater


def translate(error: OSError, path: str, free_bytes: int | None) -> Failure:
    """The failure for `error` at `path`; `free_bytes` of the file system where it is known."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return TryLater(Message.NO_SPACE, path=path, free="?" if free_bytes is None else free_bytes)
        case errno.EROFS:
            return TryLater(Message.READ_ONLY, path=os.path.dirname(path) or path)
        case errno.EACCES | errno.EPERM:
            return Refused(Message.PERMISSION_DENIED, path=path)
        case errno.ELOOP | errno.EISDIR | errno.ENXIO:
            return FixConfiguration(Message.NOT_A_FILE, path=path)
        case errno.ENOTDIR:
            return FixConfiguration(Message.NOT_A_DIRECTORY, path=path)
        case _:
            return TryLater(Message.FILE_SYSTEM, path=path, what=error.strerror or f"errno {error.errno}")
