"""Storing what a Welcome, a renewal or a new bundle tells: the bundle and the server time, never the chain."""

from dataclasses import dataclass, replace
from datetime import datetime

from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.model.datadir import LOCK_WAIT_S
from bcd.domain.model.identity import Identity, Leaf, Trust
from bcd.domain.model.pins import Pins
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.protocol.pki import trust_bundle


@dataclass(frozen=True)
class TakeIn:
    fs: Fs
    change: ChangeIdentity
    events: Events
    signing_pins: Pins

    def __call__(self, held: Leaf, mark: datetime | None, signed_bundle: bytes | None) -> Identity:
        """The identity with a raised server-time mark and, if it is newer, the bundle in `signed_bundle` (a serialized
        statement); durable on return. IdentityChanged when the disk holds another identity."""
        trust = self._open(held, signed_bundle) if signed_bundle else None

        def told(identity: Identity) -> Identity:
            marks = [at for at in (identity.server_time, mark) if at is not None]
            return replace(
                identity, trust=self._newer(identity.trust, trust), server_time=max(marks) if marks else None
            )

        with self.fs.lock(LOCK_WAIT_S):
            return self.change(held, told)

    def _open(self, held: Leaf, signed: bytes) -> Trust | None:
        try:
            return trust_bundle.open_serialized(signed, self.signing_pins, held.spiffe_id.trust_domain)
        except trust_bundle.BadBundle as error:
            # Kept out, and the old one kept: a gateway only relays bundles, and may be broken.
            self.events.warning("a trust bundle was not taken", why=error)
            return None

    def _newer(self, held: Trust | None, told: Trust | None) -> Trust | None:
        if told is None or held is None:
            return told if held is None else held
        if told.version == held.version:
            if told.bundle != held.bundle:
                self.events.warning("a trust bundle was not taken", why=f"another bundle with version {held.version}")
                return held
            # The same bundle; held without its signature it is held with it from now on.
            return held if held.signed is not None else told
        if told.version < held.version:
            self.events.warning("a trust bundle was not taken", why=f"version {told.version} is below {held.version}")
            return held
        return told
