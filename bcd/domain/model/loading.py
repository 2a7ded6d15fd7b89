"""Rules for loading an identity (specification, "Loading it"; decisions 5 and 6): what is on disk in, a decision out.

Nothing here changes anything. `node.key.next` may be removed only when `node.key` *is* the leaf's key: when neither
matches, each of them may be what somebody needs to get the node back.
"""

from dataclasses import dataclass

from bcd.domain.model.identity import Identity
from bcd.domain.model.keys import (
    KeyAbsent,
    KeyDenied,
    KeyHeld,
    KeyKind,
    KeyMalformed,
    KeyState,
    KeyUnasked,
    KeyUnavailable,
)


@dataclass(frozen=True)
class IdentityAbsent:
    """There is no `identity.json`."""


@dataclass(frozen=True)
class IdentityDenied:
    """`identity.json` is there and may not be read by this user."""


@dataclass(frozen=True)
class IdentityUnreadable:
    """`identity.json` is there and is no identity; `why` completes "identity.json is …"."""

    why: str
    size: int


@dataclass(frozen=True)
class IdentityStored:
    identity: Identity


IdentityState = IdentityAbsent | IdentityDenied | IdentityUnreadable | IdentityStored


@dataclass(frozen=True)
class NotJoined:
    """Rule 1. `orphan_key`: a `node.key` lies there without an identity, and a join must not overwrite it."""

    orphan_key: bool


@dataclass(frozen=True)
class Unreadable:
    why: str
    size: int


@dataclass(frozen=True)
class Denied:
    """A file of the identity may not be read by this user; nothing is known of what it says."""

    name_is_key: bool


@dataclass(frozen=True)
class Unavailable:
    """The key is in a TPM that cannot be asked now. Never to be told as a mismatch. `absent`: there is no TPM, or not
    yet."""

    why: str
    absent: bool = False


@dataclass(frozen=True)
class Mismatch:
    """Rule 3. `tpm`: the record on disk derives another key, as after the TPM was cleared."""

    tpm: bool


@dataclass(frozen=True)
class Loaded:
    """The identity and its key agree, with `kind` the key's place, once the effect below has been carried out."""

    identity: Identity
    kind: KeyKind


@dataclass(frozen=True)
class LoadedAsIs(Loaded):
    """Nothing is to be done."""


@dataclass(frozen=True)
class PromoteNext(Loaded):
    """Rule 2: a renewal stopped after it stored the certificate; `node.key.next` becomes `node.key`."""


@dataclass(frozen=True)
class RemoveNext(Loaded):
    """Rule 2: a renewal stopped before it stored the certificate; `node.key.next` goes."""


Decision = NotJoined | Unreadable | Denied | Unavailable | Mismatch | LoadedAsIs | PromoteNext | RemoveNext


def decide(identity: IdentityState, key: KeyState, next_key: KeyState) -> Decision:
    """What the three files together mean."""
    match identity:
        case IdentityAbsent():
            return NotJoined(orphan_key=not isinstance(key, KeyAbsent))
        case IdentityDenied():
            return Denied(name_is_key=False)
        case IdentityUnreadable(why, size):
            return Unreadable(why, size)
        case IdentityStored(stored):
            pass
    if isinstance(next_key, KeyHeld) and next_key.spki == stored.leaf.spki:
        return PromoteNext(stored, next_key.kind)
    if isinstance(key, KeyHeld) and key.spki == stored.leaf.spki:
        match next_key:
            case KeyAbsent() | KeyDenied() | KeyUnavailable() | KeyUnasked():
                # What cannot be read is not known to be superfluous, and does not stand in the way either.
                return LoadedAsIs(stored, key.kind)
            case KeyHeld() | KeyMalformed():
                return RemoveNext(stored, key.kind)
    for state in (key, next_key):
        match state:
            case KeyDenied():
                return Denied(name_is_key=True)
            case KeyUnavailable(why, absent):
                return Unavailable(why, absent)
            case KeyUnasked():
                # Whoever asks no TPM takes a record at its word: this one is the first that can be the leaf's.
                return LoadedAsIs(stored, KeyKind.TPM)
            case _:
                pass
    return Mismatch(tpm=isinstance(key, KeyHeld) and key.kind is KeyKind.TPM)
