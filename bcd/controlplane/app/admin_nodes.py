"""The operator's commands about nodes that have joined."""

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from bcd.controlplane.app import views
from bcd.controlplane.app.revoke import revoke_node
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.audit import OPERATOR, Event, Kind
from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.failures import NotPermitted, Usage
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.news import Item, NodeRevoked, RenewalDue
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.tpms import denied_with
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model.names import NodeId

T = TypeVar("T")
NodeCommand = admin.ListNodes | admin.ShowNode | admin.RevokeNode | admin.DeleteNode | admin.AskRenewal
# It is shown in one line of a log, and in a table.
MAX_REASON = 200
DELETED = "deleted"


@dataclass(frozen=True)
class NodeCommands:
    settings: Settings
    store: Store
    clock: WallClock
    news: News

    def __call__(self, command: NodeCommand) -> object:
        read = self.store.read
        match command:
            case admin.ListNodes():
                live = self.news.live()
                return read(lambda records: tuple(self._view(records, node, live) for node in records.nodes.all()))
            case admin.ShowNode(id):
                return read(lambda records: self._show(records, NodeId(id)))
            case admin.RevokeNode(id, reason):
                told = f"operator: {_reason('nodes revoke', reason)}"
                return self._told(lambda records: self._revoke(records, NodeId(id), told))
            case admin.DeleteNode(id):
                return self._told(lambda records: self._delete(records, NodeId(id)))
            case admin.AskRenewal(one, reason):
                why = _reason("nodes renew-now", reason)
                wanted = NodeId(one) if one is not None else None
                return self._told(lambda records: self._ask(records, wanted, why))

    def _told(self, work: Callable[[Records], tuple[T, list[Item]]]) -> T:
        """`work` in one transaction; sessions hear of it once it is durable."""
        result, items = self.store.change(work).result()
        for item in items:
            self.news.tell(item)
        return result

    def _view(self, records: Records, node: Node, live: Set[NodeId]) -> admin.NodeView:
        return views.node(records, node, self.settings, live)

    def _show(self, records: Records, node_id: NodeId) -> admin.NodeDetail:
        node = _node(records, node_id)
        return admin.NodeDetail(
            self._view(records, node, self.news.live()),
            views.claims(node.claims),
            tuple(views.certificate(row) for row in records.certificates.of_node(node_id)),
        )

    def _revoke(self, records: Records, node_id: NodeId, reason: str) -> tuple[admin.RevokedView, list[Item]]:
        node = _node(records, node_id)
        items = self._revoked(records, node, reason, Kind.NODE_REVOKED)
        return admin.RevokedView(node_id, _node(records, node_id).generation, _comes_back_by(records, node)), items

    def _delete(self, records: Records, node_id: NodeId) -> tuple[admin.DeletedView, list[Item]]:
        node = _node(records, node_id)
        items = self._revoked(records, node, DELETED, Kind.NODE_DELETED)
        # Its certificates stay: they are known, and known to be dead.
        records.nodes.remove(node_id)
        return admin.DeletedView(node_id, _comes_back_by(records, node)), items

    def _revoked(self, records: Records, node: Node, reason: str, kind: Kind) -> list[Item]:
        now = self.clock.now()
        revoked: NodeRevoked | None = revoke_node(records, node, reason, now)
        if revoked is not None or kind is Kind.NODE_DELETED:
            records.audit.add(Event(now, OPERATOR, kind, {"node": node.id, "reason": reason}))
        return [revoked] if revoked is not None else []

    def _ask(self, records: Records, node_id: NodeId | None, reason: str) -> tuple[admin.RenewalsView, list[Item]]:
        now = self.clock.now()
        if node_id is None:
            nodes = [node for node in records.nodes.all() if _revoked_for(records, node.id) is None]
        else:
            nodes = [_node(records, node_id)]
            if (why := _revoked_for(records, node_id)) is not None:
                raise NotPermitted(Message.NODE_IS_REVOKED, id=node_id, reason=why)
        for node in nodes:
            records.nodes.put(replace(node, renew_asked=now, renew_reason=reason))
        detail: dict[str, str | int | bool] = {"node": node_id or "all", "nodes": len(nodes), "reason": reason}
        records.audit.add(Event(now, OPERATOR, Kind.RENEWAL_ASKED, detail))
        live = self.news.live()
        view = admin.RenewalsView(len(nodes), sum(node.id in live for node in nodes))
        return view, [RenewalDue(node.id, reason) for node in nodes]


def _node(records: Records, node_id: NodeId) -> Node:
    node = records.nodes.get(node_id)
    if node is None:
        raise Usage(Message.NO_SUCH_NODE, id=node_id)
    return node


def _comes_back_by(records: Records, node: Node) -> str:
    return "" if not node.ek or denied_with(records, [node.ek]) else node.ek


def _revoked_for(records: Records, node_id: NodeId) -> str | None:
    """Why its certificates are revoked, every one of them, or None: one is not, or none is known here."""
    known = records.certificates.of_node(node_id)
    revoked = [one.reason for one in known if one.state is CertificateState.REVOKED]
    return revoked[-1] if revoked and len(revoked) == len(known) else None


def _reason(command: str, text: str) -> str:
    if not text.strip() or len(text) > MAX_REASON or not text.isprintable():
        raise Usage(Message.USAGE, command=command, what=f"--reason is 1 to {MAX_REASON} printable characters")
    return text.strip()
