"""`bcd-fakehw`: bcd on the machine a file describes, without root; and what only made-up hardware can do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bcd.cli import main as bcd_main
from bcd.cli.build import Build

if TYPE_CHECKING:
    from bcd.wiring.container import Node

_NAMES = ("manufacture", "power-cycle", "clear", "endorsement-seed", "lockout", "password", "hierarchy", "profile")
_OWN = f"""  tpm COMMAND   make a software TPM in a file (BCD_FAKEHW_TPM=sim:FILE), and
                what befalls it; each has a --help:
                {", ".join(_NAMES[:5])},
                {", ".join(_NAMES[5:])}
"""


def _container() -> "type[Node]":
    from bcd.wiring.fakehw import FakehwNode

    return FakehwNode


def _own(argv: Sequence[str]) -> int | None:
    match [*argv]:
        case ["tpm", name, *rest]:
            from bcd.cli import fakehw_tpm

            command = fakehw_tpm.COMMANDS.get(name)
            return None if command is None else fakehw_tpm.run(command, rest)
    return None


BCD_FAKEHW = Build(
    "bcd-fakehw",
    needs_root=False,
    container=_container,
    own=_own,
    own_help=_OWN,
    own_tpm=_NAMES,
)


def main(argv: Sequence[str]) -> int:
    return bcd_main.run(BCD_FAKEHW, argv)
