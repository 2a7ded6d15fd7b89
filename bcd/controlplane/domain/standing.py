"""How a presented certificate stands: the records in, a standing out. Reads alone; `app.use` carries it out.

The states are docs/protocol.md's, "States of a certificate": issued, current, retired, void, revoked.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from bcd.controlplane.domain.certificates import Certificate, CertificateState, issued_of
from bcd.controlplane.domain.gateway import Dead, OutOfDate, Presented, Superseded
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId

# A renewal in the second of the one before is dated a second later, so that it ends later: of two certificates this
# close the dates do not tell which came first.
SAME_MOMENT = timedelta(seconds=2)
# What a node is told of a certificate that died with its generation and has no reason of its own.
ANOTHER_GENERATION = "another generation"


@dataclass(frozen=True)
class Good:
    """Current, or issued and used for the first time."""

    node: Node
    certificate: Certificate


@dataclass(frozen=True)
class Copied:
    """A certificate in use that nobody should have any more: somebody holds a copy of this node's key."""

    node: Node
    certificate: Certificate


@dataclass(frozen=True)
class Adopt:
    """Issued after the backup that was put back; `node` is None when the backup is older than the node too."""

    node: Node | None


@dataclass(frozen=True)
class Alarm:
    """It cannot be, and the fault is more likely ours than the node's."""

    why: str


Standing = Good | Copied | Adopt | Alarm | Dead | Superseded | OutOfDate


def judge(records: Records, presented: Presented, now: datetime, grace: timedelta) -> Standing:
    """`grace`: how long a retired certificate may still turn up without anybody being suspected."""
    leaf = presented.leaf
    certificate = records.certificates.get(presented.serial)
    if certificate is None or certificate.leaf_sha256 != leaf.sha256:
        return _unknown(records, presented, now)
    node = records.nodes.get(certificate.node_id)
    if certificate.state is CertificateState.REVOKED:
        return Dead(certificate.reason, certificate.state_since)
    if node is None or certificate.generation > node.generation:
        return Alarm("the store has the certificate, but not its node's generation")
    # A generation ends by a revocation or a new join, never otherwise.
    if certificate.generation < node.generation:
        return Dead(ANOTHER_GENERATION, certificate.state_since)
    if now >= leaf.not_after:
        return OutOfDate()
    if now < leaf.not_before:
        return Alarm("this server's clock is behind the certificate it issued")
    match certificate.state:
        case CertificateState.ISSUED | CertificateState.CURRENT:
            return Good(node, certificate)
        case CertificateState.RETIRED if now - certificate.state_since < grace:
            return Superseded()
    return Copied(node, certificate)


def _unknown(records: Records, presented: Presented, now: datetime) -> Standing:
    """The node root vouches for it and the store does not know it: the store is not the one that issued it."""
    leaf = presented.leaf
    restoration = records.restorations.newest()
    if restoration is None:
        return Alarm("the store does not know the certificate: if a backup was put back, run bcd-controlplane restored")
    if now >= leaf.not_after:
        return OutOfDate()
    issued = issued_of(leaf.not_before, leaf.not_after)
    ended = [
        row
        for row in records.certificates.of_node(presented.node_id)
        if row.state is CertificateState.REVOKED and row.state_since >= issued
    ]
    if ended:
        # Revoked, or joined anew, after this one was issued: it died with its generation, known or not.
        return Dead(ended[-1].reason or ANOTHER_GENERATION, ended[-1].state_since)
    if leaf.not_before > restoration.at:
        return Alarm("the store does not know the certificate, and it was issued after the backup was put back")
    newest = records.certificates.newest(presented.node_id)
    node = records.nodes.get(presented.node_id)
    if node is not None and newest is not None and _renewed_since(newest, restoration.at):
        # Somebody renewed from what the backup knew, and uses that, while this one lives on: two hold the node's keys.
        return Copied(node, _seen(presented, node))
    if newest is not None and issued + SAME_MOMENT < issued_of(newest.not_before, newest.not_after):
        return Alarm("the store does not know the certificate, and knows a newer one of the node")
    if node is not None and (node.site != leaf.spiffe_id.site or node.role is not leaf.role):
        return Alarm("the store does not know the certificate, and has the node with another site or role")
    return Adopt(node)


def _renewed_since(newest: Certificate, restored: datetime) -> bool:
    """Whether the node's certificate in use came of a renewal after the restore. One that came of a join says nothing:
    whoever joined anew has left what was before."""
    renewed = newest.credential.startswith("leaf:") and newest.issued > restored
    return renewed and newest.state is CertificateState.CURRENT


def _seen(presented: Presented, node: Node) -> Certificate:
    """An unknown certificate as it would stand in the store, for the record of what was seen."""
    leaf = presented.leaf
    issued = issued_of(leaf.not_before, leaf.not_after)
    return Certificate(
        serial=presented.serial,
        node_id=node.id,
        generation=node.generation,
        state=CertificateState.VOID,
        state_since=issued,
        credential="",
        parent="",
        spki_sha256=sha256(leaf.spki).digest(),
        leaf_sha256=leaf.sha256,
        issued=issued,
        not_before=leaf.not_before,
        not_after=leaf.not_after,
    )


def last_generation(records: Records, node_id: NodeId) -> int:
    """The highest any certificate of a node with this id ever had; 0 without one."""
    return max((row.generation for row in records.certificates.of_node(node_id)), default=0)
