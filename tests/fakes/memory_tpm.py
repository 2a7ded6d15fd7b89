"""`TpmKeys` in memory: one seed, from which each unique derives its key."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.domain.model.failures import Failure, Message, TryLater
from bcd.domain.model.keys import Hash
from bcd.protocol.pki import ecdsa

ABSENT = TryLater(Message.TPM_ABSENT, device="/dev/tpmrm0", why="No such file or directory", setting="…")
LOCKED = TryLater(Message.TPM_LOCKOUT, device="/dev/tpmrm0")


@dataclass
class MemoryTpmKeys:
    """`trouble` is what every command fails with, and `signs` whether a derived key signs at all; `loaded` are the
    uniques of keys in a slot, `commands` what a TPM was asked; `while_asked` is what happens before it answers which
    key a unique derives."""

    seed: bytes = b"seed"
    trouble: Failure | None = None
    signs: bool = True
    loaded: set[bytes] = field(default_factory=set)
    commands: list[str] = field(default_factory=list)
    while_asked: Callable[[], object] = lambda: None

    def clear(self) -> None:
        """As TPM2_Clear: the owner hierarchy has another seed."""
        self.seed += b"'"
        self.loaded.clear()

    def node_key(self, unique: bytes) -> bytes:
        self.while_asked()
        return ecdsa.spki_of(self._key(unique).public_key())

    def sign(self, unique: bytes, message: bytes, digest: Hash) -> bytes:
        key = self._key(unique)
        self.commands.append("Sign")
        if not self.signs:
            raise TryLater(Message.TPM_FAILED, device="/dev/tpmrm0", command="Sign", why="TPM_RC_SCHEME, 0x092")
        return ecdsa.sign(key, message, digest)

    def release(self, unique: bytes) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.loaded.discard(unique)

    def _key(self, unique: bytes) -> ec.EllipticCurvePrivateKey:
        if self.trouble is not None:
            raise self.trouble
        if unique not in self.loaded:
            self.commands.append("CreatePrimary")
            self.loaded.add(unique)
        return ec.derive_private_key(int.from_bytes(sha256(self.seed + unique).digest()) >> 1 | 1, ec.SECP256R1())
