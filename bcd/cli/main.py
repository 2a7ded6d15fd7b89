"""`bcd`: which command, and how a failure ends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bcd
from bcd.cli import render
from bcd.cli.build import Build
from bcd.cli.options import HelpShown
from bcd.domain.model.failures import Exit, Failure, Message, Usage
from bcd.domain.model.hints import did_you_mean

if TYPE_CHECKING:
    from bcd.wiring.container import Node

_HELP = """usage: {program} COMMAND [OPTION...]

Node identity that survives: a P-256 key and a certificate of at most 24 hours.

  join          create this machine's identity, once; --reset starts over
  node          keep it alive: a session, a new key and certificate in time
  status        what the identity is, and until when; needs no network
  doctor        what is wrong, and the way back
  tpm identify  what this machine's TPM is, and whether node keys can live in it
{own}
{program} COMMAND --help says more; {program} --version says which.
Not in this version: helper, ramdisk; --server."""

_TPM_HELP = """usage: {program} tpm COMMAND [OPTION...]

  tpm identify  what this machine's TPM is, and whether node keys can live in it
{own}
{program} tpm COMMAND --help says more."""
_COMMANDS = ("join", "node", "status", "doctor", "tpm", "help", "version")


def _container() -> "type[Node]":
    from bcd.wiring.container import Node

    return Node


BCD = Build("bcd", needs_root=True, container=_container)


def main(argv: Sequence[str]) -> int:
    return run(BCD, argv)


def run(build: Build, argv: Sequence[str]) -> int:
    """The command's exit status; a failure is its documented line on standard error and its class's status."""
    try:
        return _command(build, argv)
    except HelpShown:
        return Exit.OK
    except Failure as failure:
        render.error(failure.text)
        return failure.exit


def _command(build: Build, argv: Sequence[str]) -> int:
    match [*argv]:
        case [] | ["--help"] | ["-h"] | ["help"]:
            print(_HELP.format(program=build.program, own=build.own_help))
            return Exit.OK if argv else Exit.USAGE
        case ["--version"] | ["version"]:
            print(f"{build.program} {bcd.__version__}")
            return Exit.OK
        case ["join", *rest]:
            from bcd.cli import join

            return join.run(build, rest)
        case ["node", *rest]:
            from bcd.cli import node

            return node.run(build, rest)
        case ["status", *rest]:
            from bcd.cli import status

            return status.run(build, rest)
        case ["doctor", *rest]:
            from bcd.cli import doctor

            return doctor.run(build, rest)
        case ["tpm", "identify", *rest]:
            from bcd.cli import tpm_identify

            return tpm_identify.run(build, rest)
        case ["tpm"] | ["tpm", "--help" | "-h" | "help"]:
            print(_TPM_HELP.format(program=build.program, own=build.own_help))
            return Exit.OK if len(argv) > 1 else Exit.USAGE
    ended = build.own(argv)
    if ended is not None:
        return ended
    if argv[0] == "tpm":
        hint = did_you_mean(argv[1], ("identify", *build.own_tpm), "tpm ")
    else:
        hint = did_you_mean(argv[0], _COMMANDS)
    raise Usage(Message.NO_COMMAND, program=build.program, hint=hint)
