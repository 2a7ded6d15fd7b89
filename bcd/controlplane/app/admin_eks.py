"""The operator's commands about endorsement keys: whose machines may join, and which manufacturers vouch for TPMs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from bcd.controlplane.app import views
from bcd.controlplane.domain import admin_eks as admin
from bcd.controlplane.domain.approvals import ApprovalState
from bcd.controlplane.domain.audit import OPERATOR, Event, Kind
from bcd.controlplane.domain.challenges import ek_credential
from bcd.controlplane.domain.eks import MAX_NOTE, EkRoot, ListedEk, MalformedDigest, digest
from bcd.controlplane.domain.failures import NotPermitted, Usage
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model import names
from bcd.domain.model.names import NodeId
from bcd.protocol.pki import ek_certificate
from bcd.protocol.pki.ek_certificate import ManufacturerCertificate

T = TypeVar("T")


@dataclass(frozen=True)
class EkCommands:
    store: Store
    clock: WallClock

    def __call__(self, command: admin.EkCommand) -> object:
        read, change = self.store.read, self._change
        match command:
            case admin.ImportEkRoots(certificates):
                every = [_authority(text) for text in certificates]
                return change(lambda records: self._import_roots(records, every))
            case admin.ListEkRoots():
                return read(lambda records: tuple(views.ek_root(row) for row in records.ek_roots.all()))
            case admin.AdmitEkRoot(fingerprint, site, role):
                asked = _where("ek-roots admit", site, role, None)
                return change(lambda records: self._admit(records, _digest("ek-roots admit", fingerprint), asked))
            case admin.WithdrawEkRoot(fingerprint):
                return change(lambda records: self._withdraw(records, _digest("ek-roots withdraw", fingerprint)))
            case admin.RemoveEkRoot(fingerprint):
                return change(lambda records: self._remove_root(records, _digest("ek-roots remove", fingerprint)))
            case admin.AllowEk():
                return change(lambda records: views.listed_ek(records, self._allow(records, command)))
            case admin.DenyEk(ek, note):
                return change(lambda records: self._deny(records, _digest("ek deny", ek), note))
            case admin.RemoveEk(ek):
                return change(lambda records: self._remove(records, _digest("ek remove", ek)))
            case admin.ListEks():
                return read(lambda records: tuple(views.listed_ek(records, row) for row in records.eks.all()))
            case admin.ImportEks(file, rows):
                return change(lambda records: self._import(records, file, rows))

    def _change(self, work: Callable[[Records], T]) -> T:
        return self.store.change(work).result()

    def _note(self, records: Records, kind: Kind, detail: dict[str, str | int | bool]) -> None:
        records.audit.add(Event(self.clock.now(), OPERATOR, kind, detail))

    # ---- manufacturers' CAs

    def _import_roots(self, records: Records, every: list[ManufacturerCertificate]) -> admin.EkRootsImported:
        added = 0
        # A manufacturer's directory often holds one certificate in several files.
        different = {f"sha256:{sha256(one.der).hexdigest()}": one for one in every}
        for fingerprint, one in different.items():
            if records.ek_roots.get(fingerprint) is None:
                records.ek_roots.put(EkRoot(fingerprint, one.der, self.clock.now()))
                self._note(records, Kind.EK_ROOT_ADDED, {"root": fingerprint, "subject": str(one.subject)})
                added += 1
        return admin.EkRootsImported(added, len(different) - added)

    def _admit(self, records: Records, fingerprint: str, where: "_Where") -> admin.EkRootView:
        root = _root(records, fingerprint)
        opened = replace(root, site=where.site, role=where.role)
        if opened != root:
            records.ek_roots.put(opened)
            view = views.ek_root(opened)
            detail = {"root": fingerprint, "subject": view.subject, "site": where.site, "role": where.role.value}
            self._note(records, Kind.EK_ROOT_ADMITS, {**detail})
        return views.ek_root(opened)

    def _withdraw(self, records: Records, fingerprint: str) -> admin.EkRootView:
        root = _root(records, fingerprint)
        if root.site is not None:
            self._note(records, Kind.EK_ROOT_WITHDRAWN, {"root": fingerprint, "site": root.site})
            root = replace(root, site=None, role=None)
            records.ek_roots.put(root)
        return views.ek_root(root)

    def _remove_root(self, records: Records, fingerprint: str) -> admin.EkRootRemovedView:
        view = views.ek_root(_root(records, fingerprint))
        records.ek_roots.remove(fingerprint)
        self._note(records, Kind.EK_ROOT_REMOVED, {"root": fingerprint, "subject": view.subject})
        return admin.EkRootRemovedView(fingerprint, view.subject)

    # ---- the allow-list

    def _allow(self, records: Records, asked: admin.AllowEk) -> ListedEk:
        """As `allow`, and the machine that may wait for it is answered."""
        row = self.allow(records, asked)
        self._decide(records, row, ApprovalState.APPROVED, Kind.APPROVAL_GIVEN)
        return row

    def _decide(self, records: Records, row: ListedEk, state: ApprovalState, kind: Kind) -> None:
        """The question whether this key may join, if somebody has put it and nobody answered yet."""
        now = self.clock.now()
        for question in records.approvals.of_credential(ek_credential(row.ek)):
            if question.state is ApprovalState.PENDING and not question.lapsed(now):
                records.approvals.put(replace(question, state=state, site=row.site or question.site, decided=now))
                self._note(records, kind, {"approval": question.id, "source": question.source, "ek": row.ek})

    def allow(self, records: Records, asked: admin.AllowEk) -> ListedEk:
        """In the caller's transaction. Usage, NotPermitted: it may not be."""
        ek, where = _digest("ek allow", asked.ek), _where("ek allow", asked.site, asked.role, asked.node_id)
        _check_node(records, where)
        old = records.eks.get(ek)
        row = ListedEk(
            ek,
            where.site,
            where.role,
            where.node_id,
            denied=False,
            note=_noted("ek allow", asked.note),
            listed=old.listed if old else self.clock.now(),
        )
        if row != old:
            records.eks.put(row)
            detail = {"ek": ek, "site": where.site, "role": where.role.value, "node": where.node_id or ""}
            self._note(records, Kind.EK_ALLOWED, {**detail, "note": row.note})
        return row

    def _deny(self, records: Records, ek: str, note: str | None) -> admin.EkView:
        old = records.eks.get(ek)
        row = old or ListedEk(ek, None, names.Role.NODE, None, denied=True, note="", listed=self.clock.now())
        row = replace(row, denied=True, note=row.note if note is None else _noted("ek deny", note))
        if row != old:
            records.eks.put(row)
            self._note(records, Kind.EK_DENIED, {"ek": ek, "note": row.note})
        # Left open, whoever approves it later would let the key in again without having meant to.
        self._decide(records, row, ApprovalState.DENIED, Kind.APPROVAL_DENIED)
        return views.listed_ek(records, row)

    def _remove(self, records: Records, ek: str) -> admin.EkRemovedView:
        if records.eks.get(ek) is None:
            raise Usage(Message.NO_SUCH_EK, ek=ek)
        records.eks.remove(ek)
        self._note(records, Kind.EK_REMOVED, {"ek": ek})
        return admin.EkRemovedView(ek)

    def _import(self, records: Records, file: str, rows: tuple[admin.EkRow, ...]) -> admin.EksImported:
        """Every row or, as the work raises, none."""
        added = changed = 0
        for row in rows:
            try:
                asked = admin.AllowEk(row.ek, row.site, row.role, row.node_id, row.note)
                old = records.eks.get(_digest("ek import", row.ek))
                if old is not None and old.denied:
                    # A list of thousands must not let back in whom somebody shut out by hand.
                    raise Usage(Message.USAGE, command="ek import", what=f"{old.ek} is denied")
                new = self._allow(records, asked)
            except (Usage, NotPermitted) as failure:
                why = failure.fields.get("what", failure)
                raise Usage(Message.EK_FILE_LINE, path=file, line=row.line, why=why) from None
            added += old is None
            changed += old is not None and old != new
        return admin.EksImported(added, changed, len(rows) - added - changed)


@dataclass(frozen=True)
class _Where:
    site: names.SiteId
    role: names.Role
    node_id: NodeId | None


def _where(command: str, site: str, role: str, node_id: str | None) -> _Where:
    try:
        return _Where(names.site_id(site), names.role(role), names.node_id(node_id) if node_id is not None else None)
    except names.MalformedName as error:
        raise Usage(Message.USAGE, command=command, what=str(error)) from None


def _check_node(records: Records, where: _Where) -> None:
    node = records.nodes.get(where.node_id) if where.node_id is not None else None
    if node is not None and node.site != where.site:
        raise NotPermitted(Message.NODE_OF_ANOTHER_SITE, id=node.id, have=node.site, want=where.site)


def _digest(command: str, text: str) -> str:
    try:
        return digest(text)
    except MalformedDigest as error:
        raise Usage(Message.USAGE, command=command, what=str(error)) from None


def _noted(command: str, text: str) -> str:
    if len(text) > MAX_NOTE or not text.isprintable():
        raise Usage(Message.USAGE, command=command, what=f"a note is at most {MAX_NOTE} printable characters")
    return text.strip()


def _root(records: Records, fingerprint: str) -> EkRoot:
    root = records.ek_roots.get(fingerprint)
    if root is None:
        raise Usage(Message.NO_SUCH_EK_ROOT, root=fingerprint)
    return root


def _authority(text: str) -> ManufacturerCertificate:
    try:
        return ek_certificate.read_authority(bytes.fromhex(text))
    except ValueError as error:
        raise Usage(Message.USAGE, command="ek-roots import", what=str(error)) from None
