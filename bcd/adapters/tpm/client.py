"""Commands one at a time over a link, and the few keys a TPM has room for."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.link import Late, Link
from bcd.domain.model.failures import Failure
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import AGAIN, Code, Rc
from bcd.protocol.tpm2.commands import Answer, Command, CreatePrimaryIn, FlushContextIn, NotTpm2
from bcd.protocol.tpm2.structures import Handle, Public, SensitiveCreate
from bcd.protocol.tpm2.wire import Malformed, encode

# Three transient objects fit, with the kernel's resource manager or without it (measured).
MAX_LOADED = 3
# Between sendings of the same bytes: two seconds in all, as long as a self-test of a slow chip.
AGAIN_AFTER_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.73)

P = TypeVar("P")
A = TypeVar("A")


@dataclass(frozen=True)
class Loaded:
    """A key in the TPM. The handle is good until the next key is loaded."""

    handle: int
    public: Public


class AnotherKey(Exception):
    """The TPM made a key that is not the one asked for: without noDA, say, which three power losses lock out."""


class Client:
    """The TPM behind `link`, which messages call `device`."""

    def __init__(self, link: Link, device: str, wait: Callable[[float], None] = time.sleep) -> None:
        self.device = device
        self._link = link
        self._wait = wait
        self._lock = threading.RLock()
        self._loaded: OrderedDict[tuple[int, bytes], Loaded] = OrderedDict()

    def run(self, command: Command[P, A], handles: tuple[int, ...], parameters: P) -> Answer[A]:
        """The answer to one command.

        Refusal for a code that speaks of this command; the documented failure for a TPM that answers none."""
        with self._lock:
            data = commands.write_command(command, handles, parameters)
            answer = self._patiently(command, data)
            if isinstance(answer, Code) and answer.base == Rc.OBJECT_MEMORY and self._make_room(handles):
                answer = self._patiently(command, data)
            if not isinstance(answer, Code):
                return answer
            refusal = Refusal(command.name, handles, answer)
            if answer.base in AGAIN or answer.base == Rc.INITIALIZE:
                raise failures.of_code(refusal, self.device)
            raise refusal

    def load(self, hierarchy: Handle, template: Public) -> Loaded:
        """The key of `template`, derived if it is not loaded. AnotherKey when it is read back with other attributes."""
        with self._lock:
            slot = (int(hierarchy), encode(template))
            if slot in self._loaded:
                self._loaded.move_to_end(slot)
                return self._loaded[slot]
            while len(self._loaded) >= MAX_LOADED:
                self._flush(next(iter(self._loaded)))
            wanted = CreatePrimaryIn(SensitiveCreate(b"", b""), template, b"", ())
            answer = self.run(commands.CREATE_PRIMARY, (hierarchy,), wanted)
            loaded = Loaded(answer.handles[0], answer.parameters.public)
            self._loaded[slot] = loaded
            same = templates.same_but_unique(loaded.public, template)
            if not same or names.name(loaded.public) != answer.parameters.name:
                self._flush(slot)
                raise AnotherKey("made another key than was asked for")
            return loaded

    def close(self) -> None:
        """Flushes what this client loaded, and gives the TPM back. Never fails: it ends what may have failed."""
        with self._lock:
            try:
                self._make_room(())
            except Failure:
                self._loaded.clear()
            self._link.close()

    def failed(self, command: Command[P, A], why: str) -> Failure:
        return failures.failed(self.device, command.name, why)

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
            raise failures.busy(self.device, f"no answer to {command.name}") from None
        except OSError as error:
            self._forget()
            raise failures.of_errno(error, self.device, command.name) from None

    def _forget(self) -> None:
        """Loaded keys die with the transport."""
        self._link.close()
        self._loaded.clear()

    def _make_room(self, named: tuple[int, ...]) -> bool:
        """Flushes our own keys but those that a command names; whether there was one."""
        slots = [slot for slot, loaded in self._loaded.items() if loaded.handle not in named]
        for slot in slots:
            self._flush(slot)
        return bool(slots)

    def _flush(self, slot: tuple[int, bytes]) -> None:
        loaded = self._loaded.pop(slot, None)
        if loaded is None:
            return
        data = commands.write_command(commands.FLUSH_CONTEXT, (), FlushContextIn(loaded.handle))
        # A code says that it is gone already.
        self._patiently(commands.FLUSH_CONTEXT, data)
