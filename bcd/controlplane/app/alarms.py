"""Alarms: what cannot be, told in the log and the audit log, and not at every retry of every node."""

from collections import OrderedDict
from datetime import datetime, timedelta

from bcd.controlplane.app.note import Effect
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.gateway import Presented
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.store import Records

AGAIN_AFTER = timedelta(hours=1)
# Certificates remembered: beyond that many in an hour, one may be told more than once.
MAX_REMEMBERED = 10_000


class Alarms:
    """Used by the store's one writer alone."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._told: OrderedDict[tuple[str, str], datetime] = OrderedDict()

    def raise_(self, records: Records, presented: Presented, why: str, now: datetime) -> Effect:
        """Once an hour for each certificate and reason, in the caller's transaction; what is to be done after it."""
        key = (presented.serial, why)
        told = self._told.get(key)
        if told is not None and abs(now - told) < AGAIN_AFTER:
            return lambda: None
        detail = {"node": presented.node_id, "serial": presented.serial, "why": why}
        records.audit.add(Event(now, f"node:{presented.source}", Kind.CERTIFICATE_ALARM, detail))

        def after() -> None:
            self._told[key] = now
            self._told.move_to_end(key)
            while len(self._told) > MAX_REMEMBERED:
                self._told.popitem(last=False)
            self._log.warning("ALARM", source=presented.source, **detail)

        return after
