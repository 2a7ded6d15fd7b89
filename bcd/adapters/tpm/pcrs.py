"""Which PCR banks a TPM has, and what stands in them."""

from hashlib import sha256

from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.failures import Refusal
from bcd.protocol.tpm2 import commands
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import PcrReadIn
from bcd.protocol.tpm2.structures import Algorithm, PcrSelection

PCR_0 = b"\x01\x00\x00"
# What most TPMs implement, and what some do besides.
_COMMON = (Algorithm.SHA1, Algorithm.SHA256, Algorithm.SHA384, Algorithm.SHA512)
_RARE = (Algorithm.SM3_256,)


def banks(client: Client) -> tuple[Algorithm, ...]:
    """The banks that have PCRs, by asking each for its first: in one command on most TPMs."""
    together = _allocated(client, _COMMON)
    if together:
        return together
    return tuple(bank for one in (*_COMMON, *_RARE) for bank in _allocated(client, (one,)))


def values(client: Client, selection: PcrSelection) -> tuple[bytes, ...]:
    """The selected PCRs, from the lowest. A TPM gives at most eight at a time, so it is asked until it has given
    all; the failure of a TPM that gives none of what is left."""
    found: list[bytes] = []
    left = int.from_bytes(selection.selected, "little")
    while left:
        wanted = PcrSelection(selection.bank, left.to_bytes(len(selection.selected), "little"))
        answer = client.run(commands.PCR_READ, (), PcrReadIn((wanted,))).parameters
        given = sum(int.from_bytes(one.selected, "little") for one in answer.selection if one.bank == selection.bank)
        if not given or given & ~left or given.bit_count() != len(answer.values):
            raise client.failed(commands.PCR_READ, "gave other PCRs than it was asked for")
        found += answer.values
        left &= ~given
    return tuple(found)


def digest(found: tuple[bytes, ...]) -> bytes:
    """What a quote by a key with SHA-256 says of them (Part 3, 18.4)."""
    return sha256(b"".join(found)).digest()


def _allocated(client: Client, wanted: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
    selection = tuple(PcrSelection(bank, PCR_0) for bank in wanted)
    try:
        answer = client.run(commands.PCR_READ, (), PcrReadIn(selection)).parameters
    except Refusal as refusal:
        if refusal.code.base == Rc.HASH:
            # One of these algorithms is not this TPM's.
            return ()
        raise
    # A bank that is not allocated is read all the same: as no PCR.
    given = {one.bank for one in answer.selection if any(one.selected)}
    return tuple(bank for bank in wanted if bank in given)
