"""Commands one at a time over a link, and the few keys a TPM has room for."""

import errno
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.link import Late, Link
from bcd.domain.model.failures import Failure
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import AGAIN, Code, Rc
from bcd.protocol.tpm2.commands import Answer, Command, CreatePrimaryIn, FlushContextIn, NotTpm2
from bcd.protocol.tpm2.structures import CommandAuth, Handle, Public, SensitiveCreate
from bcd.protocol.tpm2.wire import Malformed

# Three transient objects fit, with the kernel's resource manager or without it (measured).
MAX_LOADED = 3
# Between sendings of the same bytes: two seconds in all, as long as a self-test of a slow chip.
AGAIN_AFTER_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.73)
# An end is not held up by a chip that takes its time: SIGTERM ends a node within a second or two.
CLOSE_WITHIN_S = 1.0
# A handle that denotes nothing (any more), by a TPM and by the kernel's resource manager.
_GONE = frozenset({Rc.HANDLE, *range(Rc.REFERENCE_H0, Rc.REFERENCE_H0 + 7)})
# By the kernel: the same, a descriptor that TPM2_Clear spoiled, and one of a TPM that was away and may be back (its
# driver bound anew, a software TPM started again), which no command reaches.
_GONE_ERRNO = frozenset({errno.EINVAL, errno.EFAULT, errno.EPIPE})
# TPM_HT_TRANSIENT and TPM_HT_POLICY_SESSION (Part 2, 7.2): what dies with the transport.
_VOLATILE = frozenset({0x80, 0x03})
# No place for one more object, or session.
_FULL = frozenset({Rc.OBJECT_MEMORY, Rc.SESSION_MEMORY})
# Where a person names the device.
SETTING = "device under [tpm] in config.toml"

P = TypeVar("P")
A = TypeVar("A")


@dataclass(frozen=True)
class Loaded:
    """A key in the TPM. The handle is good until the next key is loaded."""

    handle: int
    public: Public


@dataclass(frozen=True)
class Key:
    """Which key: the primary that `template` derives in `hierarchy`."""

    hierarchy: Handle
    template: Public

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Once: it is looked up several times with every command.
        return hash((self.hierarchy, self.template))


# These two for as many as are in use at a time. The same key is asked for again and again, and found sooner as it is.
@lru_cache(maxsize=2 * MAX_LOADED)
def node_key(unique: bytes) -> Key:
    """The node key of `unique`, in the owner hierarchy."""
    return Key(Handle.OWNER, templates.node_key(unique))


# A key that had to go is derived by the same bytes again.
@lru_cache(maxsize=2 * MAX_LOADED)
def _derivation(key: Key) -> bytes:
    """The CreatePrimary of `key`."""
    wanted = CreatePrimaryIn(SensitiveCreate(b"", b""), key.template, b"", ())
    return commands.write_command(commands.CREATE_PRIMARY, (key.hierarchy,), wanted)


class AnotherKey(Exception):
    """The TPM made a key that is not the one asked for: without noDA, say, which three power losses lock out."""


class _Gone(Exception):
    """The kernel answered that what the command names is not there, or that the descriptor is dead."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class Client:
    """The TPM behind `link`, which messages call `device`; `setting` is where a person names another."""

    def __init__(
        self,
        link: Link,
        device: str,
        wait: Callable[[float], None] = time.sleep,
        close_within_s: float = CLOSE_WITHIN_S,
        *,
        setting: str = SETTING,
    ) -> None:
        self.device = device
        self._setting = setting
        self._link = link
        self._wait = wait
        self._close_within_s = close_within_s
        self._lock = threading.RLock()
        self._loaded: OrderedDict[Key, Loaded] = OrderedDict()
        # Not flushed to make room.
        self._in_use: tuple[Key | int, ...] = ()
        # Whether something may be loaded whose handle no answer told.
        self._unclaimed = False

    def run(
        self,
        command: Command[P, A],
        handles: tuple[int, ...],
        parameters: P,
        authorizations: tuple[CommandAuth, ...] | None = None,
    ) -> Answer[A]:
        """The answer to one command.

        Refusal for a code that speaks of this command; the documented failure for a TPM that answers none."""
        with self._lock:
            return self._answer(command, handles, commands.write_command(command, handles, parameters, authorizations))

    def use(
        self,
        keys: tuple[Key | int, ...],
        command: Command[P, A],
        parameters: P,
        authorizations: tuple[CommandAuth, ...] | None = None,
    ) -> tuple[Answer[A], tuple[Public, ...]]:
        """The answer to a command over `keys`, and what those are that are no persistent handle. What the TPM has lost
        (suspend, reset, TPM2_Clear) is derived once more; whether it still is what it was is the caller's to see."""
        with self._lock:
            before, self._in_use = self._in_use, self._in_use + keys
            try:
                return self._use_or_derive(keys, command, parameters, authorizations)
            finally:
                self._in_use = before

    def load(self, key: Key) -> Loaded:
        """The key, derived if it is not loaded. AnotherKey when it is read back with other attributes."""
        with self._lock:
            found = self._loaded.get(key)
            if found is not None:
                self._loaded.move_to_end(key)
                return found
            return self._derived(key)

    def release(self, key: Key) -> None:
        """Flushes the key if it is loaded. The documented failure of a TPM that does not answer."""
        with self._lock:
            self._flush(key)

    def close(self) -> None:
        """Flushes what this client loaded, and gives the TPM back. Never fails: it ends what may have failed. What is
        not over in CLOSE_WITHIN_S, a flush or a command under way, is left to itself, and the rest to the kernel."""
        # In a thread: a TPM that answers nothing would keep the caller for as long as the link's bound.
        ending = threading.Thread(target=self._end, name="bcd-tpm-end", daemon=True)
        ending.start()
        ending.join(self._close_within_s)

    def _end(self) -> None:
        with self._lock:
            with suppress(Failure):
                self._flush_all()
            self._forget()

    def failed(self, command: Command[P, A], why: str) -> Failure:
        return failures.failed(self.device, command.name, why)

    def _derived(self, key: Key) -> Loaded:
        while len(self._loaded) >= MAX_LOADED:
            self._flush(next(one for one in self._loaded if one not in self._in_use))
        answer = self._answer(commands.CREATE_PRIMARY, (key.hierarchy,), _derivation(key))
        loaded = Loaded(answer.handles[0], answer.parameters.public)
        if loaded.handle in [one.handle for one in self._loaded.values()]:
            # The TPM was reset meanwhile: no handle of before is good.
            self._loaded.clear()
        self._loaded[key] = loaded
        same = templates.same_but_unique(loaded.public, key.template)
        if not same or names.name(loaded.public) != answer.parameters.name:
            self._flush(key)
            raise AnotherKey("made another key than was asked for")
        return loaded

    def _use_or_derive(
        self,
        keys: tuple[Key | int, ...],
        command: Command[P, A],
        parameters: P,
        authorizations: tuple[CommandAuth, ...] | None,
    ) -> tuple[Answer[A], tuple[Public, ...]]:
        try:
            return self._use(keys, command, parameters, authorizations)
        except _Gone:
            pass
        except Refusal as refusal:
            if refusal.code.base not in _GONE:
                raise
            # All of them: a handle that is given out anew must denote no key of before.
            self._flush_all()
        try:
            return self._use(keys, command, parameters, authorizations)
        except _Gone as gone:
            raise gone.failure from None

    def _use(
        self,
        keys: tuple[Key | int, ...],
        command: Command[P, A],
        parameters: P,
        authorizations: tuple[CommandAuth, ...] | None,
    ) -> tuple[Answer[A], tuple[Public, ...]]:
        derived = [key for key in keys if isinstance(key, Key)]
        loaded = {key: self.load(key) for key in derived}
        if not loaded.keys() <= self._loaded.keys():
            # The TPM was reset between one and the next.
            loaded = {key: self.load(key) for key in derived}
        if not loaded.keys() <= self._loaded.keys():
            # Once more, and a command would name one key where two are meant.
            raise self.failed(command, "the TPM does not keep the keys it needs")
        handles = tuple([loaded[key].handle if isinstance(key, Key) else key for key in keys])
        data = commands.write_command(command, handles, parameters, authorizations)
        return self._run(command, handles, data), tuple([loaded[key].public for key in derived])

    def _answer(self, command: Command[P, A], handles: tuple[int, ...], data: bytes) -> Answer[A]:
        try:
            try:
                return self._run(command, handles, data)
            except _Gone:
                # After TPM2_Clear every command fails once; what names nothing of ours is as good on a new descriptor.
                if any(handle >> 24 in _VOLATILE for handle in handles):
                    raise
                return self._run(command, handles, data)
        except _Gone as gone:
            raise gone.failure from None

    def _run(self, command: Command[P, A], handles: tuple[int, ...], data: bytes) -> Answer[A]:
        answer = self._patiently(command, data)
        if isinstance(answer, Code) and answer.base == Rc.OBJECT_MEMORY and self._make_room(handles):
            answer = self._patiently(command, data)
        if not isinstance(answer, Code):
            return answer
        refusal = Refusal(command.name, handles, answer)
        if answer.base in _FULL and self._unclaimed:
            # What late answers would have told of has the places, and goes with the transport.
            self._forget()
            raise _Gone(failures.of_code(refusal, self.device))
        if answer.base in AGAIN or answer.base == Rc.INITIALIZE:
            raise failures.of_code(refusal, self.device)
        raise refusal

    def _patiently(self, command: Command[P, A], data: bytes) -> Answer[A] | Code:
        """The same bytes until the TPM does not ask for them again, within bounds."""
        answer = self._once(command, data)
        for pause_s in AGAIN_AFTER_S:
            if not (isinstance(answer, Code) and answer.base in AGAIN):
                break
            self._wait(pause_s)
            answer = self._once(command, data)
        return answer

    def _once(self, command: Command[P, A], data: bytes) -> Answer[A] | Code:
        try:
            return commands.read_answer(command, self._link.transmit(data))
        except NotTpm2:
            raise failures.old(self.device) from None
        except Malformed as error:
            # Whatever else is on its way would be taken for the next answer.
            self._forget()
            raise self.failed(command, f"a malformed answer: {error}") from None
        except Late:
            self._unclaimed = True
            raise failures.busy(self.device, f"no answer to {command.name}") from None
        except OSError as error:
            self._forget()
            failure = failures.of_errno(error, self.device, command.name, self._setting)
            if error.errno in _GONE_ERRNO:
                raise _Gone(failure) from None
            raise failure from None

    def _forget(self) -> None:
        """Loaded keys die with the transport."""
        self._link.close()
        self._loaded.clear()
        self._unclaimed = False

    def _make_room(self, named: tuple[int, ...]) -> bool:
        """Flushes our own keys but those in use and those that a command names; whether there was one."""
        spare = [key for key, loaded in self._loaded.items() if loaded.handle not in named and key not in self._in_use]
        for key in spare:
            self._flush(key)
        return bool(spare)

    def _flush_all(self) -> None:
        for key in tuple(self._loaded):
            self._flush(key)

    def _flush(self, key: Key) -> None:
        loaded = self._loaded.pop(key, None)
        if loaded is None:
            return
        data = commands.write_command(commands.FLUSH_CONTEXT, (), FlushContextIn(loaded.handle))
        try:
            # A code says that it is gone already, and so does the kernel.
            self._patiently(commands.FLUSH_CONTEXT, data)
        except _Gone:
            return
