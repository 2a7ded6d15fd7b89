"""How many renewals a node gets in an hour (docs/protocol.md, "Renew")."""

from datetime import datetime, timedelta

from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId

# Specification, "Renewal": 6 renewals per node and hour; 6 in a leaf's life where that is shorter than an hour.
RENEWALS = 6
WINDOW = timedelta(hours=1)


def quota(lifetime: timedelta) -> int:
    """Renewals a node may have within an hour when its leaves live this long."""
    return max(RENEWALS, int(RENEWALS * WINDOW / lifetime))


def wait_for_quota(records: Records, node_id: NodeId, lifetime: timedelta, now: datetime) -> timedelta | None:
    """How long until the node may have another certificate; None when it may now."""
    given = records.certificates.renewals_since(node_id, now - WINDOW)
    most = quota(lifetime)
    if len(given) < most:
        return None
    # The oldest that has to leave the window first; a clock that was set back makes nobody wait longer than it.
    return min(WINDOW, max(timedelta(seconds=1), given[len(given) - most] + WINDOW - now))
