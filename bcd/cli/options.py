"""Command lines, parsed so that nothing a person typed is ever shown again: it might be a token."""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from bcd.domain.model.failures import Message, Usage
from bcd.domain.model.hints import did_you_mean
from bcd.domain.model.names import MalformedName, NodeId, Role, node_id, role
from bcd.protocol.files.config import DEFAULT_PATH

# A control plane's join token wherever it stands in a word. A path that is none is shown in messages, as paths are.
_JOIN_TOKEN = re.compile(r"bcjt_[a-z2-7]{10}_")


class HelpShown(Exception):
    """--help was asked for and given."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A summary is one line in the code and as wide as the terminal; what has lines of its own keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class Parser(argparse.ArgumentParser):
    """argparse without its habit of quoting what was typed, and of ending the process."""

    def __init__(self, program: str, command: str, summary: str, epilog: str = "") -> None:
        self.command = command
        super().__init__(
            prog=f"{program} {command}",
            description=summary,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=_Formatter,
        )

    def error(self, message: str) -> NoReturn:
        # "argument --yes: ignored explicit argument 'x'": from the quote on it is what was typed, and the quote is a
        # double one when that holds a single one.
        what = re.split("['\"]", message.replace("argument ", "", 1))[0].rstrip(": ")
        raise Usage(Message.USAGE, command=self.command, what=what)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002 - argparse's own signature
        # Not SystemExit, which a broken package may raise as well, and which then is no success.
        raise HelpShown

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The options in `argv`; Usage for anything else, a positional argument above all."""
        if any(_JOIN_TOKEN.search(word) for word in argv):
            # As an option's value too: --config and --token-file would show it as the file that is not there.
            raise self._no_argument()
        options, rest = self.parse_known_args(list(argv))
        if not rest:
            return options
        hint = did_you_mean(rest[0].split("=")[0], self._known()) if rest[0].startswith("-") else ""
        # Of `--conf FILE` the file is left over as well, but what is wrong is the option. Not so `--token TOKEN`: that
        # is no misspelt --token-file.
        misspelt = bool(hint) and not rest[0].startswith("--token")
        if not misspelt and any(not word.startswith("-") or word == "--" for word in rest):
            raise self._no_argument()
        raise Usage(Message.USAGE, command=self.command, what=f"unknown option{hint}")

    def _known(self) -> list[str]:
        shown = [action for action in self._actions if action.help != argparse.SUPPRESS]
        return [option for action in shown for option in action.option_strings]

    def _no_argument(self) -> Usage:
        message = Message.POSITIONAL if self.command == "join" else Message.NO_ARGUMENT
        return Usage(message, command=self.command)


def add_config(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", default=DEFAULT_PATH, help="configuration (default: %(default)s)")
    parser.add_argument("--data-dir", metavar="DIR", help="where the identity lies (over the configuration's data_dir)")


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def add_log(parser: Parser) -> None:
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info (default), warning or error")
    parser.add_argument("--log-format", metavar="FORM", help="text (default) or json, on standard error")


def config_flags(options: argparse.Namespace) -> dict[str, str]:
    """The flags that carry a configuration key's name, by key."""
    flags = {"data_dir": "data_dir", "log_level": "log.level", "log_format": "log.format"}
    given = {key: getattr(options, name, None) for name, key in flags.items()}
    return {key: value for key, value in given.items() if value is not None}


def wanted_role(parser: Parser, text: str) -> Role:
    try:
        return role(text)
    except MalformedName:
        raise Usage(Message.USAGE, command=parser.command, what="--role: want node, site or ramdisk") from None


def wanted_node(parser: Parser, text: str | None) -> NodeId | None:
    if text is None:
        return None
    try:
        if text.startswith("bcjt_"):
            raise MalformedName("a join token")
        return node_id(text)
    except MalformedName:
        what = "--node-id: want 1 to 63 of letters, digits and . _ -"
        raise Usage(Message.USAGE, command=parser.command, what=what) from None
