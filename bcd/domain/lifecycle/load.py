"""Loading the identity: look at the three files, decide (model.loading), carry the decision out."""

from collections.abc import Callable
from dataclasses import dataclass

from bcd.domain.model import datadir
from bcd.domain.model.datadir import IDENTITY, KEY, MAX_FILE_BYTES, NEXT_KEY
from bcd.domain.model.failures import FixConfiguration, Message, MustJoinAgain, NotThereYet, Refused, TryLater
from bcd.domain.model.keys import KeyAbsent, KeyDenied, KeyHeld, KeyState
from bcd.domain.model.loading import (
    Decision,
    Denied,
    IdentityAbsent,
    IdentityDenied,
    IdentityState,
    IdentityStored,
    IdentityUnreadable,
    Loaded,
    LoadedAsIs,
    Mismatch,
    NotJoined,
    PromoteNext,
    RemoveNext,
    Unavailable,
    Unreadable,
    decide,
)
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.keys import KeyStore
from bcd.protocol.files import identity_json
from bcd.protocol.files.encoding import MalformedFile

# A reader that sees one of the three files change under it starts over; a writer changes them once an hour at most.
_LOOKS = 20


@dataclass(frozen=True)
class Load:
    fs: Fs
    keys: KeyStore
    events: Events
    path: str

    def look(self) -> Decision:
        """What a load would decide now. Takes no lock and writes nothing: for status, doctor and a dry run."""
        for _ in range(_LOOKS):
            # The keys as well: a renewal that renames node.key.next between the looks at the two leaves neither seen,
            # and a TPM takes its time to say whose key it is.
            before = self._entries()
            decision = self._decide()
            if self._entries() == before:
                return decision
        return self._decide()

    def __call__(self) -> Loaded | NotJoined:
        """The identity, with `node.key.next` promoted or removed as the rules say. The caller holds the lock.

        MustJoinAgain (the files do not make an identity), TryLater (TPM unavailable), Refused (permission)."""
        decision = self._decide()
        match decision:
            case NotJoined() | LoadedAsIs():
                return decision
            case PromoteNext():
                self._tidy(lambda: self.fs.rename(NEXT_KEY, KEY))
                return decision
            case RemoveNext():
                self._tidy(lambda: self.fs.remove(NEXT_KEY))
                return decision
            case _:
                raise self.failure(decision)

    def _tidy(self, effect: Callable[[], None]) -> None:
        try:
            effect()
        except TryLater as error:
            # A read-only or full disk takes nothing from the pair: it is found again, the same, at the next load.
            self.events.warning("the identity loads, but its files could not be put in order", why=error.text)

    def failure(
        self, decision: Unreadable | Denied | Unavailable | Mismatch
    ) -> MustJoinAgain | TryLater | Refused | FixConfiguration:
        """The documented failure for a decision that is no identity."""
        match decision:
            case Unreadable(why, size):
                return MustJoinAgain(Message.IDENTITY_UNREADABLE, path=self._full(IDENTITY), size=size, why=why)
            case Denied(name_is_key):
                return Refused(Message.PERMISSION_DENIED, path=self._full(KEY if name_is_key else IDENTITY))
            case Unavailable(why, absent):
                return (NotThereYet if absent else TryLater)(Message.KEY_UNAVAILABLE, why=why)
            case Mismatch(tpm):
                return MustJoinAgain(Message.KEY_MISMATCH_TPM if tpm else Message.KEY_MISMATCH)

    def _decide(self) -> Decision:
        return decide(self._identity(), self._key(KEY), self._key(NEXT_KEY))

    def _identity(self) -> IdentityState:
        try:
            data = self.fs.read(IDENTITY, MAX_FILE_BYTES)
        except Refused:
            return IdentityDenied()
        except FixConfiguration as error:
            if error.message is not Message.NOT_A_FILE:
                raise
            return IdentityUnreadable("is not a regular file", 0)
        if data is None:
            return IdentityAbsent()
        try:
            if len(data) > MAX_FILE_BYTES:
                raise MalformedFile("is larger than an identity can be")
            return IdentityStored(identity_json.decode(data))
        except MalformedFile as error:
            return IdentityUnreadable(str(error), len(data))

    def _key(self, name: str) -> KeyState:
        try:
            record = self.fs.read(name, MAX_FILE_BYTES)
        except Refused:
            return KeyDenied()
        if record is None:
            return KeyAbsent()
        found = self.keys.open(record)
        # A KeyState says why there is no key; anything else is the key.
        return found if isinstance(found, KeyState) else KeyHeld(found.kind, found.spki)

    def _entries(self) -> list[datadir.Entry]:
        return [entry for entry in self.fs.entries() if entry.name in (IDENTITY, KEY, NEXT_KEY)]

    def _full(self, name: str) -> str:
        return f"{self.path}/{name}"
