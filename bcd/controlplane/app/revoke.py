"""Revoking: the node's generation rises, and with it every certificate of before is dead."""

from dataclasses import replace
from datetime import datetime

from bcd.controlplane.domain.certificates import CertificateState
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId

_OPEN = frozenset({CertificateState.ISSUED, CertificateState.CURRENT})


def revoke_node(records: Records, node: Node, reason: str, now: datetime) -> Node:
    """The node as it is now; the certificates are dead in the caller's transaction."""
    risen = replace(node, generation=node.generation + 1)
    records.nodes.put(risen)
    revoke_certificates(records, node.id, reason, now)
    return risen


def revoke_certificates(records: Records, node_id: NodeId, reason: str, now: datetime) -> None:
    """Retired and void ones too: whoever turns up with one is told the reason. What expired is left alone."""
    for certificate in records.certificates.of_node(node_id):
        lives = certificate.not_after > now or certificate.state in _OPEN
        if lives and certificate.state is not CertificateState.REVOKED:
            records.certificates.put(
                replace(certificate, state=CertificateState.REVOKED, state_since=now, reason=reason)
            )
