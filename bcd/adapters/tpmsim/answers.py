"""How a command is refused: a base code, and which handle, session or parameter it speaks of (Part 2, 6.6.2)."""

from bcd.protocol.tpm2.codes import Rc

_PARAMETER = 0x040
_SESSION = 0x800


class Refused(Exception):
    """The command ends with response code `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(f"0x{number:03x}")
        self.number = number


class Unfit(Exception):
    """A value that does not pass, before it is known which handle, session or parameter it stands in."""

    def __init__(self, rc: Rc) -> None:
        super().__init__(rc.name)
        self.rc = rc


def of_handle(rc: Rc, number: int) -> Refused:
    """`number` counts from 1, as everywhere here."""
    return Refused(rc + (number << 8))


def of_session(rc: Rc, number: int) -> Refused:
    return Refused(rc + _SESSION + (number << 8))


def of_parameter(rc: Rc, number: int) -> Refused:
    return Refused(rc + _PARAMETER + (number << 8))
