"""Port `Entropy` from the kernel's generator."""

import os


class SystemEntropy:
    def fraction(self) -> float:
        # 53 bits: what a float in [0, 1) holds.
        return (int.from_bytes(os.urandom(8)) >> 11) / (1 << 53)
