"""The operator's commands about the trust bundle, and the word that a backup was put back."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bcd.controlplane.app import views
from bcd.controlplane.app.bundle import newest_bundle
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.audit import OPERATOR, Event, Kind
from bcd.controlplane.domain.failures import NotPermitted, Usage
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.news import BundleChanged
from bcd.controlplane.domain.settings import Restoration, Settings, SignedBundle
from bcd.controlplane.domain.trust import MAX_APPROVERS, MAX_ROOTS, Approver, TrustContent
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.signing import Statements
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model.pins import MalformedPin, Pin
from bcd.protocol.pki import ecdsa

TrustCommand = (
    admin.ShowTrust | admin.AddRoot | admin.RemoveRoot | admin.AddApprover | admin.RemoveApprover | admin.Restored
)
MAX_NAME = 64
# Changes of the bundle that a backup may have missed; more need --bundle-above.
MISSED_VERSIONS = 1000
# What SQLite's integers hold; a uint64 on the wire.
MAX_VERSION = 2**63 - 1


@dataclass(frozen=True)
class TrustCommands:
    """`statements` opens the signing key, which most commands do without."""

    settings: Settings
    store: Store
    clock: WallClock
    news: News
    statements: Callable[[], Statements]

    def __call__(self, command: TrustCommand) -> object:
        match command:
            case admin.ShowTrust():
                bundle = self.store.read(newest_bundle)
                return views.trust(bundle.version, self.statements().content(bundle.signed))
            case admin.AddRoot(spki):
                key = _key("trust add-root", spki)
                return self._changed(lambda old: _with_root(old, key), {"addedRoot": str(Pin.of(key))})
            case admin.RemoveRoot(pin):
                return self._changed(lambda old: _without_root(old, pin), {"removedRoot": pin})
            case admin.AddApprover(name, spki):
                approver = Approver(_name(name), _key("trust add-approver", spki))
                detail = {"addedApprover": approver.name, "key": str(Pin.of(approver.spki))}
                return self._changed(lambda old: _with_approver(old, approver), detail)
            case admin.RemoveApprover(name):
                return self._changed(lambda old: _without_approver(old, name), {"removedApprover": name})
            case admin.Restored(bundle_above):
                return self._restored(bundle_above)

    def _changed(self, change: Callable[[TrustContent], TrustContent], detail: dict[str, str]) -> admin.TrustView:
        """A new version, unless `change` leaves everything as it is: then the bundle stays too."""
        statements = self.statements()

        def work(records: Records) -> tuple[SignedBundle, TrustContent, bool]:
            bundle = newest_bundle(records)
            old = statements.content(bundle.signed)
            new = change(old)
            if new == old:
                return bundle, old, False
            bundle = self._add(records, statements, bundle.version + 1, new)
            event = Event(self.clock.now(), OPERATOR, Kind.TRUST_CHANGED, {"version": bundle.version, **detail})
            records.audit.add(event)
            return bundle, new, True

        bundle, content, changed = self.store.change(work).result()
        if changed:
            self.news.tell(BundleChanged(bundle))
        return views.trust(bundle.version, content)

    def _restored(self, bundle_above: int) -> admin.RestoredView:
        """Unknown certificates issued until now are adopted; the bundle rises above what any node may hold."""
        if not 0 <= bundle_above < MAX_VERSION:
            raise Usage(Message.USAGE, command="restored", what=f"--bundle-above is 0 to {MAX_VERSION - 1}")
        statements = self.statements()

        def work(records: Records) -> tuple[SignedBundle, admin.RestoredView]:
            now = self.clock.now()
            bundle = newest_bundle(records)
            version = max(bundle.version + MISSED_VERSIONS, bundle_above + 1)
            bundle = self._add(records, statements, version, statements.content(bundle.signed))
            records.restorations.add(Restoration(now))
            records.audit.add(Event(now, OPERATOR, Kind.STORE_RESTORED, {"version": version}))
            return bundle, admin.RestoredView(now, version)

        bundle, view = self.store.change(work).result()
        self.news.tell(BundleChanged(bundle))
        return view

    def _add(self, records: Records, statements: Statements, version: int, content: TrustContent) -> SignedBundle:
        now = self.clock.now()
        bundle = SignedBundle(version, statements.trust_bundle(self.settings.trust_domain, version, now, content))
        records.bundles.add(bundle)
        return bundle


def _with_root(old: TrustContent, key: bytes) -> TrustContent:
    if key in old.roots:
        return old
    if len(old.roots) >= MAX_ROOTS:
        raise NotPermitted(Message.BUNDLE_FULL, most=MAX_ROOTS, what="command roots", command="remove-root")
    return replace(old, roots=(*old.roots, key))


def _without_root(old: TrustContent, text: str) -> TrustContent:
    try:
        pin = Pin(text)
    except MalformedPin as error:
        raise Usage(Message.USAGE, command="trust remove-root", what=f"not a pin: {error}") from None
    kept = tuple(root for root in old.roots if Pin.of(root) != pin)
    if len(kept) == len(old.roots):
        raise Usage(Message.NO_SUCH_ROOT, pin=pin)
    return replace(old, roots=kept)


def _with_approver(old: TrustContent, approver: Approver) -> TrustContent:
    if approver in old.approvers:
        return old
    for other in old.approvers:
        # One key under two names would count twice towards a quorum.
        if other.name == approver.name or other.spki == approver.spki:
            raise NotPermitted(Message.APPROVER_KNOWN, name=other.name, pin=Pin.of(other.spki))
    if len(old.approvers) >= MAX_APPROVERS:
        raise NotPermitted(Message.BUNDLE_FULL, most=MAX_APPROVERS, what="approvers", command="remove-approver")
    return replace(old, approvers=(*old.approvers, approver))


def _without_approver(old: TrustContent, name: str) -> TrustContent:
    kept = tuple(one for one in old.approvers if one.name != name)
    if len(kept) == len(old.approvers):
        raise Usage(Message.NO_SUCH_APPROVER, name=name)
    return replace(old, approvers=kept)


def _key(command: str, text: str) -> bytes:
    try:
        spki = bytes.fromhex(text)
        ecdsa.public_key(spki)
    except (ValueError, ecdsa.MalformedKey):
        raise Usage(Message.USAGE, command=command, what="not a P-256 key") from None
    return spki


def _name(text: str) -> str:
    if not text or len(text) > MAX_NAME or not text.isprintable() or text != text.strip():
        what = f"NAME is 1 to {MAX_NAME} printable characters, without space around them"
        raise Usage(Message.USAGE, command="trust add-approver", what=what)
    return text
