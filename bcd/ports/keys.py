"""Ports: node keys and the store that makes them."""

from typing import Protocol

from bcd.domain.model.keys import KeyKind, KeyState


class NodeKey(Protocol):
    """A P-256 key that signs, wherever it lives."""

    @property
    def kind(self) -> KeyKind: ...

    @property
    def spki(self) -> bytes:
        """SubjectPublicKeyInfo, DER."""
        ...

    @property
    def record(self) -> bytes:
        """What `node.key` holds for it: PEM, a PKCS#8 key or a TPM record. A secret either way."""
        ...

    def sign(self, message: bytes) -> bytes:
        """ECDSA over SHA-256(message), P1363, 64 bytes."""
        ...

    def request(self) -> bytes:
        """A PKCS#10 request for this key, DER: fixed subject, empty attributes."""
        ...


class KeyStore(Protocol):
    def create(self) -> NodeKey:
        """A new key, nowhere stored yet."""
        ...

    def open(self, record: bytes) -> NodeKey | KeyState:
        """The key of a record, or the KeyState that says why there is none now (KeyMalformed, KeyUnavailable)."""
        ...
