"""Host names and addresses: where a control plane listens, and what its serving certificate says."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

# RFC 1123, 2.1, in lower case; 253 characters in all.
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class MalformedHost(ValueError):
    """Not a host name, address or HOST:PORT; the message says which."""


def host(text: str) -> str:
    """A DNS name in lower case, or an IPv4 or IPv6 address in its usual spelling (without brackets)."""
    word = text.strip().lower().removesuffix(".")
    try:
        return str(ip_address(word.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    # All digits and dots is a mistyped address, and no certificate should carry it as a name.
    if len(word) <= 253 and _NAME.fullmatch(word) and not re.fullmatch(r"[0-9.]+", word):
        return word
    raise MalformedHost(f"not a host name or address: {text[:80]!r}")


@dataclass(frozen=True)
class Endpoint:
    """Where to listen. Port 0: any free one."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> "Endpoint":
        name, colon, port = text.rpartition(":")
        if not colon or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 0xFFFF or (":" in name and name[0] != "["):
            raise MalformedHost(f"not HOST:PORT: {text[:80]!r} (127.0.0.1:8443, [::]:8443, localhost:0)")
        return Endpoint(host(name), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
