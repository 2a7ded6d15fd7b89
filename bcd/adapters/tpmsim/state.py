"""What a software TPM keeps when it is off, and what stands for the machine around it: one declared structure."""

from dataclasses import dataclass, replace
from typing import Annotated

from bcd.protocol.tpm2.structures import Algorithm, Handle, NvAttribute, NvPublic, Public
from bcd.protocol.tpm2.wire import U8, U16, U32, U64, Constant, ListOf, Nested, Sized

# "bcdT", and a number that changes with the structure.
MAGIC = 0x62636454
VERSION = 1
SEED_BYTES = 32
PCRS = 24
MAX_NV_INDICES = 64
MAX_NV_BYTES = 2048
# maxTries of libtpms as it comes (Part 1, 19.8).
MAX_TRIES = 3
FOREVER = 0xFFFFFFFF
_UNWRITTEN_BYTES = 8
# NV_CLOCK_UPDATE_INTERVAL of libtpms: what a power loss takes from the clock at most.
CLOCK_UPDATE_MS = 0x1000

# TPMA_NV_PLATFORMCREATE (Part 2, 13.4): an index that is not the owner's to remove.
PLATFORM_CREATE = 1 << 30

_SECRET = Sized(64)


@dataclass(frozen=True)
class Hierarchy:
    """The seed that keys are derived from, the proof that tickets are made with, and what guards both."""

    seed: Annotated[bytes, Sized(SEED_BYTES)]
    proof: Annotated[bytes, Sized(SEED_BYTES)]
    auth: Annotated[bytes, _SECRET]
    off: Annotated[int, U8]


@dataclass(frozen=True)
class NvIndex:
    public: Annotated[NvPublic, Nested(NvPublic)]
    auth: Annotated[bytes, _SECRET]
    data: Annotated[bytes, Sized(MAX_NV_BYTES)]


@dataclass(frozen=True)
class RsaKey:
    """A generated RSA key, under the digest of the seed and template that it belongs to: making one takes long."""

    of: Annotated[bytes, Sized(32)]
    pkcs8: Annotated[bytes, Sized(4096)]


@dataclass(frozen=True)
class Persistent:
    """A primary key that stays."""

    handle: Annotated[int, U32]
    hierarchy: Annotated[int, U32]
    template: Annotated[Public, Nested(Public)]


@dataclass(frozen=True)
class Bank:
    algorithm: Annotated[int, U16]
    # The digests of PCRs 0 to 23, one behind the other.
    digests: Annotated[bytes, Sized(PCRS * 64)]


@dataclass(frozen=True)
class Faults:
    """What the next commands meet instead of a TPM that carries them out: each a number of commands, FOREVER for all.

    `late`: no answer in time; `busy`: EBUSY; `retry`: TPM_RC_RETRY. `held`: objects that others have loaded."""

    tpm_1_2: Annotated[int, U8] = 0
    not_started: Annotated[int, U8] = 0
    late: Annotated[int, U32] = 0
    busy: Annotated[int, U32] = 0
    retry: Annotated[int, U32] = 0
    held: Annotated[int, U8] = 0


@dataclass(frozen=True)
class State:
    """`since_ms` is the wall clock when `clock_ms` was true. `boot` numbers power cycles: what is loaded belongs to
    one. `tried`: something that counts towards a lockout was authorized in this boot."""

    magic: Annotated[int, Constant(MAGIC)]
    version: Annotated[int, Constant(VERSION)]
    boot: Annotated[int, U32]
    cleared: Annotated[int, U32]
    owner: Annotated[Hierarchy, Nested(Hierarchy)]
    endorsement: Annotated[Hierarchy, Nested(Hierarchy)]
    null: Annotated[Hierarchy, Nested(Hierarchy)]
    clock_ms: Annotated[int, U64]
    since_ms: Annotated[int, U64]
    resets: Annotated[int, U32]
    restarts: Annotated[int, U32]
    safe: Annotated[int, U8]
    failed_tries: Annotated[int, U32]
    tried: Annotated[int, U8]
    banks: Annotated[tuple[Bank, ...], ListOf(Nested(Bank), 8)]
    extends: Annotated[int, U32]
    nv: Annotated[tuple[NvIndex, ...], ListOf(Nested(NvIndex), MAX_NV_INDICES)]
    persistent: Annotated[tuple[Persistent, ...], ListOf(Nested(Persistent), 7)]
    rsa_keys: Annotated[tuple[RsaKey, ...], ListOf(Nested(RsaKey), 32)]
    faults: Annotated[Faults, Nested(Faults)]

    def hierarchy(self, handle: int) -> Hierarchy:
        """The hierarchy of its permanent handle; KeyError for none."""
        return {Handle.OWNER: self.owner, Handle.ENDORSEMENT: self.endorsement, Handle.NULL: self.null}[Handle(handle)]

    def bank(self, algorithm: int) -> Bank | None:
        return next((bank for bank in self.banks if bank.algorithm == algorithm), None)

    def nv_index(self, index: int) -> NvIndex | None:
        return next((one for one in self.nv if one.public.index == index), None)

    def known_index(self, index: int) -> NvIndex:
        """An index that is there; KeyError for none."""
        found = self.nv_index(index)
        if found is None:
            raise KeyError(index)
        return found

    def clock_at(self, now_ms: int) -> tuple[int, int]:
        """The TPM's clock, in ms, and its `safe`. A wall clock that was set back does not set it back."""
        clock_ms = self.clock_ms + max(0, now_ms - self.since_ms)
        # It is safe again when it has passed what it may have shown before the power loss.
        return clock_ms, int(bool(self.safe) or clock_ms // CLOCK_UPDATE_MS > self.clock_ms // CLOCK_UPDATE_MS)


DIGEST_BYTES = {Algorithm.SHA1: 20, Algorithm.SHA256: 32, Algorithm.SHA384: 48, Algorithm.SHA512: 64}
# PCRs 17 to 22 are ones until a dynamic launch (PC Client Platform TPM Profile, 4.6.2).
_ONES = range(17, 23)


def fresh_bank(algorithm: int) -> Bank:
    """A bank as after a reset."""
    size_bytes = DIGEST_BYTES[Algorithm(algorithm)]
    return Bank(algorithm, b"".join((b"\xff" if pcr in _ONES else b"\0") * size_bytes for pcr in range(PCRS)))


def with_nv(state: State, index: int, attributes: int, data: bytes | None, auth: bytes = b"") -> State:
    """The state with `data` at `index`, which may be there already; None for an index that was never written."""
    if data is not None:
        attributes |= NvAttribute.WRITTEN
    public = NvPublic(index, Algorithm.SHA256, attributes, b"", len(data) if data is not None else _UNWRITTEN_BYTES)
    others = tuple(one for one in state.nv if one.public.index != index)
    return replace(state, nv=(*others, NvIndex(public, auth, data or b"")))
