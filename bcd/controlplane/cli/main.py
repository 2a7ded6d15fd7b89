"""`bcd-controlplane`: arguments in, an exit code out. A failure is its documented line, nothing else."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable

from bcd.controlplane.cli.arguments import parser
from bcd.controlplane.domain.failures import Failure, FixDirectory, Internal, Usage
from bcd.controlplane.domain.messages import Message
from bcd.domain.model.failures import Exit

# As with bcd: `help` and `version` without dashes.
_WORDS = {"help": ["--help"], "version": ["--version"]}


def main(argv: list[str]) -> int:
    # Whatever is created here without a mode of its own is the owner's alone (SQLite's side files, the socket).
    os.umask(0o077)
    try:
        grammar = parser()
        if not argv:
            grammar.print_help()
            return Exit.USAGE
        if argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"):
            # argparse would take the option's value for a command.
            raise Usage(Message.NO_COMMAND, what="options come after the command")
        arguments = grammar.parse_args(_WORDS.get(argv[0], argv) if len(argv) == 1 else argv)
        code = _command(arguments.run)(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as end:
        # argparse, after --help.
        return end.code if isinstance(end.code, int) else 0
    except Failure as failure:
        return _ended(failure)
    except KeyboardInterrupt:
        # Quiet: whoever pressed it knows.
        return Exit.TRY_LATER
    except BrokenPipeError:
        # `bcd-controlplane nodes list | head`: the reader has what it wants.
        _write_no_more()
        return 0
    except OSError as error:
        _write_no_more()
        return _ended(FixDirectory(Message.FILE_SYSTEM, path=error.filename or "standard output", what=error.strerror))
    except Exception as error:  # noqa: BLE001 - the outermost loop: a traceback helps nobody and may hold a secret
        return _ended(Internal(Message.INTERNAL, what=type(error).__name__))


def _write_no_more() -> None:
    """What is still in the buffer cannot be written, and Python must not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _ended(failure: Failure) -> int:
    sys.stderr.write(f"{failure}\n")
    return failure.exit


def _command(name: str) -> Callable[[Namespace], int]:
    """Imports what the command needs when it is run: asking for a list does not load gRPC."""
    if name == "serve":
        from bcd.controlplane.adapters.grpc import process

        process.prepare()
        from bcd.controlplane.cli import serve

        return serve.serve
    if name == "init":
        from bcd.controlplane.cli import init

        return init.init
    if name == "node-config":
        from bcd.controlplane.cli import node_config

        return node_config.node_config
    from bcd.controlplane.cli import ask

    return ask.COMMANDS[name]
