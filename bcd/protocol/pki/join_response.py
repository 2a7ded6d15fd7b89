"""Opening a join response: the numbered checks of docs/protocol.md, "Checking a join response"."""

from dataclasses import dataclass
from datetime import datetime

from bcd.domain.model.identity import Leaf, Trust
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pins import Pins
from bcd.protocol.pki.issued import DoesNotVerify, SigningKeyIsAnother, open_bundle, open_issued
from bcd.protocol.pki.statements import Purpose

__all__ = ["DoesNotVerify", "Expected", "JoinResponse", "SigningKeyIsAnother", "open_join_response"]


@dataclass(frozen=True)
class Expected:
    """What the node asked for. `spki` is the requested key; without `node_id` any node will do."""

    csr: bytes
    spki: bytes
    role: Role
    node_id: NodeId | None
    pins: Pins


@dataclass(frozen=True)
class JoinResponse:
    """A verified answer. `signed` is the statement as received, for root's record."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    trust: Trust
    server_time: datetime
    signed: bytes


def open_join_response(signed: bytes, expected: Expected) -> JoinResponse:
    """The answer in `signed` (a serialized SignedStatement); DoesNotVerify or SigningKeyIsAnother otherwise."""
    # 1 to 7: signer, request and chain, as for any issued certificate.
    issued = open_issued(Purpose.JOIN_RESPONSE, signed, expected.csr, expected.pins)
    leaf = issued.leaf
    # 8. The leaf certifies the key that was asked for.
    if leaf.spki != expected.spki:
        raise DoesNotVerify(8, "the certificate does not certify this node's key")
    # 9. The leaf names the node that was asked for, when one was.
    if expected.node_id is not None and leaf.spiffe_id.node != expected.node_id:
        raise DoesNotVerify(9, f"the certificate is for node {leaf.spiffe_id.node}, not {expected.node_id}")
    # 10. The leaf gives the role that was asked for.
    if leaf.role is not expected.role:
        raise DoesNotVerify(10, f"the certificate is for role {leaf.role.value}, not {expected.role.value}")
    # 11. The trust bundle is by the same key and of the leaf's trust domain.
    trust = open_bundle(11, issued, expected.pins)
    return JoinResponse(leaf, issued.chain, trust, issued.server_time, signed)
