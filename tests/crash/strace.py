"""What a process does to one directory, seen from outside by strace, in the words of tests.fakes.disk_changes."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fakes import traces
from tests.fakes.disk_changes import plain

# Every call with which a process could change a directory or what is in it, and the lock.
_CALLS = (
    "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync,syncfs,rename,renameat,renameat2,unlink,"
    "unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,chown,"
    "lchown,fchown,fchownat,utimensat,setxattr,fsetxattr,mknod,mknodat,flock,connect"
)
_LINE = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*?)\) += (?P<result>.*)$")


def words(log: Path, *more: str, calls: str = _CALLS) -> list[str]:
    """strace and its options, to stand before a command."""
    return ["strace", "-f", "-y", "-s", "0", "-o", str(log), "-e", f"trace={calls}", *more]


def killed_at(log: Path) -> str:
    """The call at which an injected SIGKILL ended the process, as strace shows it; empty when it was not killed."""
    whole, begun = traces.calls(log)
    if not any("+++ killed by SIGKILL" in line for line in whole):
        return ""
    cut_off = [*(line for line in whole if line.endswith("= ?")), *begun]
    return cut_off[-1].split(" ", 1)[1].strip()


def lines(log: Path) -> list[str]:
    """The log's calls, each whole: one that another thread interrupted is put together again."""
    return traces.calls(log)[0]


def steps(log: Path, directory: Path) -> list[str]:
    """What succeeded in changing `directory`, or in making it safe, and where the network was reached for."""
    return list(_steps(lines(log), str(directory)))


def changes(log: Path, directory: Path) -> list[str]:
    """Every call, successful or not, that would change something at or below `directory`, or lock it."""
    harmless = re.compile(r"^\d+ +open(at)?\((?!.*O_(CREAT|WRONLY|RDWR|TRUNC))|^\d+ +connect\(|^\d+ +(\+\+\+|---)")
    return [line for line in lines(log) if str(directory) in line and not harmless.match(line)]


def _steps(log: Sequence[str], directory: str) -> Iterator[str]:
    # Paths below the directory's own parent are told as the memory disk's recorder tells them.
    scratch = os.path.dirname(directory)
    for line in log:
        match = _LINE.match(line)
        if match is None:
            continue
        call, arguments = match["call"], match["arguments"]
        if call == "connect":
            # In progress is a failure to strace; the network is reached for all the same.
            if "_port=htons(" in arguments:
                yield "connect"
            continue
        if match["result"].startswith(("-1", "?")):
            continue
        paths = re.findall(r"\d+<([^>]*)>", arguments)
        names = re.findall(r'"([^"]*)"', arguments)
        on = paths[0] if paths else ""
        match call:
            case "mkdir" if names[0].startswith(scratch):
                yield "mkdir"
            case "openat" if on == directory and "O_CREAT" in arguments:
                yield f"create {plain(names[0])}"
            case "write" if on.startswith(f"{directory}/"):
                yield f"write {plain(os.path.basename(on))}"
            case "fsync" if on == directory:
                yield "fsync directory"
            case "fsync" if on.startswith(f"{directory}/"):
                yield f"fsync {plain(os.path.basename(on))}"
            case "fsync" if on == scratch:
                yield f"fsync parent of {directory}"
            case "renameat" | "renameat2" if on == directory:
                yield f"rename {plain(names[0])} {plain(names[1])}"
            case "unlinkat" if on == directory:
                yield f"unlink {plain(names[0])}"
            case "openat" | "write" | "fsync" | "flock":
                pass
            case _ if directory in arguments:
                yield f"unexpected: {line}"
