"""The link to a software TPM in a file: command bytes in, response bytes out, in this process."""

import errno
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from bcd.adapters.tpmsim.execute import execute
from bcd.adapters.tpmsim.file import NoState, held
from bcd.adapters.tpmsim.space import Space
from bcd.adapters.tpmsim.state import FOREVER, Faults, State
from bcd.protocol.tpm2.structures import Handle

# What a TPM 1.2 answers: TPM_TAG_RSP_COMMAND, and TPM_BADTAG.
_TPM_1_2 = bytes.fromhex("00c40000000a0000001e")
_RETRY = bytes.fromhex("80010000000a00000922")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class SimLink:
    """The TPM whose state lies at `path`. What it loads lives as long as the link, as with the kernel's resource
    manager; `late` makes the exception for a reply that does not come in time."""

    def __init__(self, path: str, late: Callable[[], Exception], now_ms: Callable[[], int] = _now_ms) -> None:
        self._path = path
        self._late = late
        self._now_ms = now_ms
        self._space = Space()

    def transmit(self, command: bytes) -> bytes:
        """The reply. OSError as the system gave it, ENOTTY for a file that is no state; `late`'s when there is none."""
        try:
            with held(self._path) as kept:
                state = _counted_down(kept.state)
                answer, state = self._answer(command, state, kept.state.faults)
                if state != kept.state:
                    kept.write(state)
        except NoState as error:
            raise OSError(errno.ENOTTY, str(error)) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self._space = Space()

    def _answer(self, command: bytes, state: State, faults: Faults) -> tuple[bytes | Exception, State]:
        self._lose_what_is_gone(state)
        if faults.late:
            # It is carried out all the same, and what it loads stays.
            _, state = execute(command, state, self._space, self._now_ms(), secrets.token_bytes)
            return self._late(), state
        if faults.busy:
            return OSError(errno.EBUSY, ""), state
        if faults.tpm_1_2:
            return _TPM_1_2, state
        if faults.retry:
            return _RETRY, state
        return execute(command, state, self._space, self._now_ms(), secrets.token_bytes)

    def _lose_what_is_gone(self, state: State) -> None:
        if self._space.boot != state.boot:
            self._space = Space(state.boot, state.cleared)
        if self._space.cleared != state.cleared:
            # TPM2_Clear, or another endorsement seed: what the hierarchies' seeds had made.
            self._space.cleared = state.cleared
            kept = {handle: one for handle, one in self._space.objects.items() if one.hierarchy == Handle.NULL}
            self._space.objects = kept
            self._space.persistent = {}


def _counted_down(state: State) -> State:
    """The state after one more command has met what it was to meet."""
    faults = state.faults
    for name in ("late", "busy", "retry"):
        left = getattr(faults, name)
        if left:
            less = left if left == FOREVER else left - 1
            return replace(state, faults=replace(faults, **{name: less}))
    return state
