"""The commands that look at, or change, what a control plane remembers."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from bcd.controlplane.adapters.admin.client import Client
from bcd.controlplane.adapters.files.directory import Directory
from bcd.controlplane.cli import show, show_changes, show_eks
from bcd.controlplane.cli.render import print_json, print_json_line
from bcd.controlplane.domain import admin, admin_eks
from bcd.controlplane.domain.approvals import ApprovalState
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.store import Store

# How often `audit tail --follow` asks, in seconds.
FOLLOW_S = 0.5


def client(path: str) -> Client:
    """Refuses a directory that is not a complete control plane."""
    directory = Directory(path)
    directory.check_private()
    directory.settings()
    opened: list[Store] = []

    def run(command: admin.Command) -> object:
        # Only when no server runs.
        from bcd.controlplane.adapters.sqlite.store import NotAStore
        from bcd.controlplane.cli.unusable import unusable
        from bcd.controlplane.wiring import commands

        try:
            opened.append(commands.store(directory))
        except NotAStore as error:
            raise unusable(error, path) from None
        return commands.admin(directory, opened[-1])(command)

    def close() -> None:
        for store in opened:
            store.close()
        directory.close()

    return Client(directory, run, close)


def _ask(path: str, command: admin.Command) -> Any:
    ask = client(path)
    try:
        return ask(command)
    finally:
        ask.close()


def _asks(make: Callable[[Namespace], admin.Command], text: Callable[[Any], None]) -> Callable[[Namespace], int]:
    def run(arguments: Namespace) -> int:
        result = _ask(arguments.dir, make(arguments))
        if arguments.json:
            print_json(result)
        else:
            text(result)
        return 0

    return run


def _create(arguments: Namespace) -> admin.Command:
    return admin.CreateToken(
        site=arguments.site,
        role=arguments.role.value,
        node_id=arguments.node_id,
        allow_reclaim=arguments.allow_reclaim,
        require_approval=arguments.require_approval,
        ttl_s=int(arguments.ttl.total_seconds()),
        uses=arguments.uses,
    )


def _ask_renewal(arguments: Namespace) -> admin.Command:
    if (arguments.id is None) is not arguments.all:
        raise Usage(Message.USAGE, command="nodes renew-now", what="name one node, or --all")
    return admin.AskRenewal(arguments.id, arguments.reason)


def _key(path: str) -> str:
    from bcd.controlplane.cli import public_key

    return public_key.read(path).hex()


def _import_roots(arguments: Namespace) -> int:
    from bcd.controlplane.cli import ek_files

    found = ek_files.read(arguments.path)
    done = _ask(arguments.dir, admin_eks.ImportEkRoots(tuple(der.hex() for der in found.certificates)))
    view = admin_eks.EkRootsImportView(done.added, done.known, found.skipped)
    if arguments.json:
        print_json(view)
    else:
        show_eks.imported_roots(view)
    return 0


def _approvals(arguments: Namespace) -> int:
    rows = _ask(arguments.dir, admin.ListApprovals())
    if arguments.pending:
        rows = tuple(row for row in rows if row.state == ApprovalState.PENDING)
    if arguments.json:
        print_json(rows)
    else:
        show.approvals(rows)
    return 0


def _rows(arguments: Namespace) -> admin.Command:
    from bcd.controlplane.cli import ek_csv

    return admin_eks.ImportEks(arguments.file, ek_csv.read(arguments.file))


def _tail(arguments: Namespace) -> int:
    """With --follow a line an event, until Ctrl-C; it outlives the server it asks."""
    if not arguments.follow:
        return _TAIL(arguments)
    text = print_json_line if arguments.json else show.event
    place: int | None = None
    try:
        while True:
            found = _ask(arguments.dir, admin.TailAudit(arguments.limit, place))
            for event in found:
                text(event)
            place = found[-1].seq if found else place or 0
            time.sleep(FOLLOW_S)
    except KeyboardInterrupt:
        return 0


_TAIL = _asks(lambda a: admin.TailAudit(a.limit, None), show.events)

COMMANDS: dict[str, Callable[[Namespace], int]] = {
    "token-create": _asks(_create, show.new_token),
    "token-list": _asks(lambda _: admin.ListTokens(), show.tokens),
    "token-revoke": _asks(lambda a: admin.RevokeToken(a.id), show.revoked),
    "nodes-list": _asks(lambda _: admin.ListNodes(), show.nodes),
    "nodes-show": _asks(lambda a: admin.ShowNode(a.id), show.node),
    "nodes-revoke": _asks(lambda a: admin.RevokeNode(a.id, a.reason), show_changes.revoked_node),
    "nodes-delete": _asks(lambda a: admin.DeleteNode(a.id), show_changes.deleted_node),
    "nodes-renew-now": _asks(_ask_renewal, show_changes.renewals),
    "trust-show": _asks(lambda _: admin.ShowTrust(), show_changes.trust),
    "trust-add-root": _asks(lambda a: admin.AddRoot(_key(a.file)), show_changes.trust),
    "trust-remove-root": _asks(lambda a: admin.RemoveRoot(a.pin), show_changes.trust),
    "trust-add-approver": _asks(lambda a: admin.AddApprover(a.name, _key(a.file)), show_changes.trust),
    "trust-remove-approver": _asks(lambda a: admin.RemoveApprover(a.name), show_changes.trust),
    "ek-roots-import": _import_roots,
    "ek-roots-list": _asks(lambda _: admin_eks.ListEkRoots(), show_eks.roots),
    "ek-roots-admit": _asks(lambda a: admin_eks.AdmitEkRoot(a.root, a.site, a.role.value), show_eks.admitting),
    "ek-roots-withdraw": _asks(lambda a: admin_eks.WithdrawEkRoot(a.root), show_eks.withdrawn),
    "ek-roots-remove": _asks(lambda a: admin_eks.RemoveEkRoot(a.root), show_eks.removed_root),
    "ek-allow": _asks(lambda a: admin_eks.AllowEk(a.ek, a.site, a.role.value, a.node_id, a.note), show_eks.allowed),
    "ek-deny": _asks(lambda a: admin_eks.DenyEk(a.ek, a.note), show_eks.denied),
    "ek-remove": _asks(lambda a: admin_eks.RemoveEk(a.ek), show_eks.removed),
    "ek-list": _asks(lambda _: admin_eks.ListEks(), show_eks.keys),
    "ek-import": _asks(_rows, show_eks.imported),
    "restored": _asks(lambda a: admin.Restored(a.bundle_above), show_changes.restored),
    "refusals-list": _asks(lambda a: admin.ListRefusals(a.limit), show.refusals),
    "refusals-show": _asks(lambda a: admin.ShowRefusal(a.id), show.refusal),
    "approvals-list": _approvals,
    "approvals-approve": _asks(lambda a: admin.DecideApproval(a.id, True, a.site), show.approval),
    "approvals-deny": _asks(lambda a: admin.DecideApproval(a.id, False), show.approval),
    "audit-tail": _tail,
}
