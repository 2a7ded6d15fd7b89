"""What a TPM shows crosses the control plane's ports as the values it is."""

from datetime import UTC, datetime

import pytest

from bcd.controlplane.adapters.grpc.gateway_messages import decode_renew
from bcd.controlplane.adapters.grpc.messages import decode_request, encode_reply, encode_request
from bcd.controlplane.domain.joining import Challenged, JoinRequest
from bcd.domain.model.attestation import (
    Attestation,
    ChallengeAnswer,
    JoinChallenge,
    KeyAttestation,
    OfferedKey,
    TpmChallenge,
    TpmEvidence,
)
from bcd.domain.model.claims import Claims
from bcd.protocol import attestation
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2, join_pb2

AT = datetime(2026, 9, 26, 11, 42, tzinfo=UTC)
EVIDENCE = TpmEvidence((OfferedKey(b"area", b"certificate"),), (b"chain",), (11,), b"ak", b"key")
ANSWER = ChallengeAnswer("c-1", b"secret", Attestation(b"quote", b"s"), (b"0",), Attestation(b"certify", b"t"))
KEY = KeyAttestation(b"ak", b"key", Attestation(b"certify", b"t"))


@pytest.mark.parametrize("evidence", [EVIDENCE, None], ids=["evidence", "none"])
@pytest.mark.parametrize("answer", [ANSWER, None], ids=["answer", "none"])
def test_a_request_arrives_with_what_it_was_sent_with(
    evidence: TpmEvidence | None, answer: ChallengeAnswer | None
) -> None:
    request = JoinRequest("tpm", b"csr", None, "", "node", Claims(), evidence=evidence, answer=answer)
    assert decode_request(encode_request(request)) == request


def test_a_challenge_is_a_reply_of_its_own() -> None:
    tpm = TpmChallenge(b"credential", b"encrypted", b"n" * 32, 11, b"\xff\0\0", b"name")
    challenge = JoinChallenge("c-1", "tpm", AT, tpm)
    reply = join_pb2.JoinReply.FromString(encode_reply(Challenged(challenge), AT))
    assert reply.WhichOneof("answer") == "challenge"
    assert attestation.challenge(reply.challenge) == challenge
    assert reply.server_time.ToDatetime(tzinfo=UTC) == AT


@pytest.mark.parametrize("key", [KEY, None], ids=["attested", "not"])
def test_a_renewal_arrives_with_its_keys_attestation_or_without(key: KeyAttestation | None) -> None:
    message = gateway_pb2.RenewRequest(csr=b"csr")
    if key is not None:
        message.key_attestation.CopyFrom(attestation.key_attestation_message(key))
    assert decode_renew(message.SerializeToString()).key_attestation == key
