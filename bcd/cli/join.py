"""`bcd join`."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from bcd.adapters.host.process import harden, restart_dropping, restart_without
from bcd.adapters.host.signals import on_stop
from bcd.cli import options, render
from bcd.cli.build import Build
from bcd.domain.model.datadir import LOCK_WAIT_S
from bcd.domain.model.failures import Exit, Failure, Message, Refused, TryLater, Usage
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.tokens import MAX_TOKEN_BYTES
from bcd.ports.journal import REVOKED, JournalOf, JournalState, NoJournal

if TYPE_CHECKING:
    from bcd.domain.lifecycle.begin_join import Wanted
    from bcd.domain.lifecycle.join import Joined
    from bcd.domain.model.identity import Identity
    from bcd.ports.credential import CredentialSource
    from bcd.ports.events import Events
    from bcd.protocol.files.config import Config
    from bcd.wiring.container import Node

ENVIRONMENT = "BCD_JOIN_TOKEN"
_TOKEN, _TPM = "join-token", "tpm"
_TOKEN_FD = "--token-fd"  # noqa: S105 - the name of an option

_SUMMARY = "Create this machine's identity, once. On a machine that has one, say which and exit 0."
_EPILOG = """the join token comes from one of
  BCD_JOIN_TOKEN      the environment; taken out of it at once
  standard input      its first line
  --token-file FILE   a regular file, mode 0600 or 0400, at most 4 KiB;
                      deleted once the machine has joined
and never from the command line. With --attestor tpm there is no token: the
machine's TPM proves which one it is, and BCD_JOIN_TOKEN is dropped.

An interrupted join goes on, without a token, when bcd join is run again.

exit status
  0   joined, or joined already
  2   the command line is wrong, or --reset waits for --yes
  70  a defect of bcd
  75  try later: no answer, no TPM, in use by another process, interrupted
  76  the identity that is here does not load: see --reset
  77  refused by the control plane, another --node-id, or not run as root
  78  configuration, pins, modes and owners

Not in this version: --server."""


def run(build: Build, argv: Sequence[str]) -> int:
    parser = _parser(build)
    given = parser.read(argv)
    role = options.wanted_role(parser, given.role)
    node_id = options.wanted_node(parser, given.node_id)
    if given.yes and not given.reset:
        raise Usage(Message.USAGE, command="join", what="--yes goes with --reset")
    _check_attestor(given)
    if build.needs_root and os.geteuid() != 0:
        raise Refused(Message.RUN_AS_ROOT, command="join --reset" if given.reset else "join")
    _take_out_of_environment(given)
    # After the restart, which undoes it, and before anything of the token is read.
    harden()
    _end_at_once()
    try:
        return _join(build, given, _wanted(role, node_id, given.attestor))
    except KeyboardInterrupt:
        raise TryLater(Message.INTERRUPTED) from None


def _end_at_once() -> None:
    """SIGTERM and Ctrl-C break into whatever is waited for, an approval's hour as well."""
    heard = False

    def hear() -> None:
        nonlocal heard
        heard = True
        raise KeyboardInterrupt

    on_stop(hear, lambda: heard)


def _parser(build: Build) -> options.Parser:
    parser = options.Parser(build.program, "join", _SUMMARY, _EPILOG)
    options.add_config(parser)
    parser.add_argument("--token-file", metavar="FILE", help="read the join token from FILE")
    parser.add_argument("--role", metavar="ROLE", default="node", help="node (default), site or ramdisk")
    parser.add_argument("--node-id", metavar="NODE", help="join as that node, with a token made for it, or not at all")
    parser.add_argument("--attestor", metavar="NAME", help="join-token (default) or tpm")
    parser.add_argument(
        "--reset", action="store_true", help="set the identity aside first; alone, show what would move"
    )
    parser.add_argument("--yes", action="store_true", help="with --reset: do it")
    options.add_log(parser)
    parser.add_argument(_TOKEN_FD, type=int, help=argparse.SUPPRESS)
    return parser


def _check_attestor(given: argparse.Namespace) -> None:
    if given.attestor not in (None, _TOKEN, _TPM):
        raise Usage(Message.USAGE, command="join", what="--attestor: want join-token or tpm")
    for flag, value in (("--token-file", given.token_file), ("--node-id", given.node_id)):
        if given.attestor == _TPM and value is not None:
            raise Usage(Message.USAGE, command="join", what=f"{flag} does not go with --attestor tpm")


def _take_out_of_environment(given: argparse.Namespace) -> None:
    """Restarts the program when the token is in its environment: nothing else takes it out of /proc/<pid>/environ."""
    if ENVIRONMENT not in os.environ:
        return
    if given.token_file is not None:
        raise Usage(Message.TWO_CREDENTIALS, one=ENVIRONMENT, other="--token-file")
    if given.token_fd is not None or given.attestor == _TPM or (given.reset and not given.yes):
        restart_dropping(ENVIRONMENT)
    restart_without(ENVIRONMENT, _TOKEN_FD, MAX_TOKEN_BYTES + 3)


def _wanted(role: Role, node_id: NodeId | None, attestor: str | None) -> "Wanted":
    from bcd.domain.lifecycle.begin_join import Wanted

    return Wanted(role, node_id, attestor)


def _join(build: Build, given: argparse.Namespace, wanted: "Wanted") -> int:
    from bcd.adapters.log.events import LogEvents
    from bcd.wiring import settings

    config = settings.read(given.config, options.config_flags(given))
    events = LogEvents(config.log_level, config.log_format)
    container = build.container()(config=config, events=events, credential=_credential(given, config, events))
    if given.reset and not given.yes:
        render.reset_plan(config.data_dir, container.reset().plan())
        raise Usage(Message.RESET_NEEDS_YES)
    try:
        if given.reset:
            _reset(container, by_tpm=given.attestor == _TPM)
        joined: Joined = container.join()(wanted)
    finally:
        container.give_tpm_back()
    render.joined(joined)
    if joined.already:
        _tell_what_is_wrong(container, joined.identity)
    return Exit.OK


def _tell_what_is_wrong(container: "Node", identity: "Identity") -> None:
    """A join unit runs at every boot and must not fail for this: whether the clock or the certificate is wrong, and
    what is revoked, the server decides."""
    try:
        journal = container.journal().look()
    except Failure:
        journal = NoJournal()
    wrong = _wrong(identity, journal, container.clock().now())
    if wrong:
        render.error(wrong)


def _wrong(identity: "Identity", journal: JournalState, now: datetime) -> str:
    """The way back from an identity that loads and is of no use; empty where nothing is known against it."""
    if isinstance(journal, JournalOf) and journal.owner == identity.node_id:
        told = journal.told
        # A node that runs has not been told, or has an answer of its own by now.
        if not told.running and told.session.startswith(REVOKED) and told.session_since is not None:
            return Message.REVOKED_BEFORE.value.format(session=told.session, when=render.time(told.session_since))
    expired = identity.leaf.not_after
    return Message.EXPIRED.value.format(when=render.time(expired)) if now >= expired else ""


def _reset(container: "Node", *, by_tpm: bool) -> None:
    """Moves the identity aside, once everything is there to join again with: a configuration, and a key to seal to and
    a token, or a TPM that can attest."""
    if by_tpm:
        container.join()
        container.attestor().ak_name()
    else:
        from bcd.adapters.credential.sources import Taken

        source: CredentialSource = container.credential()
        container.credential.override(Taken(source.take(), source))
        # Made with the token that was taken, not before.
        container.join()
        container.recipient()
    reset = container.reset()
    with container.fs().lock(LOCK_WAIT_S):
        render.was_reset(reset())


def _credential(given: argparse.Namespace, config: "Config", events: "Events") -> "CredentialSource":
    from bcd.adapters.credential import sources

    if given.token_fd is not None:
        return sources.InheritedDescriptor(given.token_fd)
    if given.token_file is not None:
        return sources.TokenFile(given.token_file, config.data_dir, events)
    return sources.StandardInput(sys.stdin.fileno() if sys.stdin is not None else 0)
