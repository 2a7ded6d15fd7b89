"""Issuing the certificate of a join: the node in its new generation, and its key certified, in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bcd.controlplane.app.bundle import newest_bundle
from bcd.controlplane.app.certify import Certify, ToCertify
from bcd.controlplane.app.note import Note
from bcd.controlplane.domain.admission import Requested
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import CertificateState, GivenAnswer, leaf_dates
from bcd.controlplane.domain.ids import SHORT_ID_BYTES, TokenId, short_id
from bcd.controlplane.domain.joining import Granted
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.nodes import Node, machine_of
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.standing import last_generation
from bcd.controlplane.domain.tpms import denied_with
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId

# What a session with a certificate of before is told.
JOINED_AGAIN = "joined again"


@dataclass(frozen=True)
class Due:
    """A certificate that is due for `credential`. `node` is the node that comes back, None for a new one; `node_id` a
    new one's, if given. `ek` and `ak_name` as in Node, but an empty `ek` leaves the node's; `told` is for the audit
    log."""

    credential: str
    site: SiteId
    role: Role
    node: Node | None
    node_id: NodeId | None
    token_id: TokenId
    ek: str = ""
    ak_name: bytes | None = None
    told: Mapping[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class IssuedJoin:
    """`revoked`: what sessions of before are to be told once this is durable."""

    granted: Granted
    serial: str
    note: Note
    revoked: tuple[NodeRevoked, ...]


@dataclass(frozen=True)
class IssueJoin:
    settings: Settings
    random: Random
    issuer: Issuer
    statements: Statements

    def __call__(self, records: Records, asked: Requested, due: Due, now: datetime) -> IssuedJoin:
        revoked = _revoke(records, due.node, now) if due.node is not None else ()
        node = self._node(records, asked, due, now)
        not_before, not_after = leaf_dates(now, self.settings.leaf_lifetime, due.role)
        key = ToCertify(
            spiffe_id=SpiffeId(self.settings.trust_domain, node.site, node.id),
            role=due.role,
            generation=node.generation,
            spki=asked.spki,
            csr_sha256=asked.csr_sha256,
            ak_name=due.ak_name,
            not_before=not_before,
            not_after=not_after,
            credential=due.credential,
        )
        records.nodes.put(node)
        certified = Certify(self.random, self.issuer)(records, key, self.statements.join_response, now)
        detail: dict[str, str | int | bool] = {
            "node": node.id,
            "site": node.site,
            "role": node.role.value,
            "generation": node.generation,
            "serial": certified.serial,
            "attestor": asked.attestor,
            "nodeKey": node.node_key,
            **due.told,
        }
        records.audit.add(Event(now, f"node:{asked.source}", Kind.NODE_JOINED, detail))
        note = Note("node joined", {"source": asked.source, **detail})
        return IssuedJoin(Granted(certified.signed), certified.serial, note, revoked)

    def again(self, records: Records, asked: Requested, answer: GivenAnswer, now: datetime) -> Granted:
        """What a lost answer said."""
        if answer.csr_sha256 == asked.csr_sha256:
            return Granted(answer.signed)
        # The same key in another request: the same certificate, said of this request.
        bundle = newest_bundle(records).signed
        return Granted(self.statements.join_response(asked.csr_sha256, answer.chain, bundle, now))

    def _node(self, records: Records, asked: Requested, due: Due, now: datetime) -> Node:
        if due.node is not None:
            return replace(
                due.node,
                role=due.role,
                generation=due.node.generation + 1,
                machine=machine_of(asked.claims),
                claims=asked.claims,
                daemon_version=asked.daemon_version,
                token_id=due.token_id,
                joined=now,
                ek=due.ek or _kept(records, due.node),
                ak_name=due.ak_name,
            )
        node_id = due.node_id or self._new_id(records)
        return Node(
            id=node_id,
            site=due.site,
            role=due.role,
            # A node of this id may have been deleted: its certificates are of generations that have been.
            generation=1 + last_generation(records, node_id),
            machine=machine_of(asked.claims),
            claims=asked.claims,
            daemon_version=asked.daemon_version,
            token_id=due.token_id,
            created=now,
            joined=now,
            ek=due.ek,
            ak_name=due.ak_name,
        )

    def _new_id(self, records: Records) -> NodeId:
        while True:
            node_id = NodeId(f"n-{short_id(self.random.bytes(SHORT_ID_BYTES))}")
            if records.nodes.get(node_id) is None:
                return node_id


def _kept(records: Records, node: Node) -> str:
    """Who gives out a token for a node whose TPM is denied says that it is another machine now; it would renew no
    more."""
    return "" if node.ek and denied_with(records, [node.ek]) else node.ek


def _revoke(records: Records, node: Node, now: datetime) -> tuple[NodeRevoked, ...]:
    """The node comes back: what it held is of another generation; the retired and the void stay what they were."""
    for older in records.certificates.open(node.id):
        records.certificates.put(replace(older, state=CertificateState.REVOKED, state_since=now, reason=JOINED_AGAIN))
    return (NodeRevoked(node.id, node.generation + 1, JOINED_AGAIN, now),)
