"""Records as the operator is shown them."""

from collections.abc import Set
from dataclasses import fields
from datetime import datetime

from bcd.controlplane.domain import admin, admin_eks, tpms
from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.audit import Recorded
from bcd.controlplane.domain.certificates import Certificate
from bcd.controlplane.domain.eks import EkRoot, ListedEk
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import WAY_BACK, Refusal
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.tokens import Token
from bcd.controlplane.domain.trust import TrustContent
from bcd.controlplane.ports.store import Records
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, SpiffeId
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ek_certificate


def token(row: Token, now: datetime) -> admin.TokenView:
    return admin.TokenView(
        id=row.id,
        site=row.site,
        role=row.role.value,
        node_id=row.node_id,
        allow_reclaim=row.allow_reclaim,
        require_approval=row.require_approval,
        state=row.state(now),
        uses=row.uses,
        used=row.used,
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
    )


def claims(row: Claims) -> admin.ClaimsView:
    return admin.ClaimsView(**{field.name: getattr(row, field.name) for field in fields(row)})


def certificate(row: Certificate) -> admin.CertificateView:
    return admin.CertificateView(
        serial=row.serial,
        generation=row.generation,
        state=row.state.value,
        state_since=row.state_since,
        key_pin=_pin(row.spki_sha256),
        not_before=row.not_before,
        not_after=row.not_after,
        first_used=row.first_used,
        first_used_from=row.first_used_from,
        reason=row.reason,
    )


def node(records: Records, row: Node, settings: Settings, live: Set[NodeId]) -> admin.NodeView:
    """`live` are the nodes with a session."""
    newest = records.certificates.newest(row.id)
    asked = row.renew_asked
    answered = newest is None or asked is None or newest.issued > asked
    return admin.NodeView(
        id=row.id,
        site=row.site,
        role=row.role.value,
        spiffe_id=str(SpiffeId(settings.trust_domain, row.site, row.id)),
        generation=row.generation,
        hostname=row.claims.hostname,
        daemon_version=row.daemon_version,
        token_id=row.token_id,
        created=row.created,
        joined=row.joined,
        certificate=newest.state.value if newest else "",
        not_after=newest.not_after if newest else None,
        session=row.id in live,
        last_seen=row.last_seen,
        renewal_asked=None if answered else asked,
        node_key=row.node_key,
        ek=row.ek,
        ak_name=row.ak_name.hex() if row.ak_name else "",
    )


def trust(version: int, content: TrustContent) -> admin.TrustView:
    return admin.TrustView(
        version=version,
        command_roots=tuple(str(Pin.of(root)) for root in content.roots),
        approvers=tuple(admin.ApproverView(one.name, str(Pin.of(one.spki))) for one in content.approvers),
        quorum=content.quorum,
    )


def refusal(row: Refusal) -> admin.RefusalView:
    return admin.RefusalView(
        id=row.id,
        at=row.at,
        reason=row.reason.value,
        detail=row.detail,
        way_back=WAY_BACK[row.reason],
        source=row.source,
        attestor=row.attestor,
        token_id=row.token_id,
        claims=claims(row.claims),
    )


def event(row: Recorded) -> admin.EventView:
    return admin.EventView(row.seq, row.event.at, row.event.actor, row.event.kind.value, row.event.detail)


def approval(records: Records, row: Approval, now: datetime) -> admin.ApprovalView:
    return admin.ApprovalView(
        id=row.id,
        state="lapsed" if row.lapsed(now) else row.state.value,
        asked=row.asked,
        decided=row.decided,
        token_id=row.token_id,
        site=row.site,
        role=row.role.value,
        node_id=row.node_id,
        reclaims=row.reclaims,
        key_pin="" if row.ek else _pin(row.spki_sha256),
        source=row.source,
        daemon_version=row.daemon_version,
        claims=claims(row.claims),
        ek=row.ek,
        beside_denied=tpms.doubt(records, row.ek) if row.ek else "",
    )


def ek_root(row: EkRoot) -> admin_eks.EkRootView:
    certificate = ek_certificate.read(row.der)
    return admin_eks.EkRootView(
        fingerprint=row.fingerprint,
        subject=str(certificate.subject),
        issuer=str(certificate.issuer),
        not_before=certificate.not_before,
        not_after=certificate.not_after,
        admits_site=row.site,
        admits_role=row.role.value if row.role else None,
        added=row.added,
    )


def listed_ek(records: Records, row: ListedEk) -> admin_eks.EkView:
    return admin_eks.EkView(
        public_key_sha256=row.ek,
        state=_state(row),
        site=row.site,
        role=row.role.value,
        node_id=row.node_id,
        joined_as=_owner(records, row.ek),
        note=row.note,
        listed=row.listed,
        others=tuple(
            admin_eks.OtherEkView(one.ek, one.tie.value, _state(records.eks.get(one.ek)), _owner(records, one.ek))
            for one in tpms.others(records, row.ek)
        ),
    )


def _state(row: ListedEk | None) -> str:
    return "" if row is None else "denied" if row.denied else "allowed"


def _owner(records: Records, ek: str) -> NodeId | None:
    owners = records.nodes.of_ek(ek)
    return owners[0].id if owners else None


def _pin(spki_sha256: bytes) -> str:
    return f"sha256:{spki_sha256.hex()}"
