"""`identity.json` (specification, "What the identity is"; decision 9)."""

from typing import Any

from bcd.domain.model.identity import Identity, Trust
from bcd.protocol.files.encoding import (
    MalformedFile,
    from_base64,
    from_time,
    json_object,
    text,
    to_base64,
    to_json,
    to_time,
)
from bcd.protocol.pki import certificates

_TRUST_FIELDS = ("trustVersion", "trustRoots", "trustBundle", "signedTrustBundle")
_FIELDS = (
    "nodeId",
    "siteId",
    "trustDomain",
    "role",
    "chain",
    "notAfter",
    "serverTime",
    *_TRUST_FIELDS,
)


def decode(data: bytes) -> Identity:
    """The identity in `data`, or MalformedFile. What the file says of the leaf must be what the leaf says."""
    value = json_object(data)
    chain = _many(value, "chain")
    if not chain:
        raise MalformedFile("has an empty chain")
    try:
        leaf = certificates.parse_leaf(chain[0])
    except certificates.MalformedCertificate as error:
        raise MalformedFile(f"has a chain whose leaf does not parse: {error}") from None
    for number, der in enumerate(chain[1:], 2):
        try:
            certificates.load(der)
        except certificates.MalformedCertificate as error:
            raise MalformedFile(f"has a chain whose certificate {number} does not parse: {error}") from None
    says = {
        "nodeId": leaf.spiffe_id.node,
        "siteId": leaf.spiffe_id.site,
        "trustDomain": leaf.spiffe_id.trust_domain,
        "role": leaf.role.value,
    }
    for name, expected in says.items():
        if text(value, name) != expected:
            raise MalformedFile(f"has a {name} that is not its certificate's")
    if from_time(value.get("notAfter"), "notAfter") != leaf.not_after:
        raise MalformedFile("has a notAfter that is not its certificate's")
    server_time = from_time(value["serverTime"], "serverTime") if "serverTime" in value else None
    unknown = {name: found for name, found in value.items() if name not in _FIELDS}
    return Identity(leaf, tuple(chain), _trust(value), server_time, unknown)


def encode(identity: Identity) -> bytes:
    """`identity` as the file; absent values are left out, unknown fields are kept."""
    value: dict[str, Any] = {
        "nodeId": identity.node_id,
        "siteId": identity.site_id,
        "trustDomain": identity.trust_domain,
        "role": identity.role.value,
        "chain": [to_base64(der) for der in identity.chain],
        "notAfter": to_time(identity.leaf.not_after),
    }
    if identity.trust is not None:
        value["trustVersion"] = identity.trust.version
        value["trustRoots"] = [to_base64(root) for root in identity.trust.roots]
        value["trustBundle"] = to_base64(identity.trust.bundle)
        if identity.trust.signed is not None:
            value["signedTrustBundle"] = to_base64(identity.trust.signed)
    if identity.server_time is not None:
        value["serverTime"] = to_time(identity.server_time)
    return to_json(value | {name: found for name, found in identity.unknown.items() if name not in value})


def _trust(value: dict[str, Any]) -> Trust | None:
    # Part of a bundle is not none: read as none it would end the enforcement of signed intent, silently.
    if not any(name in value for name in _TRUST_FIELDS):
        return None
    version = value.get("trustVersion")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1 << 64:
        raise MalformedFile("has a trustVersion that is not a number")
    signed = from_base64(value["signedTrustBundle"], "signedTrustBundle") if "signedTrustBundle" in value else None
    roots = tuple(_many(value, "trustRoots")) if "trustRoots" in value else ()
    return Trust(version, roots, from_base64(value.get("trustBundle"), "trustBundle"), signed)


def _many(value: dict[str, Any], name: str) -> list[bytes]:
    found = value.get(name)
    if not isinstance(found, list):
        raise MalformedFile(f"has no {name}")
    return [from_base64(item, name) for item in found]
