"""What differs between `bcd` and `bcd-fakehw`: the two are separate programs, and nothing turns one into the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bcd.wiring.container import Node


def _no_command(_argv: Sequence[str]) -> int | None:
    return None


@dataclass(frozen=True)
class Build:
    """`container` imports what it needs when it is called: most commands of a day need none of it.

    `own` runs a command that this program alone has, and gives its exit status, or None when it is none of them;
    `own_help` names them, and `own_tpm` the second word of those that begin with tpm."""

    program: str
    needs_root: bool
    container: Callable[[], "type[Node]"]
    own: Callable[[Sequence[str]], int | None] = _no_command
    own_help: str = ""
    own_tpm: tuple[str, ...] = ()
