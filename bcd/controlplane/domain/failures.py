"""Failures of bcd-controlplane, named by what the operator must do; the text is one documented message."""

from typing import ClassVar

from bcd.controlplane.domain.messages import Message
from bcd.domain.model.failures import Exit


class Failure(Exception):
    """Holds no secret. `exit` is what the command ends with."""

    exit: ClassVar[Exit]

    def __init__(self, message: Message, **fields: object) -> None:
        self.message = message
        self.fields = fields
        super().__init__(message.value.format(**fields))


class Usage(Failure):
    """The command line is wrong, or names something that is not there."""

    exit = Exit.USAGE


class TryLater(Failure):
    """The same command, later, may do."""

    exit = Exit.TRY_LATER


class NotPermitted(Failure):
    """What is there forbids it: another state, another user, another server."""

    exit = Exit.REFUSED


class FixDirectory(Failure):
    """Something in the directory is missing, wrong or too open, and only a person can put it right."""

    exit = Exit.CONFIGURATION


class Internal(Failure):
    """A defect of bcd-controlplane."""

    exit = Exit.INTERNAL
