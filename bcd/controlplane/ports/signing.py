"""Ports: the control plane's private keys. Files today; a PKCS#11 token fits the same shape."""

from datetime import datetime
from typing import Protocol

from bcd.controlplane.domain.certificates import LeafToIssue
from bcd.controlplane.domain.trust import NO_TRUST, TrustContent
from bcd.domain.model.names import TrustDomain
from bcd.domain.model.pending import SealedToken


class CannotIssue(Exception):
    """The CA cannot sign this leaf now (its own certificate ends sooner, its key is away); the node may ask later."""


class Issuer(Protocol):
    def issue(self, leaf: LeafToIssue) -> tuple[bytes, ...]:
        """The chain, DER: the new leaf, then the issuing CA, without the root. CannotIssue otherwise."""
        ...


class Statements(Protocol):
    """Signed with the JoinService signing key; each answer is a serialized SignedStatement."""

    def join_response(
        self, csr_sha256: bytes, chain: tuple[bytes, ...], signed_bundle: bytes, server_time: datetime
    ) -> bytes: ...

    def renew_response(
        self, csr_sha256: bytes, chain: tuple[bytes, ...], signed_bundle: bytes, server_time: datetime
    ) -> bytes: ...

    def trust_bundle(
        self, domain: TrustDomain, version: int, issued: datetime, content: TrustContent = NO_TRUST
    ) -> bytes: ...

    def content(self, signed_bundle: bytes) -> TrustContent:
        """What one of our own trust bundles holds."""
        ...


class Unsealer(Protocol):
    """Holds the JoinService encryption key."""

    @property
    def kid(self) -> str: ...

    def open(self, sealed: SealedToken, csr: bytes) -> bytes | None:
        """The token's bytes, or None when it was not sealed to this key and beside this CSR (DER)."""
        ...
