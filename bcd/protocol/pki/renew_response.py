"""Opening a renew response: the numbered checks of docs/protocol.md, "Checking a renew response"."""

from dataclasses import dataclass
from datetime import datetime

from bcd.domain.model.identity import Leaf, Trust, same_identity
from bcd.domain.model.pins import Pins
from bcd.protocol.pki.issued import DoesNotVerify, open_bundle, open_issued
from bcd.protocol.pki.statements import Purpose


class OtherIdentity(DoesNotVerify):
    """Check 9: the certificate is another node's."""


class OtherKey(DoesNotVerify):
    """Check 8: the certificate is for another key."""


@dataclass(frozen=True)
class Expected:
    """What the node asked for: a certificate for `spki`, of the identity of the leaf it holds."""

    csr: bytes
    spki: bytes
    held: Leaf
    pins: Pins


@dataclass(frozen=True)
class RenewResponse:
    """A verified answer."""

    leaf: Leaf
    chain: tuple[bytes, ...]
    trust: Trust
    server_time: datetime


def open_renew_response(signed: bytes, expected: Expected) -> RenewResponse:
    """The answer in `signed` (a serialized SignedStatement); DoesNotVerify or SigningKeyIsAnother otherwise."""
    # 1 to 7: signer, request and chain, as for any issued certificate.
    issued = open_issued(Purpose.RENEW_RESPONSE, signed, expected.csr, expected.pins)
    leaf, held = issued.leaf, expected.held
    # 8. The leaf certifies the key that was asked for.
    if leaf.spki != expected.spki:
        raise OtherKey(8, "the certificate does not certify the new key")
    # 9. The leaf is of the same node, site, trust domain and role.
    if not same_identity(leaf, held):
        raise OtherIdentity(9, f"the certificate is for {_who(leaf, held)}, not {_who(held, leaf)}")
    # 10. The leaf outlives the one it replaces: an answer from the past would shorten the identity's life.
    if leaf.not_after <= held.not_after:
        raise DoesNotVerify(10, "the certificate ends no later than the one it replaces")
    # 11. The leaf names the same attestation key, or as before none.
    if leaf.ak_name != held.ak_name:
        raise DoesNotVerify(11, "the certificate names another attestation key")
    # 12. The trust bundle is by the same key and of the leaf's trust domain.
    trust = open_bundle(12, issued, expected.pins)
    return RenewResponse(leaf, issued.chain, trust, issued.server_time)


def _who(leaf: Leaf, other: Leaf) -> str:
    """As the specification tells it; the trust domain too when that is what differs."""
    domain, theirs = leaf.spiffe_id.trust_domain, other.spiffe_id.trust_domain
    told = f"{leaf.spiffe_id.site}/{leaf.spiffe_id.node} ({leaf.role.value})"
    return told if domain == theirs else f"{told} of {domain}"
