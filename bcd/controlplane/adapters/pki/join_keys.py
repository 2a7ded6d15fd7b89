"""The JoinService's two keys: one signs answers, one opens sealed tokens."""

from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain.trust import NO_TRUST, Approver, TrustContent
from bcd.domain.model.names import TrustDomain
from bcd.domain.model.pending import SealedToken
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa, seal, statements
from bcd.protocol.pki.statements import Purpose


@dataclass(frozen=True, repr=False)
class SigningKey:
    """`ports.signing.Statements` over a key at hand."""

    key: ec.EllipticCurvePrivateKey

    def join_response(
        self, csr_sha256: bytes, chain: tuple[bytes, ...], signed_bundle: bytes, server_time: datetime
    ) -> bytes:
        response = pb.JoinResponse(
            csr_sha256=csr_sha256, chain=chain, trust_bundle=pb.SignedStatement.FromString(signed_bundle)
        )
        response.server_time.FromDatetime(server_time)
        return self._signed(Purpose.JOIN_RESPONSE, response.SerializeToString(deterministic=True))

    def renew_response(
        self, csr_sha256: bytes, chain: tuple[bytes, ...], signed_bundle: bytes, server_time: datetime
    ) -> bytes:
        response = pb.RenewResponse(
            csr_sha256=csr_sha256, chain=chain, trust_bundle=pb.SignedStatement.FromString(signed_bundle)
        )
        response.server_time.FromDatetime(server_time)
        return self._signed(Purpose.RENEW_RESPONSE, response.SerializeToString(deterministic=True))

    def trust_bundle(
        self, domain: TrustDomain, version: int, issued: datetime, content: TrustContent = NO_TRUST
    ) -> bytes:
        bundle = pb.TrustBundle(
            trust_domain=domain,
            version=version,
            command_roots=content.roots,
            approvers=[
                pb.Approver(kid=ecdsa.thumbprint(ecdsa.public_key(one.spki)), spki=one.spki, name=one.name)
                for one in content.approvers
            ],
            quorum=content.quorum,
        )
        bundle.issued_at.FromDatetime(issued)
        return self._signed(Purpose.TRUST_BUNDLE, bundle.SerializeToString(deterministic=True))

    def content(self, signed_bundle: bytes) -> TrustContent:
        bundle = pb.TrustBundle.FromString(pb.SignedStatement.FromString(signed_bundle).payload)
        approvers = tuple(Approver(one.name, one.spki) for one in bundle.approvers)
        return TrustContent(tuple(bundle.command_roots), approvers, bundle.quorum)

    def _signed(self, purpose: Purpose, payload: bytes) -> bytes:
        statement = statements.make(
            purpose, payload, self.key.public_key(), lambda message: ecdsa.sign(self.key, message)
        )
        return statement.SerializeToString(deterministic=True)


class SealKey:
    """`ports.signing.Unsealer` over a key at hand."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._kid = ecdsa.thumbprint(key.public_key())

    @property
    def kid(self) -> str:
        return self._kid

    def open(self, sealed: SealedToken, csr: bytes) -> bytes | None:
        try:
            return seal.open_sealed(self._key, sealed.sealed, csr)
        except seal.DoesNotOpen:
            return None
