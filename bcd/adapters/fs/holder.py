"""Who holds the lock of a directory or a file, from /proc/locks, for a person to read."""

import os


def holder(file: os.stat_result) -> str | None:
    """`bcd join (process 4711)`, or None where nobody holds it or the kernel does not tell."""
    device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as lines:
            for line in lines:
                fields = line.split()
                # 1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF; a waiting one has "->" in second place.
                if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == device:
                    return _named(fields[4])
    except OSError:
        pass
    return None


def _named(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [word.decode("utf-8", "replace") for word in file.read(4096).split(b"\0")]
    except OSError:
        return f"process {pid}"
    names = [os.path.basename(word) for word in words if word and not word.startswith("-")]
    # An interpreted command shows its interpreter first; its first two words say which command it is.
    shown = names[1:3] if names and names[0].startswith("python") else names[:2]
    command = " ".join(word for word in shown if word.isprintable())[:80]
    return f"{command} (process {pid})" if command else f"process {pid}"
