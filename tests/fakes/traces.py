"""The log of strace -f, whose lines threads and processes cut each other's calls in two."""

import re
from pathlib import Path

_RESUMED = re.compile(r"^(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)$")


def calls(log: Path) -> tuple[list[str], list[str]]:
    """The calls, each whole, behind the process's id and in the order of their ends; and those that never ended."""
    begun: dict[str, str] = {}
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        resumed = _RESUMED.match(line)
        if resumed:
            found.append(begun.pop(resumed["pid"]) + resumed["rest"])
        elif line.endswith("<unfinished ...>"):
            begun[line.split(" ", 1)[0]] = line.removesuffix("<unfinished ...>").rstrip()
        else:
            found.append(line)
    return found, list(begun.values())
