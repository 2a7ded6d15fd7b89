"""Waiting for a TPM that is not there yet: a device may show up late in a boot (field report B37)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bcd.domain.model.failures import Message, NotThereYet, TryLater
from bcd.ports.clock import Clock
from bcd.ports.events import Events

# How often it is looked for.
TPM_LOOK_S = 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class AwaitTpm:
    clock: Clock
    events: Events

    def __call__(self, ask: Callable[[], T], wait_s: float) -> T:
        """What `ask` says, asked again for `wait_s` seconds while there is no TPM; then the TryLater that says so."""
        until_s = self.clock.boottime_s() + wait_s
        told = ""
        while True:
            try:
                return ask()
            except TryLater as failure:
                absent = isinstance(failure, NotThereYet) or failure.message is Message.TPM_ABSENT
                if not absent or self.clock.boottime_s() >= until_s:
                    raise
                if failure.text != told:
                    told = failure.text
                    self.events.info("waiting for the TPM", why=told)
            self.clock.wait(TPM_LOOK_S)
