"""Whether a machine may join by its TPM's endorsement key (docs/protocol.md, "Endorsement keys").

A certificate proves a genuine TPM and never that it is one of ours. So a join is granted for a key on the allow-list,
for one that owns a node already, or under a manufacturer's CA the operator has opened to everybody; any other genuine
TPM waits for a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bcd.controlplane.domain import tpms
from bcd.controlplane.domain.ek_chain import Effort, anchors_above, check_ek
from bcd.controlplane.domain.eks import EkRoot, ListedEk
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Reason
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId, Role, SiteId
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ek_certificate
from bcd.protocol.pki.ek_certificate import ManufacturerCertificate


@dataclass(frozen=True)
class OfferedEk:
    """`spki`: the public area's key, DER (`bcd.protocol.tpm2.names.spki`). `certificate` as the TPM's memory holds it,
    empty when there is none; `chain` likewise what it holds from 0x01c00100 on."""

    spki: bytes
    certificate: bytes = b""
    chain: tuple[bytes, ...] = ()

    @property
    def ek(self) -> str:
        """As the allow-list names it: `sha256:…`."""
        return str(Pin.of(self.spki))


@dataclass(frozen=True)
class Admitted:
    """The challenge goes to `offered`. `node_id`: the node it is or is to be, None for a new one. `root`: the
    fingerprint of the admitting CA, None when the key itself is known."""

    offered: OfferedEk
    site: SiteId
    role: Role
    node_id: NodeId | None
    root: str | None


@dataclass(frozen=True)
class Pending:
    """A genuine TPM nobody spoke of. `roots`: the fingerprints of the CAs above it, the nearest first. `doubt`: a CA of
    them admits, but this key may be of the TPM that has this one, which is denied."""

    offered: OfferedEk
    roots: tuple[str, ...]
    doubt: str = ""


@dataclass(frozen=True)
class Denied:
    """`detail` completes the reason, in words."""

    reason: Reason
    detail: str = ""


Verdict = Admitted | Pending | Denied
# For each key that is offered the fingerprints of the CAs above it, the nearest first, or why there is none.
Vouched = tuple[tuple[str, ...] | No, ...]


def vouch(offered: Sequence[OfferedEk], roots: Sequence[EkRoot]) -> Vouched:
    """Verifies up to MAX_SIGNATURES signatures of whoever asks, so it belongs before the store's transaction, in which
    every other node waits."""
    by_der = {root.der: root.fingerprint for root in roots}
    anchors = [_ca(root.der) for root in roots]
    effort = Effort()
    found: list[tuple[str, ...] | No] = []
    for one in offered:
        try:
            found.append(tuple(by_der[anchor.der] for anchor in _anchors(one, anchors, effort)))
        except No as trouble:
            found.append(trouble)
    return tuple(found)


def roots_in_question(records: Records, offered: Sequence[OfferedEk]) -> Sequence[EkRoot] | None:
    """What `vouch` needs to know; None where one of the keys is known, and no certificate is asked for."""
    known = any(records.eks.get(one.ek) or records.nodes.of_ek(one.ek) for one in offered)
    return None if known else records.ek_roots.all()


def judge_offered(
    records: Records, offered: Sequence[OfferedEk], ak: str = "", vouched: Vouched | None = None
) -> Verdict:
    """`judge_ek` with what the store knows. `ak`: the attestation key that is shown with them; that it is in their TPM
    need not be proved, to refuse who says so."""
    eks = [one.ek for one in offered]
    denied = tpms.denied_with(records, eks, ak) if offered else ""
    if denied and denied not in eks:
        return Denied(Reason.EK_DENIED, f"{denied}, which this TPM showed before")
    listed = [row for row in map(records.eks.get, eks) if row is not None]
    nodes = [node for ek in eks for node in records.nodes.of_ek(ek)]
    verdict = judge_ek(offered, records.ek_roots.all(), listed, nodes, vouched)
    if isinstance(verdict, Admitted) and verdict.root is not None:
        doubt = tpms.doubt(records, verdict.offered.ek)
        if doubt:
            return Pending(verdict.offered, (verdict.root,), doubt)
    return verdict


def judge_ek(
    offered: Sequence[OfferedEk],
    roots: Sequence[EkRoot],
    listed: Sequence[ListedEk],
    nodes: Sequence[Node],
    vouched: Vouched | None = None,
) -> Verdict:
    """`offered` is every endorsement key of one TPM, in its order; of `listed` and `nodes`, those of other keys are
    passed over. `vouched` as `vouch` has it, None where nobody has asked yet."""
    rows = {row.ek: row for row in listed}
    owners = {node.ek: node for node in nodes if node.ek}
    if not offered:
        return Denied(Reason.EK_MISSING)
    for one in offered:
        if (row := rows.get(one.ek)) is not None and row.denied:
            # One key of a TPM is the TPM: it does not get in by its other one.
            return Denied(Reason.EK_DENIED, one.ek)
    # A key that owns a node goes before one that is only listed: the machine is that node.
    for one in sorted(offered, key=lambda one: one.ek not in owners):
        known = _known(one, rows.get(one.ek), owners.get(one.ek))
        if known is not None:
            return known
    return _genuine(offered, roots, vouch(offered, roots) if vouched is None else vouched)


def _known(offered: OfferedEk, row: ListedEk | None, node: Node | None) -> Admitted | Denied | None:
    """A key that is known needs no certificate."""
    if row is not None and row.site is not None:
        if node is not None and row.node_id not in {None, node.id}:
            return Denied(Reason.EK_NODE_MISMATCH, f"listed for {row.node_id}, and it is {node.id}")
        return Admitted(offered, row.site, row.role, row.node_id or (node.id if node else None), None)
    if node is not None:
        return Admitted(offered, node.site, node.role, node.id, None)
    return None


def _genuine(offered: Sequence[OfferedEk], roots: Sequence[EkRoot], vouched: Vouched) -> Verdict:
    troubles: list[No] = []
    by_fingerprint = {root.fingerprint: root for root in roots}
    waiting: Pending | None = None
    for one, found in zip(offered, vouched, strict=True):
        if isinstance(found, No):
            troubles.append(found)
            continue
        above = [by_fingerprint[name] for name in found if name in by_fingerprint]
        if not above:
            troubles.append(No(Reason.EK_CA_UNKNOWN, f"{found[0]} was removed a moment ago"))
            continue
        for root in above:
            if root.site is not None and root.role is not None:
                return Admitted(one, root.site, root.role, None, root.fingerprint)
        waiting = waiting or Pending(one, tuple(root.fingerprint for root in above))
    if waiting is not None:
        return waiting
    # What is wrong with a certificate says more than that another key has none.
    worst = min(troubles, key=lambda no: no.reason is Reason.EK_CERTIFICATE_MISSING)
    return Denied(worst.reason, worst.detail)


@lru_cache(maxsize=4096)
def _ca(der: bytes) -> ManufacturerCertificate:
    """Of the operator's alone: what machines bring must not fill a memory."""
    return ek_certificate.read(der)


def _anchors(
    offered: OfferedEk, anchors: Sequence[ManufacturerCertificate], effort: Effort
) -> tuple[ManufacturerCertificate, ...]:
    if not offered.certificate:
        raise No(Reason.EK_CERTIFICATE_MISSING, offered.ek)
    try:
        certificate = ek_certificate.read(offered.certificate)
    except ek_certificate.Malformed as error:
        raise No(Reason.EK_CERTIFICATE_MALFORMED, str(error)) from None
    if certificate.spki != offered.spki:
        detail = f"it certifies {Pin.of(certificate.spki)}, the TPM offers {offered.ek}"
        raise No(Reason.EK_CERTIFICATE_MISMATCH, detail)
    check_ek(certificate)
    return anchors_above(certificate, ek_certificate.read_all(offered.chain), anchors, effort)
