"""Reading small files that may be anything: bounded, never blocking, never failing."""

import itertools
import os
import stat

# What the kernel shows in one sysfs file is at most a page.
MAX_FILE_BYTES = 4096
# A host of containers has thousands of virtual devices; this bounds a directory gone mad.
MAX_ENTRIES = 65_536


def read_text(path: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The UTF-8 text of a regular file; empty when it is none, unreadable, longer than `max_bytes` or not UTF-8.

    A longer file is left out whole: half a serial number is another machine's.
    """
    try:
        # Looked at before it is opened: opening a device does things.
        if not stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
            return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            # Another may have come in its place.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            content = _read(descriptor, max_bytes + 1)
        finally:
            os.close(descriptor)
        return content.decode("utf-8") if len(content) <= max_bytes else ""
    except (OSError, ValueError):
        return ""


def names_in(directory: str) -> list[str]:
    """The names in a directory, sorted; none when there is no such directory."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MAX_ENTRIES))
    except (OSError, ValueError):
        return []


def _read(descriptor: int, max_bytes: int) -> bytes:
    content = b""
    while len(content) < max_bytes and (more := os.read(descriptor, max_bytes - len(content))):
        content += more
    return content
