"""Certifying a node's key: the leaf, what is said of it, and the rows that both are kept in, in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.app.bundle import newest_bundle
from bcd.controlplane.domain.certificates import Certificate, CertificateState, GivenAnswer, LeafToIssue
from bcd.controlplane.domain.ids import SERIAL_BYTES
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import Role, SpiffeId

# `Statements.join_response` or `renew_response`: the hash of the request, the chain, the bundle, the server's time.
Say = Callable[[bytes, tuple[bytes, ...], bytes, datetime], bytes]


@dataclass(frozen=True)
class ToCertify:
    """A key that is to be certified. `spki` and the request that `csr_sha256` is of are DER; `credential` is what the
    answer is given for, and given again; `parent` the serial of the certificate that is renewed, empty for a join's."""

    spiffe_id: SpiffeId
    role: Role
    generation: int
    spki: bytes
    csr_sha256: bytes
    ak_name: bytes | None
    not_before: datetime
    not_after: datetime
    credential: str
    parent: str = ""


@dataclass(frozen=True)
class Certified:
    """`signed` is the serialized statement that the node is sent."""

    serial: str
    signed: bytes


@dataclass(frozen=True)
class Certify:
    random: Random
    issuer: Issuer

    def __call__(self, records: Records, key: ToCertify, say: Say, now: datetime) -> Certified:
        """Certificate and answer, put into the caller's transaction. CannotIssue, with nothing put."""
        serial = self.random.bytes(SERIAL_BYTES)
        chain = self.issuer.issue(
            LeafToIssue(
                spiffe_id=key.spiffe_id,
                role=key.role,
                spki=key.spki,
                serial=int.from_bytes(serial),
                not_before=key.not_before,
                not_after=key.not_after,
                ak_name=key.ak_name,
            )
        )
        signed = say(key.csr_sha256, chain, newest_bundle(records).signed, now)
        spki_sha256 = sha256(key.spki).digest()
        records.certificates.put(
            Certificate(
                serial=serial.hex(),
                node_id=key.spiffe_id.node,
                generation=key.generation,
                state=CertificateState.ISSUED,
                state_since=now,
                credential=key.credential,
                parent=key.parent,
                spki_sha256=spki_sha256,
                leaf_sha256=sha256(chain[0]).digest(),
                issued=now,
                not_before=key.not_before,
                not_after=key.not_after,
            )
        )
        records.answers.remove_expired(now)
        records.answers.put(
            GivenAnswer(
                credential=key.credential,
                spki_sha256=spki_sha256,
                csr_sha256=key.csr_sha256,
                serial=serial.hex(),
                chain=chain,
                signed=signed,
                not_after=key.not_after,
            )
        )
        return Certified(serial.hex(), signed)
