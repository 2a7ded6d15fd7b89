"""Revoking: the node's generation rises, and with it every certificate of before is dead."""

from dataclasses import replace
from datetime import datetime

from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.ports.store import Records

_OPEN = frozenset({CertificateState.ISSUED, CertificateState.CURRENT})


def revoke_node(records: Records, node: Node, reason: str, now: datetime) -> NodeRevoked | None:
    """What sessions have to hear once it is durable; None when there was nothing left to revoke.

    Retired and void certificates too: whoever turns up with one is told the reason."""
    revoked = 0
    for certificate in records.certificates.of_node(node.id):
        lives = certificate.not_after > now or certificate.state in _OPEN
        if lives and certificate.state is not CertificateState.REVOKED:
            records.certificates.put(
                replace(certificate, state=CertificateState.REVOKED, state_since=now, reason=reason)
            )
            revoked += 1
    newest = records.certificates.newest(node.id)
    if not revoked and newest is not None and records.restorations.newest() is not None:
        # A backup was put back, and the certificate that is meant may be one it does not know: whatever was issued
        # before now is dead (`standing.judge`).
        records.certificates.put(replace(newest, state=CertificateState.REVOKED, state_since=now, reason=reason))
        revoked = 1
    if not revoked:
        return None
    records.nodes.put(replace(node, generation=node.generation + 1))
    return NodeRevoked(node.id, node.generation + 1, reason, now)
