"""What a change means for sessions that live."""

from dataclasses import dataclass
from datetime import datetime

from bcd.controlplane.domain.settings import SignedBundle
from bcd.domain.model.names import NodeId


@dataclass(frozen=True)
class NodeRevoked:
    """Every certificate of a generation below `generation` is dead."""

    node_id: NodeId
    generation: int
    reason: str
    at: datetime


@dataclass(frozen=True)
class RenewalDue:
    node_id: NodeId
    reason: str


@dataclass(frozen=True)
class BundleChanged:
    bundle: SignedBundle


Item = NodeRevoked | RenewalDue | BundleChanged
