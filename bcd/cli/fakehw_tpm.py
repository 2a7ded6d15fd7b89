"""`bcd-fakehw tpm …`: a software TPM in a file, and what happens to it from outside (docs/protocol.md, "bcd-fakehw").

No command of a TPM's: bcd sends none of these."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bcd.cli.options import Parser
from bcd.domain.model.failures import Exit, FixConfiguration, Message, Usage
from bcd.protocol.tpm2.structures import Algorithm, Handle

if TYPE_CHECKING:
    from bcd.adapters.tpmsim.workbench import Workbench

_PROGRAM = "bcd-fakehw"
_HIERARCHIES = {"owner": Handle.OWNER, "endorsement": Handle.ENDORSEMENT}
_BANKS = {"sha1": Algorithm.SHA1, "sha256": Algorithm.SHA256, "sha384": Algorithm.SHA384, "sha512": Algorithm.SHA512}
_FOREVER = 0xFFFFFFFF
_MAX_HELD = 3


@dataclass(frozen=True)
class Command:
    """One of them: its options, and what it does with them."""

    name: str
    summary: str
    add_options: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], None]


def run(command: Command, argv: Sequence[str]) -> int:
    parser = Parser(_PROGRAM, f"tpm {command.name}", command.summary)
    parser.add_argument("--state", metavar="FILE", required=True, help="the TPM's file")
    parser.set_defaults(command=command.name)
    command.add_options(parser)
    try:
        given = parser.read(argv)
    except Usage as usage:
        # Not as `bcd tpm …`, which there is not.
        raise _usage(command.name, str(usage.fields.get("what", "takes no argument"))) from None
    try:
        command.run(given)
    except OSError as error:
        raise _failed(command, error.filename or given.state, os.strerror(error.errno or 0)) from None
    except ValueError as error:
        # A file that is no TPM's, a directory that is no manufacturer's.
        raise _failed(command, given.state, str(error)) from None
    return Exit.OK


def _failed(command: Command, path: object, why: str) -> FixConfiguration:
    return FixConfiguration(Message.FAKEHW_TPM, command=command.name, what=f"{path}: {why}")


def _bench(given: argparse.Namespace) -> "Workbench":
    from bcd.wiring import fakehw

    return fakehw.workbench(given.state)


def _manufacture_options(parser: Parser) -> None:
    parser.add_argument("--ca", metavar="DIR", required=True, help="the manufacturer, made if absent")
    parser.add_argument("--banks", metavar="LIST", default="sha256", help="PCR banks (default: %(default)s)")


def _manufacture(given: argparse.Namespace) -> None:
    from bcd.wiring import fakehw

    made = fakehw.manufacture(given.state, given.ca, _banks(given.command, given.banks))
    print(f"TPM               {made.state} (BCD_FAKEHW_TPM=sim:{made.state})")
    print(f"manufacturer CA   {made.root}")
    print(f"issuing CA        {made.issuing}")
    for what, index in made.certificates:
        print(f"certificate       {what} at {index:#010x}")


def _power_cycle_options(parser: Parser) -> None:
    parser.add_argument("--loss", action="store_true", help="without warning: the clock goes back and is not safe")


def _on_off_options(parser: Parser) -> None:
    parser.add_argument("--off", action="store_true", help="the opposite")


def _hierarchy_options(parser: Parser) -> None:
    parser.add_argument("--hierarchy", metavar="WHICH", required=True, help="owner or endorsement")


def _switch_options(parser: Parser) -> None:
    _hierarchy_options(parser)
    parser.add_argument("--off", action="store_true", help="disabled, until the next power cycle; without: enabled")


def _password_options(parser: Parser) -> None:
    _hierarchy_options(parser)
    parser.add_argument("--password", metavar="TEXT", default="", help="at most 32 bytes; without: none")


def _no_options(_parser: Parser) -> None:
    return


def _profile_options(parser: Parser) -> None:
    parser.add_argument("--family", choices=("1.2", "2.0"), help="what it answers as")
    parser.add_argument("--started", choices=("yes", "no"), help="no: 0x100 to every command")
    parser.add_argument("--banks", metavar="LIST", help="PCR banks, reset")
    parser.add_argument("--no-certificates", action="store_true", help="the endorsement certificates are gone")
    for name, what in (("retry", "0x922"), ("busy", "EBUSY"), ("late", "no answer in time")):
        parser.add_argument(f"--{name}", metavar="N", help=f"the next N commands meet {what}; all: for ever; 0: none")
    parser.add_argument("--held", metavar="N", help="of the three places for objects, those that others hold")


def _profile(given: argparse.Namespace) -> None:
    bench = _bench(given)
    changes: dict[str, int] = {}
    if given.family:
        changes["tpm_1_2"] = int(given.family == "1.2")
    if given.started:
        changes["not_started"] = int(given.started == "no")
    for name in ("retry", "busy", "late"):
        if getattr(given, name) is not None:
            changes[name] = _number(name, getattr(given, name), _FOREVER)
    if given.held is not None:
        changes["held"] = _number("held", given.held, _MAX_HELD)
    banks = _banks(given.command, given.banks) if given.banks is not None else None
    if banks is not None:
        bench.allocate(banks)
    if given.no_certificates:
        bench.remove_certificates()
    bench.set_faults(lambda faults: replace(faults, **changes))


def _hierarchy(given: argparse.Namespace) -> Handle:
    if given.hierarchy not in _HIERARCHIES:
        raise _usage(given.command, "--hierarchy: want owner or endorsement")
    return _HIERARCHIES[given.hierarchy]


def _password(given: argparse.Namespace) -> None:
    password = os.fsencode(given.password)
    if len(password) > 32:
        raise _usage(given.command, "--password: at most 32 bytes")
    _bench(given).set_password(_hierarchy(given), password)


def _banks(command: str, text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not set(words) <= set(_BANKS) or len(set(words)) != len(words):
        raise _usage(command, f"--banks: want some of {','.join(_BANKS)}")
    return tuple(bank for word, bank in _BANKS.items() if word in words)


def _number(name: str, text: str, most: int) -> int:
    if text == "all":
        return most
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= most):
        raise _usage("profile", f"--{name}: want a number, or all")
    return int(text)


def _usage(command: str, what: str) -> Usage:
    return Usage(Message.FAKEHW_TPM, command=command, what=what)


_ALL = (
    Command("manufacture", "Makes a TPM, with certificates.", _manufacture_options, _manufacture),
    Command(
        "power-cycle",
        "Off and on, and started by firmware: what was loaded is gone.",
        _power_cycle_options,
        lambda given: _bench(given).power_cycle(loss=given.loss),
    ),
    Command(
        "clear",
        "TPM2_Clear: another owner seed, so other node keys; endorsement and attestation keys stay.",
        _no_options,
        lambda given: _bench(given).clear(),
    ),
    Command(
        "endorsement-seed",
        "TPM2_ChangeEPS: other endorsement and attestation keys; certificates stay, and are no longer theirs.",
        _no_options,
        lambda given: _bench(given).change_endorsement_seed(),
    ),
    Command(
        "lockout",
        "Locked as after too many failed authorizations (0x921); noDA keys stay usable.",
        _on_off_options,
        lambda given: _bench(given).lock_out(on=not given.off),
    ),
    Command("password", "A hierarchy's password.", _password_options, _password),
    Command(
        "hierarchy",
        "Enables or disables a hierarchy.",
        _switch_options,
        lambda given: _bench(given).switch(_hierarchy(given), off=given.off),
    ),
    Command("profile", "What this TPM lacks, and what the next commands meet.", _profile_options, _profile),
)
COMMANDS = {command.name: command for command in _ALL}
