"""The trust bundle that is in force."""

from bcd.controlplane.domain.settings import SignedBundle
from bcd.controlplane.ports.store import Records, StoreUnavailable


def newest_bundle(records: Records) -> SignedBundle:
    bundle = records.bundles.newest()
    if bundle is None:
        raise StoreUnavailable("the store holds no trust bundle")
    return bundle
