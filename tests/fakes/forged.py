"""Evidence that a TPM really produced, with software keys in place of its own: whatever is changed is signed anew.

So a change is refused for itself, never for a signature that no longer fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bcd.domain.model.attestation import Attestation, ChallengeAnswer, JoinChallenge, OfferedKey, TpmEvidence
from bcd.protocol.pki import ecdsa
from bcd.protocol.tpm2 import credential, names, templates
from bcd.protocol.tpm2.structures import Algorithm, Attest, PcrSelection, Point, Public
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes.tpm_machine import AK, ECC_EK, RSA_EK, TpmMachine

EndorsementKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def with_key(area: Public, key: EndorsementKey) -> Public:
    """The area of `key`, in all else the same."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        return replace(area, unique=numbers.n.to_bytes((key.key_size + 7) // 8))
    point = key.public_key().public_numbers()
    return replace(area, unique=Point(point.x.to_bytes(32), point.y.to_bytes(32)))


def shown_in_software(
    ek: ec.EllipticCurvePrivateKey, ak: ec.EllipticCurvePrivateKey, certificate: bytes = b""
) -> TpmEvidence:
    """What a TPM with these keys would show whose node key is a file; no TPM is needed for that."""
    offered = OfferedKey(encode(with_key(templates.EK_ECC_P256, ek)), certificate)
    return TpmEvidence((offered,), (), (Algorithm.SHA256,), encode(with_key(templates.AK, ak)))


@dataclass
class Forger:
    """The TPM of `tpm` shows and attests; `ek` and `ak` are the keys it is said to have."""

    tpm: TpmMachine
    ek: EndorsementKey
    ecc_ek: ec.EllipticCurvePrivateKey
    ak: ec.EllipticCurvePrivateKey

    @staticmethod
    def of(tpm: TpmMachine) -> Forger:
        rsa_key = rsa.generate_private_key(65537, 2048)
        return Forger(tpm, rsa_key, *(ec.generate_private_key(ec.SECP256R1()) for _ in range(2)))

    def evidence(self) -> TpmEvidence:
        shown = self.tpm.evidence()
        keys = {RSA_EK: self.ek, ECC_EK: self.ecc_ek}
        areas = (with_key(self.tpm.public(key), private) for key, private in keys.items())
        return replace(
            shown,
            endorsement_keys=tuple(OfferedKey(encode(area)) for area in areas),
            ak_public=encode(with_key(self.tpm.public(AK), self.ak)),
        )

    def secret(self, evidence: TpmEvidence, challenge: JoinChallenge) -> bytes:
        """What the endorsement key that is challenged opens for the attestation key in the evidence."""
        asked = challenge.tpm
        ek = next(
            key
            for offered, key in zip(evidence.endorsement_keys, (self.ek, self.ecc_ek), strict=True)
            if names.name(decode(Public, offered.public_area)) == asked.ek_name
        )
        seed = credential.seed_of(ek, asked.encrypted_secret)
        return credential.unwrap(seed, names.name(decode(Public, evidence.ak_public)), asked.credential)

    def answer(self, evidence: TpmEvidence, challenge: JoinChallenge, csr: bytes) -> ChallengeAnswer:
        selection = (PcrSelection(challenge.tpm.pcr_bank, challenge.tpm.pcr_selection),)
        return ChallengeAnswer(
            id=challenge.id,
            secret=self.secret(evidence, challenge),
            quote=self.signed(self.tpm.quote(challenge.tpm.nonce, selection).attest),
            pcr_values=self.tpm.pcrs(selection),
            certification=self.signed(self.tpm.certify(sha256(csr).digest()).attest),
        )

    def signed(self, attest: bytes, key: ec.EllipticCurvePrivateKey | None = None) -> Attestation:
        return Attestation(attest, ecdsa.sign(key or self.ak, attest))

    def changed(self, attestation: Attestation, **changes: object) -> Attestation:
        """With other fields of the TPMS_ATTEST, or (`attested`) of what it attests, signed anew."""
        attest = decode(Attest, attestation.attest)
        inner = changes.pop("attested", {})
        assert isinstance(inner, dict)
        return self.signed(encode(replace(attest, **changes, attested=replace(attest.attested, **inner))))  # type: ignore[arg-type]
