"""Refusing a join: the reason goes to the refusal row, the audit log and the log, an id to the node."""

from dataclasses import dataclass

from bcd.controlplane.app.note import Note
from bcd.controlplane.domain import refusals
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.ids import REFUSAL_ID_BYTES, RefusalId
from bcd.controlplane.domain.joining import MAX_WORD, JoinRequest, No, Refused, claims_in_bounds
from bcd.controlplane.domain.refusals import Refusal
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model.claims import Claims


@dataclass(frozen=True)
class Refuse:
    store: Store
    clock: WallClock
    random: Random
    log: Log

    def __call__(self, request: JoinRequest, source: str, no: No) -> Refused:
        """Records the refusal in a transaction of its own. StoreUnavailable: then nothing was refused."""
        refused, note = self.store.change(lambda records: self.within(records, request, source, no, "")).result()
        note.write(self.log)
        return refused

    def within(
        self, records: Records, request: JoinRequest, source: str, no: No, token_id: str
    ) -> tuple[Refused, Note]:
        """Records the refusal in the caller's transaction. Beyond the caps only the log, by the note, has it."""
        now = self.clock.now()
        refusal = Refusal(
            id=RefusalId(self.random.bytes(REFUSAL_ID_BYTES).hex()),
            at=now,
            reason=no.reason,
            source=source,
            attestor=request.attestor[:MAX_WORD] if request.attestor.isprintable() else "",
            token_id=token_id,
            claims=request.claims if claims_in_bounds(request.claims) else Claims(),
            detail=no.detail,
        )
        fields = {"id": refusal.id, "reason": no.reason.value, "token": token_id}
        since = now - refusals.WINDOW
        kept = (
            records.refusals.count_since(since, source) < refusals.MAX_ROWS_PER_SOURCE_AND_HOUR
            and records.refusals.count_since(since) < refusals.MAX_ROWS_PER_HOUR
        )
        if kept:
            records.refusals.add(refusal)
            records.refusals.trim(now - refusals.KEPT_FOR, refusals.MAX_ROWS)
            records.audit.add(Event(now, f"node:{source}", Kind.JOIN_REFUSED, fields))
        told = {**fields, "detail": no.detail, "source": source, "kept": kept}
        return Refused(refusal.id), Note("join refused", told, warning=True)
