"""Renew: the gateway's checks, in the order and with the numbers of docs/protocol.md, "Renew"."""

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from bcd.controlplane.app.certify import Certify, ToCertify
from bcd.controlplane.app.note import Note
from bcd.controlplane.app.use import Call, InUse, UseCertificate
from bcd.controlplane.domain.attestation import renewal_trouble
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import leaf_credential, renewed_dates
from bcd.controlplane.domain.gateway import (
    Declined,
    Full,
    Malformed,
    Presented,
    RenewAnswer,
    Renewed,
    RenewRequest,
)
from bcd.controlplane.domain.nodes import IN_TPM, UNATTESTED
from bcd.controlplane.domain.quota import wait_for_quota
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.tpms import denied_with
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements
from bcd.protocol.pki import csr, renew_pop

WOULD_END_SOONER = (
    "a renewed certificate would end no later than the one it replaces: "
    "was this server's clock set back, or leaf_lifetime made shorter?"
)


@dataclass(frozen=True)
class Question:
    """A renewal whose form is in order. `client_time` is the node's word, recorded and believed in nothing.
    `unproved`: why nothing proves that the key is in the TPM the leaf names; empty when something does, or none is."""

    spki: bytes
    csr_sha256: bytes
    client_time: datetime
    unproved: str = ""

    @property
    def spki_sha256(self) -> bytes:
        return sha256(self.spki).digest()


def form(presented: Presented, request: RenewRequest) -> Question | Malformed:
    """The gateway's checks 1 to 4 (docs/protocol.md, "Renew"). They need no record."""
    leaf = presented.leaf
    # 1. The chain begins with the leaf of this very connection.
    if not request.chain or request.chain[0] != leaf.der:
        return Malformed("the chain does not begin with the certificate of this connection")
    # 2. The request for the next key is one, and proves that key.
    try:
        spki = csr.key_of(request.csr)
    except csr.MalformedCsr as error:
        return Malformed(f"the certificate request is {error}")
    # 3. The current key signed for this request and this leaf.
    try:
        client_time = renew_pop.open_renew_pop(request.renew_pop, request.csr, leaf)
    except renew_pop.BadProof as error:
        return Malformed(str(error))
    csr_sha256 = sha256(request.csr).digest()
    unproved = (
        # Here and not in the transaction, where every other node waits meanwhile.
        renewal_trouble(leaf.ak_name, request.key_attestation, spki, csr_sha256) if leaf.ak_name is not None else ""
    )
    return Question(spki, csr_sha256, client_time, unproved)


@dataclass(frozen=True)
class RenewCertificate:
    settings: Settings
    random: Random
    issuer: Issuer
    statements: Statements
    use: UseCertificate
    log: Log

    def __call__(self, call: Call, question: Question) -> RenewAnswer:
        records, presented, now = call.records, call.presented, call.now
        # 4. The certificate may be used, and the TPM it was given to is not denied.
        used = self.use(call)
        if not isinstance(used, InUse):
            return used
        node = replace(used.node, last_seen=now)
        records.nodes.put(node)
        told: dict[str, object] = {"node": node.id, "source": presented.source}
        ak_name = presented.leaf.ak_name
        denied = denied_with(records, [node.ek] if node.ek else [], ak_name.hex() if ak_name else "")
        if denied:
            told["ek"] = denied
            call.after(Note("renewal refused: the endorsement key is denied", told, warning=True).to(self.log))
            return Declined("the endorsement key of this node's TPM is denied")
        # 5. An answer that may have been lost is given again, and costs nothing.
        given = records.answers.get(leaf_credential(presented.serial), question.spki_sha256)
        if given is not None and given.csr_sha256 == question.csr_sha256:
            call.after(Note("renewal answered again", {"serial": given.serial, **told}).to(self.log))
            return Renewed(now, given.signed)
        # 6. No key is certified twice.
        if records.certificates.of_key(question.spki_sha256):
            return Declined("the key was certified before: renew with a new one")
        # 7. Where the leaf names an attestation key, that certified the next key too: nothing less renews it.
        if question.unproved:
            return Declined(question.unproved)
        # 8. The quota.
        wait = wait_for_quota(records, node.id, self.settings.leaf_lifetime, now)
        if wait is not None:
            call.after(Note("renewal quota used up", {"wait": wait, **told}, warning=True).to(self.log))
            return Full(wait)
        return self._issue(call, InUse(node, used.certificate), question)

    def _issue(self, call: Call, used: InUse, question: Question) -> RenewAnswer:
        records, now = call.records, call.now
        held, leaf = used.certificate, call.presented.leaf
        # 9. The new certificate outlives the one it replaces.
        dates = renewed_dates(now, self.settings.leaf_lifetime, leaf.role, held.not_after)
        if dates is None:
            return self.use.alarm(call, WOULD_END_SOONER)
        not_before, not_after = dates
        key = ToCertify(
            spiffe_id=leaf.spiffe_id,
            role=leaf.role,
            generation=used.node.generation,
            spki=question.spki,
            csr_sha256=question.csr_sha256,
            ak_name=leaf.ak_name,
            not_before=not_before,
            not_after=not_after,
            credential=leaf_credential(held.serial),
            parent=held.serial,
        )
        certified = Certify(self.random, self.issuer)(records, key, self.statements.renew_response, now)
        detail = {
            "node": used.node.id,
            "serial": certified.serial,
            "parent": held.serial,
            "nodeKey": UNATTESTED if leaf.ak_name is None else IN_TPM,
            "clientTime": f"{question.client_time:%Y-%m-%dT%H:%M:%SZ}",
        }
        source = call.presented.source
        records.audit.add(Event(now, f"node:{source}", Kind.NODE_RENEWED, detail))
        call.after(Note("certificate renewed", {"source": source, **detail}).to(self.log))
        return Renewed(now, certified.signed)
