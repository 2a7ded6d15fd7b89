"""Ports: node keys and the store that makes them."""

from typing import Protocol

from bcd.domain.model.keys import Hash, KeyKind, KeyState


class NodeKey(Protocol):
    """A P-256 key that signs, wherever it lives."""

    @property
    def kind(self) -> KeyKind:
        """Where the private half is: in a file, or in the TPM."""
        ...

    @property
    def spki(self) -> bytes:
        """SubjectPublicKeyInfo, DER."""
        ...

    @property
    def record(self) -> bytes:
        """What `node.key` holds for it: PEM, a PKCS#8 key or a TPM record. A secret either way."""
        ...

    def sign(self, message: bytes, digest: Hash = Hash.SHA256) -> bytes:
        """ECDSA over the message's digest, P1363, 64 bytes. TryLater for a TPM that does not sign now, or not as this
        key."""
        ...

    def request(self) -> bytes:
        """A PKCS#10 request for this key, DER: fixed subject, empty attributes. TryLater as `sign`."""
        ...

    def release(self) -> None:
        """Gives back what the key holds outside this process; it may still be used, and takes it again. Never
        fails."""
        ...


class KeyStore(Protocol):
    def create(self) -> NodeKey:
        """A new key that signs, nowhere stored yet; in the TPM where there is one that takes it. Never fails."""
        ...

    def create_in_tpm(self) -> NodeKey:
        """A new key that signs, in the TPM or not at all: TryLater with the TPM's reason."""
        ...

    def open(self, record: bytes) -> NodeKey | KeyState:
        """The key of a record, or the KeyState that says why there is none now (KeyMalformed, KeyUnavailable)."""
        ...
