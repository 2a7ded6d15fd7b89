"""Names of things, as they stand in a SPIFFE ID (SPIFFE-ID standard, sections 2.1 to 2.3) and a leaf's subject."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

TrustDomain = NewType("TrustDomain", str)
SiteId = NewType("SiteId", str)
NodeId = NewType("NodeId", str)

# SPIFFE-ID 2.1: lower-case letters, digits, dots, dashes and underscores; 255 bytes at most.
_TRUST_DOMAIN = re.compile(r"[a-z0-9._-]{1,255}")
# SPIFFE-ID 2.2 allows these characters in a path segment; 63 keeps a node id inside a certificate's CN (64).
_SEGMENT = re.compile(r"[a-zA-Z0-9._-]{1,63}")


class MalformedName(ValueError):
    """A text that is not a name of its kind; the message says which and why."""


class Role(StrEnum):
    """What the control plane lets a node be; in a leaf as `OU=bc-role:<role>`."""

    NODE = "node"
    SITE = "site"
    RAMDISK = "ramdisk"


def trust_domain(text: str) -> TrustDomain:
    if not _TRUST_DOMAIN.fullmatch(text):
        raise MalformedName(f"not a trust domain: {text[:80]!r} (lower-case letters, digits and . _ -)")
    return TrustDomain(text)


def site_id(text: str) -> SiteId:
    return SiteId(_segment("site", text))


def node_id(text: str) -> NodeId:
    return NodeId(_segment("node", text))


def role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise MalformedName(f"not a role: {text[:80]!r} (node, site or ramdisk)") from None


def _segment(kind: str, text: str) -> str:
    if not _SEGMENT.fullmatch(text) or text in {".", ".."}:
        raise MalformedName(f"not a {kind} id: {text[:80]!r} (1 to 63 of letters, digits and . _ -)")
    return text


@dataclass(frozen=True)
class SpiffeId:
    """`spiffe://<trust domain>/site/<site>/node/<node>`."""

    trust_domain: TrustDomain
    site: SiteId
    node: NodeId

    def __str__(self) -> str:
        return f"spiffe://{self.trust_domain}/site/{self.site}/node/{self.node}"

    @staticmethod
    def parse(uri: str) -> "SpiffeId":
        """The id in `uri`, or MalformedName; nothing is normalized, so one id has one spelling."""
        match uri.split("/"):
            case ["spiffe:", "", domain, "site", site, "node", node]:
                return SpiffeId(trust_domain(domain), site_id(site), node_id(node))
        raise MalformedName(f"not a bcd SPIFFE ID: {uri[:200]!r}")
