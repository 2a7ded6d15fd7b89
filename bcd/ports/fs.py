"""Port: one directory of bcd's own, held by its descriptor."""

from contextlib import AbstractContextManager
from typing import Protocol

from bcd.domain.model.datadir import Directory, Entry


class Fs(Protocol):
    """One directory's files by plain names (no separators). No symbolic link is ever followed.

    Failures, all with the path: TryLater (NO_SPACE, READ_ONLY, FILE_SYSTEM, LOCKED), Refused (PERMISSION_DENIED),
    FixConfiguration (NOT_A_FILE, NOT_A_DIRECTORY). Whatever changes the directory is durable on return: it survives
    a power cut the moment after.
    """

    def look(self) -> Directory | None:
        """The directory as it is now; None when there is none."""
        ...

    def entries(self) -> tuple[Entry, ...]:
        """All names in it, sorted; empty when there is no directory."""
        ...

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """The whole file; None when there is none. Longer than `limit_bytes`: the first `limit_bytes` + 1 bytes."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """`name` becomes a file of exactly `data`, 0600 from birth, the owner's, in one step: old or new, never half.

        ENOSPC leaves the old file and no other."""
        ...

    def rename(self, old: str, new: str) -> None:
        """`old` becomes `new` and replaces what was there."""
        ...

    def move_aside(self, old: str, new: str) -> str | None:
        """`old` becomes `new`, or `new.1`, `new.2`… where that is taken; nothing is replaced. The name it got, or
        None when there is no `old`."""
        ...

    def remove(self, name: str) -> None:
        """`name` is gone; no failure when it already was."""
        ...

    def hand_over(self, name: str) -> bool:
        """`name` itself (a link, never what it names; the directory for an empty name) belongs to the directory's
        intended owner; whether it did not before. False when there is no `name`."""
        ...

    def lock(self, wait_s: float) -> AbstractContextManager[None]:
        """The only writer from here to the end of the `with`, over all processes; makes the directory (0700) when
        there is none, and clears what an interrupted write left. LOCKED, with the holder, after `wait_s` seconds."""
        ...
