"""What differs between `bcd` and `bcd-fakehw`: the two are separate programs, and nothing turns one into the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bcd.wiring.container import Node


@dataclass(frozen=True)
class Build:
    """`container` imports what it needs when it is called: most commands of a day need none of it."""

    program: str
    needs_root: bool
    container: Callable[[], "type[Node]"]
