"""Port: what this machine says of itself."""

from typing import Protocol

from bcd.domain.model.claims import Claims


class Hardware(Protocol):
    def claims(self) -> Claims:
        """Only real values (no placeholder, no virtual or group MAC), MACs and GPU UUIDs sorted and unique; what
        cannot be read is left out. Never fails."""
        ...
