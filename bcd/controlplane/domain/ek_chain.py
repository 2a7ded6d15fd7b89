"""Whether an endorsement key's certificate leads to a manufacturer CA that the operator trusts (docs/protocol.md).

Each CA the operator named is an anchor: a chain may end at an intermediate one. Dates decide nothing: a chip outlives
its certificate, and the CA above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import Reason
from bcd.protocol.pki import ek_certificate, ek_signature
from bcd.protocol.pki.ek_certificate import ManufacturerCertificate

# TCG EK Credential Profile, 3.2.16: tcg-kp-EKCertificate; and RFC 5280's anyExtendedKeyUsage, which a CA may have.
EK_PURPOSE = "2.23.133.8.1"
_ANY_PURPOSE = "2.5.29.37.0"
# What is looked at below, and policies, of which none is asked for.
_HANDLED = frozenset(
    {
        ek_certificate.BASIC_CONSTRAINTS,
        ek_certificate.KEY_USAGE,
        ek_certificate.EXTENDED_KEY_USAGE,
        ek_certificate.CERTIFICATE_POLICIES,
    }
)
# Longer chains are nobody's; and what a chip brings along must not keep the control plane busy.
MAX_DEPTH = 6
MAX_SIGNATURES = 64
# A certificate has room for thousands of purposes, and a refusal is a row and a line of the log.
MAX_PURPOSES_SHOWN = 8


@dataclass
class Effort:
    """How many signatures may still be verified for one machine, however many keys it offers."""

    left: int = MAX_SIGNATURES


def check_ek(certificate: ManufacturerCertificate) -> None:
    """No when it is no endorsement key's certificate, whoever signed it."""
    if certificate.is_ca is not False:
        said = "says that it is a CA's" if certificate.is_ca else "does not say CA:FALSE"
        raise No(Reason.EK_CERTIFICATE_CA, f"the certificate {said}")
    if certificate.purposes is not None and EK_PURPOSE not in certificate.purposes:
        some = ", ".join(certificate.purposes[:MAX_PURPOSES_SHOWN]) or "none"
        raise No(Reason.EK_CERTIFICATE_PURPOSE, f"its purposes are {some}")
    for oid in certificate.critical:
        # The TCG has the TPM's model and version there, critical as the subject is empty; no verifier knows them.
        names_the_tpm = oid == ek_certificate.SUBJECT_ALTERNATIVE_NAME and certificate.names_directories
        if oid not in _HANDLED and not names_the_tpm:
            raise No(Reason.EK_CERTIFICATE_EXTENSION, oid)


def anchors_above(
    certificate: ManufacturerCertificate,
    chain: Sequence[ManufacturerCertificate],
    anchors: Sequence[ManufacturerCertificate],
    effort: Effort | None = None,
) -> tuple[ManufacturerCertificate, ...]:
    """Every one of `anchors` that `certificate` leads to, the nearest first; No when there is none.

    Takes from `effort`. `chain` helps on the way and is trusted for nothing: it comes from the machine."""
    found: list[ManufacturerCertificate] = []
    reached, troubles = [certificate], list[No]()
    seen = {certificate.der}
    effort = effort or Effort()
    level = [certificate]
    for depth in range(MAX_DEPTH):
        above_it: list[ManufacturerCertificate] = []
        for below in level:
            for above in (*anchors, *chain):
                if above.der in seen or above.subject.parts != below.issuer.parts or not effort.left:
                    continue
                effort.left -= 1
                try:
                    _check_issuer(below, above, depth)
                except No as trouble:
                    troubles.append(trouble)
                    continue
                seen.add(above.der)
                above_it.append(above)
                if above in anchors:
                    found.append(above)
        reached += above_it
        level = above_it
    if found:
        return tuple(found)
    if troubles:
        raise troubles[0]
    raise No(Reason.EK_CA_UNKNOWN, f"no CA known here is {reached[-1].issuer}")


def _check_issuer(below: ManufacturerCertificate, above: ManufacturerCertificate, depth: int) -> None:
    """`depth`: how many CAs stand between `above` and the endorsement key's certificate."""
    if not above.is_ca or above.signs_certificates is False:
        raise No(Reason.EK_CA_UNFIT, f"{above.subject} may not sign certificates")
    if above.path_length is not None and above.path_length < depth:
        raise No(Reason.EK_CA_UNFIT, f"{above.subject} has a path length of {above.path_length}")
    for oid in above.critical:
        if oid not in _HANDLED:
            raise No(Reason.EK_CA_UNFIT, f"{above.subject} has an unknown critical extension {oid}")
    if ek_certificate.EXTENDED_KEY_USAGE in above.critical and not {EK_PURPOSE, _ANY_PURPOSE} & set(
        above.purposes or ()
    ):
        raise No(Reason.EK_CA_UNFIT, f"{above.subject} is for purposes other than endorsement keys")
    if below.signature_algorithm not in ek_signature.KNOWN:
        raise No(Reason.EK_SIGNATURE_UNKNOWN, f"{below.signature_algorithm}, by {below.issuer}")
    if not ek_signature.is_signed_by(below, above):
        raise No(Reason.EK_SIGNATURE_WRONG, f"not by the key of {above.subject}")
