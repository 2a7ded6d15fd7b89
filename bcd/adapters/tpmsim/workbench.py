"""What happens to a TPM from outside: switched off, cleared by firmware, spoiled by a test.

Nothing here is a command that bcd sends."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace

from bcd.adapters.tpmsim import primaries
from bcd.adapters.tpmsim.factory import CERTIFICATE_ATTRIBUTES, CERTIFICATES, fresh_hierarchy
from bcd.adapters.tpmsim.file import held
from bcd.adapters.tpmsim.state import (
    CLOCK_UPDATE_MS,
    DIGEST_BYTES,
    MAX_TRIES,
    PCRS,
    PLATFORM_CREATE,
    Faults,
    Hierarchy,
    Persistent,
    State,
    fresh_bank,
    with_nv,
)
from bcd.protocol.tpm2.structures import Algorithm, Handle


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Workbench:
    """The TPM at `path`. Each of these is durable on return, and takes its turn with commands.

    OSError as the system gave it, file.NoState for a file that is no TPM's."""

    def __init__(self, path: str, now_ms: Callable[[], int] = _now_ms) -> None:
        self._path = path
        self._now_ms = now_ms

    def power_cycle(self, *, loss: bool) -> None:
        """Off and on, and started by firmware; `loss`: without the TPM having been told before."""
        self._change(lambda state: powered_off(state, orderly=not loss, now_ms=self._now_ms()))

    def clear(self) -> None:
        """TPM2_Clear."""
        self._change(lambda state: cleared(state, self._now_ms()))

    def change_endorsement_seed(self) -> None:
        """TPM2_ChangeEPS."""
        self._change(with_endorsement_seed)

    def lock_out(self, *, on: bool) -> None:
        """As after too many failed authorizations, or as after it was reset."""
        self._change(lambda state: replace(state, failed_tries=MAX_TRIES if on else 0))

    def set_password(self, hierarchy: Handle, password: bytes) -> None:
        """TPM2_HierarchyChangeAuth; an empty one takes it away."""
        self._change(
            lambda state: _with_hierarchy(state, hierarchy, replace(state.hierarchy(hierarchy), auth=password))
        )

    def switch(self, hierarchy: Handle, *, off: bool) -> None:
        """TPM2_HierarchyControl: until the next power cycle."""
        self._change(lambda state: _with_hierarchy(state, hierarchy, replace(state.hierarchy(hierarchy), off=int(off))))

    def set_faults(self, change: Callable[[Faults], Faults]) -> None:
        """What the next commands meet."""
        self._change(lambda state: replace(state, faults=change(state.faults)))

    def allocate(self, banks: tuple[int, ...]) -> None:
        """TPM2_PCR_Allocate, and the reset that it takes."""
        self._change(lambda state: replace(state, banks=tuple(fresh_bank(bank) for bank in banks)))

    def extend(self, bank: int, pcr: int, digest: bytes) -> None:
        """TPM2_PCR_Extend."""
        if not 0 <= pcr < PCRS:
            raise ValueError("PCRs are 0 to 23")
        self._change(lambda state: extended(state, bank, pcr, digest))

    def store(
        self, index: int, data: bytes | None, attributes: int = CERTIFICATE_ATTRIBUTES, auth: bytes = b""
    ) -> None:
        """An NV index and what it holds, in the place of what was there; None: defined, never written."""
        self._change(lambda state: with_nv(state, index, attributes, data, auth))

    def persist(self, key: Persistent) -> None:
        """TPM2_EvictControl: a primary key that stays."""
        self._change(lambda state: persisted(state, key))

    def remove(self, *indices: int) -> None:
        """TPM2_NV_UndefineSpace."""
        self._change(lambda state: replace(state, nv=tuple(i for i in state.nv if i.public.index not in indices)))

    def remove_certificates(self) -> None:
        """A chip whose manufacturer put none in."""
        self.remove(*CERTIFICATES)

    def state(self) -> State:
        """As it is."""
        with held(self._path) as kept:
            return kept.state

    def _change(self, change: Callable[[State], State]) -> None:
        with held(self._path) as kept:
            kept.write(change(kept.state))


def _with_hierarchy(state: State, handle: Handle, hierarchy: Hierarchy) -> State:
    if handle == Handle.OWNER:
        return replace(state, owner=hierarchy)
    return replace(state, endorsement=hierarchy)


def powered_off(state: State, *, orderly: bool, now_ms: int) -> State:
    """The state after the power went and came back, and the firmware started the TPM.

    Not `orderly` is a loss of power: the clock goes back to where it was last saved, and is not safe."""
    clock_ms, _ = state.clock_at(now_ms)
    failed = state.failed_tries
    if not orderly:
        clock_ms -= clock_ms % CLOCK_UPDATE_MS
        failed = min(MAX_TRIES, failed + state.tried)
    return replace(
        state,
        boot=state.boot + 1,
        null=fresh_hierarchy(),
        clock_ms=clock_ms,
        since_ms=now_ms,
        resets=state.resets + 1,
        restarts=0,
        safe=int(orderly),
        failed_tries=failed,
        tried=0,
        owner=replace(state.owner, off=0),
        endorsement=replace(state.endorsement, off=0),
        banks=tuple(fresh_bank(bank.algorithm) for bank in state.banks),
        extends=0,
    )


def cleared(state: State, now_ms: int) -> State:
    """TPM2_Clear: another owner seed, no passwords, the owner's objects and indices gone, the clock at 0."""
    nv = tuple(one for one in state.nv if one.public.attributes & PLATFORM_CREATE)
    return replace(
        state,
        cleared=state.cleared + 1,
        owner=fresh_hierarchy(),
        # The endorsement seed stays, its proof does not.
        endorsement=replace(fresh_hierarchy(), seed=state.endorsement.seed),
        nv=nv,
        persistent=tuple(one for one in state.persistent if one.hierarchy == Handle.NULL),
        clock_ms=0,
        since_ms=now_ms,
        resets=0,
        restarts=0,
        safe=1,
        failed_tries=0,
    )


def with_endorsement_seed(state: State) -> State:
    """TPM2_ChangeEPS: other endorsement keys; certificates stay, and are no longer theirs."""
    persistent = tuple(one for one in state.persistent if one.hierarchy != Handle.ENDORSEMENT)
    return replace(state, cleared=state.cleared + 1, endorsement=fresh_hierarchy(), persistent=persistent)


def persisted(state: State, key: Persistent) -> State:
    # An RSA key is made here, once.
    _, state = primaries.derive(state, key.hierarchy, key.template, b"")
    return replace(state, persistent=(*state.persistent, key))


def extended(state: State, algorithm: int, pcr: int, digest: bytes) -> State:
    bank = state.bank(algorithm)
    if bank is None:
        raise ValueError("no such bank")
    size_bytes = DIGEST_BYTES[Algorithm(algorithm)]
    at = pcr * size_bytes
    before = bank.digests[at : at + size_bytes]
    after = hashlib.new(Algorithm(algorithm).name.lower(), before + digest).digest()
    changed = replace(bank, digests=bank.digests[:at] + after + bank.digests[at + size_bytes :])
    banks = tuple(changed if one is bank else one for one in state.banks)
    return replace(state, banks=banks, extends=state.extends + 1)
