"""The command line's grammar."""

import argparse
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import bcd
from bcd.controlplane.domain.durations import MalformedDuration, duration
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.hosts import Endpoint, MalformedHost, host
from bcd.controlplane.domain.lifetimes import BadLifetime, leaf_lifetime
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import DEFAULT_LEAF_LIFETIME
from bcd.controlplane.domain.tokens import DEFAULT_TTL
from bcd.domain.model import names
from bcd.domain.model.hints import did_you_mean

T = TypeVar("T")
_FINGERPRINT = "its certificate's SHA-256, as ek-roots list has it"


class Parser(argparse.ArgumentParser):
    """Raises the documented message where argparse prints its own two lines."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("bcd-controlplane").strip()
        what = " ".join(message.split())
        if not command:
            raise Usage(Message.NO_COMMAND, what=what)
        raise Usage(Message.USAGE, command=command, what=what)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # Told by the command that does not know them, and not by bcd-controlplane, whose --help does not have them.
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            known = [option for action in self._actions for option in action.option_strings]
            hint = did_you_mean(rest[0].split("=")[0], known) if rest[0].startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse names every command there is, in one line of 200 characters.
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            hint = did_you_mean(value, list(action.choices))
            raise argparse.ArgumentError(None, f"no such command: {value[:40]!r}{hint}")
        super()._check_value(action, value)

    def print_help(self, file: Any = None) -> None:
        (file or sys.stdout).write(self.format_help())


def _typed(parse: Callable[[str], T]) -> Callable[[str], T]:
    def convert(text: str) -> T:
        try:
            return parse(text)
        except (MalformedDuration, BadLifetime, MalformedHost, names.MalformedName) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _lifetime(text: str) -> timedelta:
    return leaf_lifetime(duration(text))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 10_000:
        raise argparse.ArgumentTypeError(f"not a number from 1 to 10000: {text[:40]!r}")
    return int(text)


def _version(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"not a version: {text[:40]!r}")
    return int(text)


def parser() -> Parser:
    """Each leaf of the grammar sets `run`, the name of its command."""
    top = Parser(
        prog="bcd-controlplane",
        description="The reference control plane: where bcd nodes join.",
        epilog="bcd-controlplane COMMAND --help says more. Options come after the command.",
    )
    top.add_argument("--version", action="version", version=f"bcd-controlplane {bcd.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    _init(commands)
    _serve(commands)
    _tokens(commands)
    _nodes(commands)
    _trust(commands)
    _ek_roots(commands)
    _eks(commands)
    _restored(commands)
    _refusals(commands)
    _approvals(commands)
    _audit(commands)
    _node_config(commands)
    return top


def _init(commands: Any) -> None:
    init = _command(commands, "init", "init", "make a control plane: its keys and its store, in a directory of its own")
    init.add_argument(
        "--trust-domain",
        required=True,
        type=_typed(names.trust_domain),
        metavar="NAME",
        help="in every certificate, for ever: example.org",
    )
    init.add_argument(
        "--host",
        action="append",
        default=[],
        type=_typed(host),
        metavar="NAME|IP",
        help="how nodes reach it, once for each; the first goes into their config.toml "
        "(default: localhost, 127.0.0.1, ::1 and this machine's name)",
    )
    init.add_argument(
        "--leaf-lifetime",
        default=DEFAULT_LEAF_LIFETIME,
        type=_typed(_lifetime),
        metavar="DURATION",
        help="how long a node's certificate lives: 20s to 24h (default 24h)",
    )


def _serve(commands: Any) -> None:
    serve = _command(commands, "serve", "serve", "run it, until SIGTERM or Ctrl-C", with_json=False)
    serve.description = (
        "Listens on the join port, where machines join, and on the gateway port, where nodes renew and keep a session."
    )
    serve.add_argument(
        "--join",
        type=_typed(Endpoint.parse),
        metavar="HOST:PORT",
        help="where nodes join; port 0 takes a free port once and keeps it (default: the last one, at first [::]:0)",
    )
    serve.add_argument(
        "--gateway",
        type=_typed(Endpoint.parse),
        metavar="HOST:PORT",
        help="where nodes call, with their certificates; port 0 as above (default: the last one, at first a free port "
        "where they join)",
    )
    serve.add_argument(
        "--http",
        type=_typed(Endpoint.parse),
        metavar="HOST:PORT",
        help="where GET /.well-known/bc-identity is answered, over TLS; port 0 as above (default: the last one, at "
        "first nowhere)",
    )
    serve.add_argument("--log-format", choices=("text", "json"), default="text", help="of the log on standard error")


def _tokens(commands: Any) -> None:
    token = _group(commands, "token", "join tokens")
    create = _command(token, "create", "token-create", "make a join token and print it; it is shown this once")
    create.add_argument("--site", required=True, type=_typed(names.site_id), help="the site it lets join")
    create.add_argument("--role", default=names.Role.NODE, type=_typed(names.role), help="node, site or ramdisk (node)")
    create.add_argument("--node-id", type=_typed(names.node_id), help="a provisioned token: for this node alone")
    create.add_argument(
        "--allow-reclaim", action="store_true", help="a machine that is a node already gets its id back"
    )
    create.add_argument("--require-approval", action="store_true", help="a person decides: bcd-controlplane approvals")
    create.add_argument(
        "--ttl", default=DEFAULT_TTL, type=_typed(duration), metavar="DURATION", help="at most 90d (1h)"
    )
    create.add_argument("--uses", default=1, type=_count, metavar="N", help="how many machines it lets join (1)")
    _command(token, "list", "token-list", "every token, oldest first")
    _with_id(_command(token, "revoke", "token-revoke", "let nobody join with it any more"), "a token's id")


def _nodes(commands: Any) -> None:
    nodes = _group(commands, "nodes", "what has joined")
    _command(nodes, "list", "nodes-list", "every node")
    _with_id(_command(nodes, "show", "nodes-show", "one node, its machine and its certificates"), "a node's id")

    revoke = _with_id(
        _command(nodes, "revoke", "nodes-revoke", "revoke its certificates: it ends, and has to join again"),
        "a node's id",
    )
    revoke.add_argument("--reason", required=True, metavar="TEXT", help="the node shows it")
    _with_id(
        _command(nodes, "delete", "nodes-delete", "revoke and forget it: its machine may join with any token"),
        "a node's id",
    )
    renew = _command(nodes, "renew-now", "nodes-renew-now", "ask for a renewal before its time")
    renew.add_argument("id", nargs="?", metavar="ID", help="a node's id")
    renew.add_argument("--all", action="store_true", help="every node")
    renew.add_argument("--reason", default="asked by the operator", metavar="TEXT", help="the nodes show it")


def _trust(commands: Any) -> None:
    trust = _group(commands, "trust", "the trust bundle: command-signing roots and approvers, for every node")
    _command(trust, "show", "trust-show", "the bundle in force")
    _with_file(_command(trust, "add-root", "trust-add-root", "let a key sign commands"))
    _command(trust, "remove-root", "trust-remove-root", "let it sign no more").add_argument(
        "pin", metavar="PIN", help="as trust show has it: sha256:…"
    )
    approver = _command(trust, "add-approver", "trust-add-approver", "let a person approve destructive batches")
    approver.add_argument("name", metavar="NAME", help="up to 64 characters")
    _with_file(approver)
    _command(trust, "remove-approver", "trust-remove-approver", "let them approve no more").add_argument(
        "name", metavar="NAME", help="as trust show has it"
    )


def _ek_roots(commands: Any) -> None:
    roots = _group(commands, "ek-roots", "manufacturers' CAs, which vouch that a TPM is genuine")
    _command(roots, "import", "ek-roots-import", "trust them").add_argument(
        "path", metavar="PATH", help="a PEM or DER file, a zip of such files, or a directory of them"
    )
    _command(roots, "list", "ek-roots-list", "every one, oldest first")
    admit = _command(
        roots, "admit", "ek-roots-admit", "let every machine join whose TPM it vouches for; nobody is asked"
    )
    admit.description = (
        "Lets every machine join whose TPM the CA vouches for, with nobody asked: everybody can buy such a TPM. "
        "Without it those machines wait for an approval, or have to be on the list of bcd-controlplane ek."
    )
    admit.add_argument("root", metavar="ROOT", help=_FINGERPRINT)
    admit.add_argument("--site", required=True, type=_typed(names.site_id), help="the site they join")
    admit.add_argument("--role", required=True, type=_typed(names.role), help="node, site or ramdisk")
    withdraw = _command(roots, "withdraw", "ek-roots-withdraw", "take that back: they wait again")
    withdraw.add_argument("root", metavar="ROOT", help=_FINGERPRINT)
    remove = _command(roots, "remove", "ek-roots-remove", "trust it no more")
    remove.add_argument("root", metavar="ROOT", help=_FINGERPRINT)


def _eks(commands: Any) -> None:
    eks = _group(commands, "ek", "endorsement keys: the TPMs that may join, and those that may not")
    allow = _with_hash(_command(eks, "allow", "ek-allow", "let the machine with this TPM join"))
    allow.add_argument("--site", required=True, type=_typed(names.site_id), help="the site it joins")
    allow.add_argument("--role", default=names.Role.NODE, type=_typed(names.role), help="node, site or ramdisk (node)")
    allow.add_argument("--node-id", type=_typed(names.node_id), help="which node it is to be (default: a new one)")
    allow.add_argument("--note", default="", metavar="TEXT", help="for people: a rack, a serial number")
    deny = _with_hash(_command(eks, "deny", "ek-deny", "let it neither join nor renew, whatever speaks for it"))
    deny.add_argument("--note", metavar="TEXT", help="for people: why")
    _with_hash(_command(eks, "remove", "ek-remove", "take it off the list: neither allowed nor denied"))
    _command(eks, "list", "ek-list", "every one, oldest first")
    _command(
        eks, "import", "ek-import", "allow those of a file: all of them or, when a line is wrong, none"
    ).add_argument(
        "file", metavar="CSV", help="columns ek, site and, if need be, role, node_id, note; the first line names them"
    )


def _restored(commands: Any) -> None:
    restored = _command(commands, "restored", "restored", "say that a backup of the directory was put back")
    restored.description = (
        "To be run after a backup of the directory was put back. Nodes that joined or renewed since it was made have "
        "certificates it does not know; until this is run they are told to ask later, and afterwards they are adopted. "
        "The trust bundle's version rises by 1000, above what any node holds. What was revoked or deleted since the "
        "backup was made has to be revoked or deleted again."
    )
    restored.add_argument(
        "--bundle-above", default=0, type=_version, metavar="N", help="a higher bundle version that some node holds"
    )


def _refusals(commands: Any) -> None:
    refusals = _group(commands, "refusals", "why joins were refused")
    _limited(_command(refusals, "list", "refusals-list", "the latest, newest first"), 50)
    _with_id(_command(refusals, "show", "refusals-show", "one of them, and what to do"), "the id the node printed")


def _approvals(commands: Any) -> None:
    approvals = _group(commands, "approvals", "joins that wait for a person")
    listed = _command(approvals, "list", "approvals-list", "every one, oldest first")
    listed.add_argument("--pending", action="store_true", help="only those that wait")
    approve = _command(approvals, "approve", "approvals-approve", "let it join")
    _with_id(approve, "an approval's id")
    approve.add_argument("--site", metavar="SITE", help="where a machine that waits with its TPM is to belong")
    _with_id(_command(approvals, "deny", "approvals-deny", "refuse it"), "an approval's id")


def _audit(commands: Any) -> None:
    audit = _group(commands, "audit", "what happened")
    tail = _limited(_command(audit, "tail", "audit-tail", "the latest events, oldest of them first"), 20)
    tail.add_argument("--follow", action="store_true", help="go on with each new one, until Ctrl-C")


def _node_config(commands: Any) -> None:
    node_config = _command(
        commands,
        "node-config",
        "node-config",
        "write what a node needs: config.toml, join-encryption.jwk, serving-ca.pem",
    )
    node_config.add_argument(
        "--out", required=True, metavar="DIR", help="made if need be; the three files are replaced"
    )
    node_config.add_argument(
        "--data-dir", default="/var/lib/bcd", metavar="P", help="the node's data_dir (default /var/lib/bcd)"
    )


def _group(commands: Any, name: str, about: str) -> Any:
    group = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    return group.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)


def _command(commands: Any, name: str, run: str, about: str, with_json: bool = True) -> Parser:
    command: Parser = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    command.set_defaults(run=run)
    command.add_argument("--dir", required=True, metavar="D", help="the control plane's directory")
    if with_json:
        command.add_argument("--json", action="store_true", help="for machines: RFC 3339 UTC times, camelCase names")
    return command


def _with_id(command: Parser, about: str) -> Parser:
    command.add_argument("id", metavar="ID", help=about)
    return command


def _with_hash(command: Parser) -> Parser:
    command.add_argument("ek", metavar="HASH", help="SHA-256 of its public key, as bcd tpm identify shows it")
    return command


def _with_file(command: Parser) -> Parser:
    command.add_argument("file", metavar="FILE", help="its public key or certificate, PEM or DER")
    return command


def _limited(command: Parser, default: int) -> Parser:
    command.add_argument("-n", dest="limit", default=default, type=_count, metavar="N", help=f"how many ({default})")
    return command
