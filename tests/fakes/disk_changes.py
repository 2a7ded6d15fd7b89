"""What can be done to a disk, as values: a memory disk keeps them, a recorder takes them from a real run, and a test
plays them back in another order.

A file is named by the name it was created under (temporary names are unique), whatever it is called by then.
"""

import re
from dataclasses import dataclass

_TEMPORARY = re.compile(r"\.bcd-(.+)\.[0-9a-f]{16}$")


def plain(name: str) -> str:
    """`name` without what is random in a temporary name: .bcd-node.key.*"""
    return _TEMPORARY.sub(r".bcd-\1.*", name)


@dataclass(frozen=True)
class MakeDirectory:
    path: str

    def __str__(self) -> str:
        return "mkdir"


@dataclass(frozen=True)
class SyncParent:
    path: str

    def __str__(self) -> str:
        return f"fsync parent of {self.path}"


@dataclass(frozen=True)
class Create:
    directory: str
    name: str

    def __str__(self) -> str:
        return f"create {plain(self.name)}"


@dataclass(frozen=True)
class Write:
    file: str
    data: bytes

    def __str__(self) -> str:
        return f"write {plain(self.file)}"


@dataclass(frozen=True)
class Chown:
    file: str
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"chown {plain(self.file)}"


@dataclass(frozen=True)
class ChownDirectory:
    directory: str
    uid: int
    gid: int

    def __str__(self) -> str:
        return "chown directory"


@dataclass(frozen=True)
class ChownName:
    directory: str
    name: str
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"chown {plain(self.name)}"


@dataclass(frozen=True)
class SyncFile:
    file: str

    def __str__(self) -> str:
        return f"fsync {plain(self.file)}"


@dataclass(frozen=True)
class SyncDirectory:
    directory: str

    def __str__(self) -> str:
        return "fsync directory"


@dataclass(frozen=True)
class Rename:
    """`replace`: whatever has the new name goes; without it that is an error."""

    directory: str
    old: str
    new: str
    replace: bool = True

    def __str__(self) -> str:
        return f"rename {plain(self.old)} {plain(self.new)}"


@dataclass(frozen=True)
class Unlink:
    directory: str
    name: str

    def __str__(self) -> str:
        return f"unlink {plain(self.name)}"


@dataclass(frozen=True)
class Mark:
    """Nothing happens to the disk, but something else does: a message leaves the machine."""

    text: str

    def __str__(self) -> str:
        return self.text


Change = (
    MakeDirectory
    | SyncParent
    | Create
    | Write
    | Chown
    | ChownDirectory
    | ChownName
    | SyncFile
    | SyncDirectory
    | Rename
    | Unlink
    | Mark
)
