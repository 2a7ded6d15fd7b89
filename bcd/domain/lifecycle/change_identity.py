"""The one way `identity.json` is changed once it exists (decision 4)."""

from collections.abc import Callable
from dataclasses import dataclass

from bcd.domain.model.datadir import IDENTITY, MAX_FILE_BYTES
from bcd.domain.model.identity import Identity, Leaf
from bcd.ports.fs import Fs
from bcd.protocol.files import identity_json
from bcd.protocol.files.encoding import MalformedFile


class IdentityChanged(Exception):
    """What lies on disk is not what was loaded: a reset, a join, another process. Nothing was written."""


@dataclass(frozen=True)
class ChangeIdentity:
    """Modelled: without reading it again under the lock, 6 of 15 interleavings of a Welcome and a renewal lose the
    identity."""

    fs: Fs

    def stored(self, held: Leaf) -> Identity:
        """The identity on disk now, if its leaf is still `held`; IdentityChanged otherwise. The caller holds the
        lock, and may write until it lets go of it."""
        data = self.fs.read(IDENTITY, MAX_FILE_BYTES)
        try:
            identity = identity_json.decode(data) if data is not None else None
        except MalformedFile:
            identity = None
        if identity is None or identity.leaf.der != held.der:
            raise IdentityChanged
        return identity

    def __call__(self, held: Leaf, change: Callable[[Identity], Identity]) -> Identity:
        """The identity on disk with `change` made, durable on return. Nothing is written when it changes nothing."""
        identity = self.stored(held)
        changed = change(identity)
        if changed != identity:
            self.fs.write(IDENTITY, identity_json.encode(changed))
        return changed
