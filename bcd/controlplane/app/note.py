"""What is to stand in the log once a transaction is durable, and not before: a commit may still fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bcd.controlplane.ports.log import Log

# What is to be done once a transaction is durable.
Effect = Callable[[], None]


@dataclass(frozen=True)
class Note:
    what: str
    fields: Mapping[str, object]
    warning: bool = False

    def to(self, log: Log) -> Effect:
        return lambda: self.write(log)

    def write(self, log: Log) -> None:
        (log.warning if self.warning else log.info)(self.what, **self.fields)
