"""Who is at the other end of a connection."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import unquote

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bcd.controlplane.domain.gateway import Presented
from bcd.domain.model.names import TrustDomain
from bcd.protocol.pki import certificates

Context = grpc.aio.ServicerContext[Any, Any]


class NotANode(Exception):
    """The client certificate is by our CA and not a node's leaf; the message says why."""


def presented(context: Context, domain: TrustDomain) -> Presented:
    """The client certificate of this connection, which TLS has verified up to the node root. NotANode otherwise."""
    pems = tuple(context.auth_context().get("x509_pem_cert", ()))
    if not pems:
        raise NotANode("no client certificate")
    try:
        der = x509.load_pem_x509_certificate(pems[0]).public_bytes(serialization.Encoding.DER)
        leaf = certificates.parse_leaf(der)
        serial = certificates.load(der).serial_number
    except ValueError as error:
        raise NotANode(str(error)) from None
    if leaf.spiffe_id.trust_domain != domain:
        raise NotANode("the certificate is of another trust domain")
    return Presented(leaf, f"{serial:032x}", source(context.peer()))


def source(peer: str) -> str:
    """The address of a gRPC peer (`ipv4:192.0.2.7:4711`) without its port; of an IPv6 one its /64."""
    kind, _, rest = unquote(peer).partition(":")
    host = rest.rpartition(":")[0].strip("[]")
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return kind or "unknown"
    if isinstance(address, IPv6Address) and not address.is_loopback:
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        # Whoever has one address of a network this size has them all.
        return str(ip_network((address, 64), strict=False))
    return str(address)
