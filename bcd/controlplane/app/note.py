"""What is to stand in the log once a transaction is durable, and not before: a commit may still fail."""

from collections.abc import Mapping
from dataclasses import dataclass

from bcd.controlplane.ports.log import Log


@dataclass(frozen=True)
class Note:
    what: str
    fields: Mapping[str, object]
    warning: bool = False

    def write(self, log: Log) -> None:
        (log.warning if self.warning else log.info)(self.what, **self.fields)
