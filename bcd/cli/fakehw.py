"""`bcd-fakehw`: bcd on the machine a file describes, without root."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bcd.cli import main as bcd_main
from bcd.cli.build import Build

if TYPE_CHECKING:
    from bcd.wiring.container import Node


def _container() -> "type[Node]":
    from bcd.wiring.fakehw import FakehwNode

    return FakehwNode


def main(argv: Sequence[str]) -> int:
    return bcd_main.run(Build("bcd-fakehw", needs_root=False, container=_container), argv)
