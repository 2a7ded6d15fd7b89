"""PCR_Read, and the digest of PCRs that creation data and quotes hold."""

import hashlib

from bcd.adapters.tpmsim.call import Call
from bcd.adapters.tpmsim.state import DIGEST_BYTES, PCRS, Bank, State
from bcd.protocol.tpm2.commands import PcrReadIn, PcrReadOut
from bcd.protocol.tpm2.structures import MAX_DIGESTS, Algorithm, PcrSelection

# What libtpms counts to while it starts.
_UPDATE_COUNTER = 20


def read(call: Call) -> PcrReadOut:
    given: PcrReadIn = call.parameters
    values: list[bytes] = []
    chosen = []
    for one in filtered(call.state, given.selection):
        bank = call.state.bank(one.bank)
        mask = 0
        for pcr in _numbers(one):
            if bank is not None and len(values) < MAX_DIGESTS:
                values.append(_digest(bank, pcr))
                mask |= 1 << pcr
        chosen.append(PcrSelection(one.bank, mask.to_bytes(len(one.selected), "little")))
    return PcrReadOut(_UPDATE_COUNTER + call.state.extends, tuple(chosen), tuple(values))


def filtered(state: State, selections: tuple[PcrSelection, ...]) -> tuple[PcrSelection, ...]:
    """The selection without what is not there: of a bank that is not allocated, no PCR."""
    return tuple(
        one if state.bank(one.bank) is not None else PcrSelection(one.bank, bytes(len(one.selected)))
        for one in selections
    )


def composite(state: State, selections: tuple[PcrSelection, ...], algorithm: int) -> bytes:
    """The digest over the selected PCRs, in the order of the selection."""
    digest = hashlib.new(Algorithm(algorithm).name.lower())
    for one in selections:
        bank = state.bank(one.bank)
        for pcr in _numbers(one):
            if bank is not None:
                digest.update(_digest(bank, pcr))
    return digest.digest()


def _numbers(selection: PcrSelection) -> list[int]:
    mask = int.from_bytes(selection.selected, "little")
    return [pcr for pcr in range(PCRS) if mask >> pcr & 1]


def _digest(bank: Bank, pcr: int) -> bytes:
    size_bytes = DIGEST_BYTES[Algorithm(bank.algorithm)]
    return bank.digests[pcr * size_bytes : (pcr + 1) * size_bytes]
