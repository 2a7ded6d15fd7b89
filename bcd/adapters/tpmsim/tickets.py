"""A TPM's word to itself: HMACs by a hierarchy's proof (Part 2, 10.7)."""

import hmac

from bcd.adapters.tpmsim.state import State
from bcd.protocol.tpm2.structures import Tag


def ticket(state: State, hierarchy: int, tag: Tag, *parts: bytes) -> bytes:
    """The ticket's digest, with the algorithm of saved contexts, which is SHA-512 in libtpms."""
    return hmac.digest(state.hierarchy(hierarchy).proof, tag.to_bytes(2) + b"".join(parts), "sha512")
