"""Using a certificate: what its use changes, in the transaction of the call it was used for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.app.alarms import Alarms
from bcd.controlplane.app.note import Effect, Note
from bcd.controlplane.app.revoke import revoke_node
from bcd.controlplane.domain import standing
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import Certificate, CertificateState, issued_of
from bcd.controlplane.domain.gateway import Dead, No, NotNow, OutOfDate, Presented, Superseded
from bcd.controlplane.domain.ids import TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.standing import Adopt, Alarm, Copied, Good, judge
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.store import Records
from bcd.domain.model.claims import Claims

CLONE_SUSPECTED = "clone-suspected"


@dataclass(frozen=True)
class InUse:
    """The certificate is the node's current one."""

    node: Node
    certificate: Certificate


@dataclass(frozen=True)
class Call:
    """One use, within its transaction; `after` is given what is to be done once that is durable."""

    records: Records
    presented: Presented
    now: datetime
    after: Callable[[Effect], None]


@dataclass(frozen=True)
class UseCertificate:
    settings: Settings
    news: News
    log: Log
    alarms: Alarms

    def __call__(self, call: Call) -> InUse | No:
        found = judge(call.records, call.presented, call.now, self.settings.retired_grace)
        match found:
            case Good(node, certificate):
                return self._used(call, node, certificate)
            case Adopt(node):
                return self._adopt(call, node)
            case Copied(node, certificate):
                return self._copied(call, node, certificate)
            case Alarm(why):
                return self.alarm(call, why)
            case Dead() | Superseded() | OutOfDate():
                return found

    def alarm(self, call: Call, why: str) -> NotNow:
        """Something that cannot be: told, and nothing is decided about the node."""
        call.after(self.alarms.raise_(call.records, call.presented, why, call.now))
        return NotNow(why)

    def _used(self, call: Call, node: Node, certificate: Certificate) -> InUse:
        if certificate.state is CertificateState.CURRENT:
            return InUse(node, certificate)
        records, presented, now = call.records, call.presented, call.now
        used = replace(
            certificate,
            state=CertificateState.CURRENT,
            state_since=now,
            first_used=now,
            first_used_from=presented.source,
        )
        for other in records.certificates.open(node.id):
            if other.serial == used.serial:
                continue
            # The current one is the parent, or after a restore an ancestor; issued ones are siblings nobody used.
            was_current = other.state is CertificateState.CURRENT
            state = CertificateState.RETIRED if was_current else CertificateState.VOID
            records.certificates.put(replace(other, state=state, state_since=now))
        records.certificates.put(used)
        call.after(
            Note("certificate in use", {"node": node.id, "serial": used.serial, "source": presented.source}).to(
                self.log
            )
        )
        return InUse(node, used)

    def _copied(self, call: Call, node: Node, certificate: Certificate) -> No:
        records, presented, now = call.records, call.presented, call.now
        current = next(
            (row for row in records.certificates.open(node.id) if row.state is CertificateState.CURRENT), None
        )
        revoked = revoke_node(records, node, CLONE_SUSPECTED, now)
        if revoked is None:
            raise AssertionError("the certificate in use was not revoked before")
        # Both observations: what was used just now, and what the node itself uses.
        detail: dict[str, str | int | bool] = {
            "node": node.id,
            "generation": revoked.generation,
            "serial": certificate.serial,
            "state": certificate.state.value,
            "since": _time(certificate.state_since),
            "source": presented.source,
            "otherSerial": current.serial if current else "",
            "otherFirstUsed": _time(current.first_used) if current and current.first_used else "",
            "otherSource": current.first_used_from if current else "",
        }
        records.audit.add(Event(now, f"node:{presented.source}", Kind.NODE_CLONED, detail))
        call.after(Note("node revoked: a copy of its key is in use", detail, warning=True).to(self.log))
        call.after(lambda: self.news.tell(revoked))
        return Dead(CLONE_SUSPECTED, now)

    def _adopt(self, call: Call, known: Node | None) -> InUse:
        records, presented, now = call.records, call.presented, call.now
        leaf = presented.leaf
        node = known or Node(
            id=presented.node_id,
            site=leaf.spiffe_id.site,
            role=leaf.role,
            generation=1 + standing.last_generation(records, presented.node_id),
            machine="",
            claims=Claims(),
            daemon_version="",
            token_id=TokenId(""),
            created=now,
            joined=now,
        )
        node = replace(node, ak_name=leaf.ak_name)
        certificate = Certificate(
            serial=presented.serial,
            node_id=node.id,
            generation=node.generation,
            state=CertificateState.ISSUED,
            state_since=now,
            credential="",
            parent="",
            spki_sha256=sha256(leaf.spki).digest(),
            leaf_sha256=leaf.sha256,
            issued=issued_of(leaf.not_before, leaf.not_after),
            not_before=leaf.not_before,
            not_after=leaf.not_after,
        )
        records.nodes.put(node)
        records.certificates.put(certificate)
        detail: dict[str, str | int | bool] = {"node": node.id, "serial": certificate.serial, "newNode": known is None}
        records.audit.add(Event(now, f"node:{presented.source}", Kind.CERTIFICATE_ADOPTED, detail))
        told = {"source": presented.source, **detail}
        call.after(Note("certificate adopted after a restore", told, warning=True).to(self.log))
        return self._used(call, node, certificate)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
