"""What a key outside the endorsement hierarchy does not tell: how often this machine was reset (Part 1, 36.7)."""

import hmac
from dataclasses import replace

from bcd.protocol.tpm2.structures import ClockInfo

_BITS = 128


def obfuscated(proof: bytes, signer: bytes, firmware: int, clock: ClockInfo) -> tuple[int, ClockInfo]:
    """Firmware version and reset counts, each with a number added that is the owner hierarchy's and the signer's."""
    made = hmac.digest(proof, b"OBFUSCATE\0" + signer + _BITS.to_bytes(4), "sha256")[: _BITS // 8]
    first, resets, restarts = int.from_bytes(made[:8]), int.from_bytes(made[8:12]), int.from_bytes(made[12:])
    counts = replace(
        clock, resets=(clock.resets + resets) % (1 << 32), restarts=(clock.restarts + restarts) % (1 << 32)
    )
    return (firmware + first) % (1 << 64), counts
