"""Pin to CA (docs/protocol.md, "TLS on the node"): which certificate becomes gRPC's only root.

gRPC has no hook to look at a chain, so the chain a server presents is taken in a bare handshake first; it proves
nothing by itself. The CA with the pinned key is looked for in it, and exactly that one is what gRPC then verifies
against.
"""

import socket
import ssl
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.files.config import Address

CONNECT_TIMEOUT_S = 10.0
MAX_CHAIN = 10


class CannotProbe(Exception):
    """No chain could be had, or it is out of date; the message is for an operator. Worth another try."""


@dataclass(frozen=True)
class ServingCa:
    """The CA with the pinned key, PEM."""

    pem: bytes


def from_file(data: bytes, pins: Pins, now: datetime) -> ServingCa | None:
    """The pinned CA among the PEM certificates in `data`, or None: a file beside the configuration only helps."""
    try:
        certificates = x509.load_pem_x509_certificates(data)
    except (ValueError, x509.InvalidVersion):
        return None
    return next((_root(ca) for ca in certificates if _matches(ca, pins) and _sound(ca) and _in_date(ca, now)), None)


def from_server(
    address: Address, pins: Pins, now: datetime, config_path: str, timeout_s: float = CONNECT_TIMEOUT_S
) -> ServingCa:
    """The pinned CA in the chain the server presents.

    FixConfiguration (SERVING_PIN) when the chain holds no such CA; CannotProbe when there is no chain or the clock and
    the certificates disagree."""
    chain = _presented(address, timeout_s)
    pinned = [ca for ca in chain if _matches(ca, pins) and _sound(ca)]
    if not pinned:
        shown = ", ".join(_pin(ca) for ca in chain if _is_ca(ca)) or "no CA in the chain"
        raise FixConfiguration(Message.SERVING_PIN, have=pins, presented=shown, path=config_path)
    # The same CA may stand there twice with other dates.
    current = [ca for ca in pinned if _in_date(ca, now)]
    for certificate in (*(current or pinned), chain[0]):
        if now < certificate.not_valid_before_utc:
            raise CannotProbe(
                f"local clock {_shown(now)} is before the server certificate "
                f"(valid from {_shown(certificate.not_valid_before_utc)}); fix the clock"
            )
        if now >= certificate.not_valid_after_utc:
            raise CannotProbe(
                f"local clock {_shown(now)} is after the server certificate "
                f"(valid until {_shown(certificate.not_valid_after_utc)}); renew it on the server, or fix the clock"
            )
    return _root(current[0])


def _presented(address: Address, timeout_s: float) -> list[x509.Certificate]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing is trusted here: gRPC verifies the chain, and the host name, against the one root found in it.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((address.host, address.port), timeout=timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=address.host) as secure,
        ):
            # Public as SSLSocket.get_unverified_chain from Python 3.13 on.
            der = [c.public_bytes(ssl._ssl.ENCODING_DER) for c in secure._sslobj.get_unverified_chain() or ()]  # type: ignore[attr-defined]
    except ssl.SSLError as error:
        raise CannotProbe(f"{address}: no TLS 1.3 there ({error.reason or 'handshake failed'})") from None
    except (socket.gaierror, ValueError):
        # ValueError: not even the form of a host name (an empty label, a leading dot).
        raise CannotProbe(f"{address}: the host name does not resolve") from None
    except TimeoutError:
        raise CannotProbe(f"{address}: no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise CannotProbe(f"{address}: {(error.strerror or 'cannot connect').lower()}") from None
    try:
        return [x509.load_der_x509_certificate(one) for one in der[:MAX_CHAIN]]
    except (ValueError, x509.InvalidVersion):
        raise CannotProbe(f"{address}: presents a chain that does not parse") from None


def _matches(certificate: x509.Certificate, pins: Pins) -> bool:
    spki = _spki(certificate)
    return spki is not None and pins.match(spki)


def _pin(certificate: x509.Certificate) -> str:
    spki = _spki(certificate)
    return "a key of an unknown kind" if spki is None else str(Pin.of(spki))


def _spki(certificate: x509.Certificate) -> bytes | None:
    """The certificate's SubjectPublicKeyInfo, DER; None for a key the library cannot read."""
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return False


def _sound(certificate: x509.Certificate) -> bool:
    """A CA, self-issued, and verified by its own key."""
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return _is_ca(certificate)


def _in_date(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _root(certificate: x509.Certificate) -> ServingCa:
    return ServingCa(certificate.public_bytes(serialization.Encoding.PEM))


def _shown(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
