"""What a new store begins with."""

from datetime import datetime

from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.settings import Settings, SignedBundle
from bcd.controlplane.ports.signing import Statements
from bcd.controlplane.ports.store import Records, Store

FIRST_VERSION = 1


def first_records(store: Store, statements: Statements, settings: Settings, now: datetime) -> None:
    """The first trust bundle, unless it is there: signed once, so that version 1 always has the same bytes."""

    def work(records: Records) -> None:
        if records.bundles.newest() is None:
            signed = statements.trust_bundle(settings.trust_domain, FIRST_VERSION, now)
            records.bundles.add(SignedBundle(FIRST_VERSION, signed))
            records.audit.add(
                Event(
                    now, "operator", Kind.STORE_CREATED, {"trustDomain": settings.trust_domain, "bundle": FIRST_VERSION}
                )
            )

    store.change(work).result()
