"""Which boot of this machine this is."""


def boot_id() -> str:
    """The kernel's random boot id, or empty where it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except OSError:
        return ""
