"""The trust bundle: command-signing roots and approvers, as the JoinService key signed them."""

from datetime import UTC

from google.protobuf.message import DecodeError

from bcd.domain.model import names
from bcd.domain.model.identity import Trust
from bcd.domain.model.pins import Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa, statements

MAX_ROOTS = 32


class BadBundle(Exception):
    """The bundle does not verify or does not parse; the message says which."""


def open_serialized(signed: bytes, pins: Pins, domain: names.TrustDomain) -> Trust:
    """As `open_bundle`, of a serialized SignedStatement."""
    try:
        envelope = statements.parse(signed)
    except statements.MalformedStatement as error:
        raise BadBundle(f"the trust bundle {error}") from None
    return open_bundle(envelope, pins, domain)


def open_bundle(signed: pb.SignedStatement, pins: Pins, domain: names.TrustDomain) -> Trust:
    """The bundle for a node of `domain`, once it verifies under the JoinService signing key."""
    try:
        statement = statements.verify(statements.Purpose.TRUST_BUNDLE, signed, pins)
    except (statements.BadStatement, statements.SignerIsAnother) as error:
        raise BadBundle(f"the trust bundle: {error}") from None
    bundle = pb.TrustBundle()
    try:
        bundle.ParseFromString(statement.payload)
    except DecodeError:
        raise BadBundle("the trust bundle is not a TrustBundle") from None
    if bundle.trust_domain != domain:
        raise BadBundle(f"the trust bundle is of {bundle.trust_domain!r}, the node's trust domain is {domain}")
    if len(bundle.command_roots) > MAX_ROOTS:
        raise BadBundle(f"the trust bundle has more than {MAX_ROOTS} roots")
    for root in bundle.command_roots:
        try:
            ecdsa.public_key(root)
        except ecdsa.MalformedKey as error:
            raise BadBundle(f"a root of the trust bundle is {error}") from None
    for approver in bundle.approvers:
        _check_approver(approver)
    try:
        bundle.issued_at.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadBundle("the trust bundle has no time of issue") from None
    if not bundle.HasField("issued_at"):
        raise BadBundle("the trust bundle has no time of issue")
    return Trust(bundle.version, tuple(bundle.command_roots), statement.payload, statement.raw)


def _check_approver(approver: pb.Approver) -> None:
    try:
        key = ecdsa.public_key(approver.spki)
    except ecdsa.MalformedKey as error:
        raise BadBundle(f"an approver of the trust bundle is {error}") from None
    if approver.kid != ecdsa.thumbprint(key):
        raise BadBundle("an approver of the trust bundle has a kid that is not its key's")
