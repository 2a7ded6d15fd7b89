"""The messages of TPM attestation (attestation.proto, join.proto) to `domain.model.attestation` and back."""

from datetime import UTC

from bcd.domain.model.attestation import (
    Attestation,
    ChallengeAnswer,
    JoinChallenge,
    KeyAttestation,
    OfferedKey,
    TpmChallenge,
    TpmEvidence,
)
from bcd.protocol.pb.bc.identity.v1 import attestation_pb2, join_pb2


class MalformedChallenge(ValueError):
    """No challenge of a TPM, or one whose time is none."""


def evidence_message(value: TpmEvidence) -> attestation_pb2.TpmEvidence:
    """The message of `JoinRequest.evidence` (join.proto)."""
    return attestation_pb2.TpmEvidence(
        endorsement_keys=[
            attestation_pb2.EndorsementKey(public_area=one.public_area, certificate=one.certificate)
            for one in value.endorsement_keys
        ],
        ek_chain=value.ek_chain,
        pcr_banks=value.pcr_banks,
        ak_public=value.ak_public,
        node_key_public=value.node_key_public,
    )


def evidence(message: attestation_pb2.TpmEvidence) -> TpmEvidence:
    """As it came: neither areas nor certificates nor bounds are looked at here."""
    return TpmEvidence(
        endorsement_keys=tuple(OfferedKey(one.public_area, one.certificate) for one in message.endorsement_keys),
        ek_chain=tuple(message.ek_chain),
        pcr_banks=tuple(message.pcr_banks),
        ak_public=message.ak_public,
        node_key_public=message.node_key_public,
    )


def challenge_message(value: JoinChallenge) -> join_pb2.JoinChallenge:
    """The message of `JoinReply.challenge` (join.proto); `not_after` has a zone."""
    tpm = attestation_pb2.TpmChallenge(
        credential=value.tpm.credential,
        encrypted_secret=value.tpm.encrypted_secret,
        nonce=value.tpm.nonce,
        pcr_bank=value.tpm.pcr_bank,
        pcr_selection=value.tpm.pcr_selection,
        ek_name=value.tpm.ek_name,
    )
    message = join_pb2.JoinChallenge(id=value.id, attestor=value.attestor, tpm=tpm)
    message.not_after.FromDatetime(value.not_after)
    return message


def challenge(message: join_pb2.JoinChallenge) -> JoinChallenge:
    """MalformedChallenge without a TPM's part or a valid time; its other bounds are not looked at here."""
    if not message.HasField("tpm") or not message.HasField("not_after"):
        raise MalformedChallenge("neither for a TPM nor with a time")
    try:
        not_after = message.not_after.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise MalformedChallenge("its time is none") from None
    tpm = message.tpm
    return JoinChallenge(
        id=message.id,
        attestor=message.attestor,
        not_after=not_after,
        tpm=TpmChallenge(tpm.credential, tpm.encrypted_secret, tpm.nonce, tpm.pcr_bank, tpm.pcr_selection, tpm.ek_name),
    )


def answer_message(value: ChallengeAnswer) -> join_pb2.ChallengeAnswer:
    """The message of `JoinRequest.answer` (join.proto); without `certification` for a node key in no TPM."""
    message = join_pb2.ChallengeAnswer(
        id=value.id, secret=value.secret, quote=_attestation_message(value.quote), pcr_values=value.pcr_values
    )
    if value.certification is not None:
        message.certification.CopyFrom(_attestation_message(value.certification))
    return message


def answer(message: join_pb2.ChallengeAnswer) -> ChallengeAnswer:
    """As it came: what the TPM signed is not looked at here (tpm2.attest does)."""
    return ChallengeAnswer(
        id=message.id,
        secret=message.secret,
        quote=_attestation(message.quote),
        pcr_values=tuple(message.pcr_values),
        certification=_attestation(message.certification) if message.HasField("certification") else None,
    )


def key_attestation_message(value: KeyAttestation) -> attestation_pb2.KeyAttestation:
    """The message of `RenewRequest.key_attestation` (gateway.proto)."""
    return attestation_pb2.KeyAttestation(
        ak_public=value.ak_public,
        key_public=value.key_public,
        certification=_attestation_message(value.certification),
    )


def key_attestation(message: attestation_pb2.KeyAttestation) -> KeyAttestation:
    """As it came: what the TPM signed is not looked at here (tpm2.attest does)."""
    return KeyAttestation(message.ak_public, message.key_public, _attestation(message.certification))


def _attestation_message(value: Attestation) -> attestation_pb2.Attestation:
    return attestation_pb2.Attestation(attest=value.attest, signature=value.signature)


def _attestation(message: attestation_pb2.Attestation) -> Attestation:
    return Attestation(message.attest, message.signature)
