"""Ports: the machine's own TPM, and the node keys in it."""

from typing import Protocol

from bcd.domain.model.keys import Hash
from bcd.domain.model.tpm import TpmFound


class Tpm(Protocol):
    def identify(self) -> TpmFound:
        """What it is and holds. Nothing of it is changed, and nothing stays loaded.

        The documented failure when there is no TPM 2.0, it cannot be opened, does not answer or is not started; what
        is wrong with one key or one hierarchy stands in the result."""
        ...


class TpmKeys(Protocol):
    """Each key is named by its unique, 32 bytes; nothing of it is stored in the TPM. Every failure is TryLater with the
    documented message: whether a key is the one wanted is never told by a failure."""

    def node_key(self, unique: bytes) -> bytes:
        """The key's public half, SubjectPublicKeyInfo DER. A cleared TPM derives another from the same unique."""
        ...

    def sign(self, unique: bytes, message: bytes, digest: Hash) -> bytes:
        """ECDSA over the message's digest, P1363, 64 bytes, by whatever key the TPM derives now."""
        ...

    def release(self, unique: bytes) -> None:
        """Makes room; the next use derives the key again."""
        ...
