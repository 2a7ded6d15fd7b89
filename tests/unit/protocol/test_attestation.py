"""Messages of TPM attestation and the values they are."""

from datetime import UTC, datetime

import pytest

from bcd.domain.model.attestation import (
    Attestation,
    ChallengeAnswer,
    JoinChallenge,
    KeyAttestation,
    OfferedKey,
    TpmChallenge,
    TpmEvidence,
)
from bcd.protocol import attestation
from bcd.protocol.pb.bc.identity.v1 import attestation_pb2, join_pb2

EVIDENCE = TpmEvidence((OfferedKey(b"rsa", b"certificate"), OfferedKey(b"ecc")), (b"a", b"b"), (4, 11), b"ak", b"key")
QUOTE, CERTIFICATION = Attestation(b"quote", b"s" * 64), Attestation(b"certify", b"t" * 64)
CHALLENGE = JoinChallenge(
    "c-1",
    "tpm",
    datetime(2026, 9, 26, 11, 52, tzinfo=UTC),
    TpmChallenge(b"credential", b"encrypted", b"n" * 32, 11, b"\xff\x00\x00", b"\x00\x0b" + bytes(32)),
)
KEY = KeyAttestation(b"ak", b"key", CERTIFICATION)


def test_evidence_crosses_the_wire_unchanged() -> None:
    data = attestation.evidence_message(EVIDENCE).SerializeToString()
    assert attestation.evidence(attestation_pb2.TpmEvidence.FromString(data)) == EVIDENCE


def test_a_challenge_crosses_the_wire_unchanged() -> None:
    data = attestation.challenge_message(CHALLENGE).SerializeToString()
    assert attestation.challenge(join_pb2.JoinChallenge.FromString(data)) == CHALLENGE


@pytest.mark.parametrize("certification", [CERTIFICATION, None])
def test_an_answer_crosses_the_wire_unchanged(certification: Attestation | None) -> None:
    answer = ChallengeAnswer("c-1", b"secret", QUOTE, (b"0" * 32,), certification)
    data = attestation.answer_message(answer).SerializeToString()
    assert attestation.answer(join_pb2.ChallengeAnswer.FromString(data)) == answer


def test_a_keys_attestation_crosses_the_wire_unchanged() -> None:
    data = attestation.key_attestation_message(KEY).SerializeToString()
    assert attestation.key_attestation(attestation_pb2.KeyAttestation.FromString(data)) == KEY


@pytest.mark.parametrize("missing", ["tpm", "not_after"])
def test_a_challenge_without_a_part_is_none(missing: str) -> None:
    message = attestation.challenge_message(CHALLENGE)
    message.ClearField(missing)  # type: ignore[arg-type]
    with pytest.raises(attestation.MalformedChallenge):
        attestation.challenge(message)


@pytest.mark.parametrize("seconds", [-(1 << 62), 1 << 62])
def test_a_challenge_with_an_impossible_time_is_none(seconds: int) -> None:
    message = attestation.challenge_message(CHALLENGE)
    message.not_after.seconds = seconds
    with pytest.raises(attestation.MalformedChallenge):
        attestation.challenge(message)
