"""One command under way: what it may read and change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bcd.adapters.tpmsim.space import Object, Session, Space
from bcd.adapters.tpmsim.state import State
from bcd.protocol.tpm2.structures import CommandAuth

Random = Callable[[int], bytes]


@dataclass
class Call:
    """`handles` denote something, and `parameters` are what they may be. A command that is refused changes nothing of
    `state`."""

    state: State
    space: Space
    now_ms: int
    random: Random
    handles: tuple[int, ...] = ()
    authorizations: tuple[CommandAuth, ...] = ()
    parameters: Any = None
    answer_handles: list[int] = field(default_factory=list)
    # Something was authorized that counts towards a lockout, and with a wrong password.
    tried: bool = False
    wrong: bool = False

    def object(self, number: int) -> Object:
        """The key that the `number`th handle denotes; numbers count from 1, as in response codes."""
        return self.space.key(self.handles[number - 1])

    def session(self, number: int) -> Session:
        return self.space.sessions[self.handles[number - 1]]
