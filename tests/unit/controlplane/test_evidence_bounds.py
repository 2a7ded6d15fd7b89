"""How much evidence and how long an answer is looked at: as much as a TPM can show, and not one more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain import attestation
from bcd.controlplane.domain.joining import No
from bcd.controlplane.domain.refusals import Reason
from bcd.domain.model.attestation import Attestation, ChallengeAnswer, KeyAttestation, OfferedKey, TpmEvidence
from bcd.protocol.pki import ecdsa
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.wire import encode
from tests.fakes.forged import shown_in_software, with_key


def key(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number, ec.SECP256R1())


SHOWN = shown_in_software(key(1), key(2))
MORE = "more than a TPM shows"


def keys(count: int) -> tuple[OfferedKey, ...]:
    return tuple(OfferedKey(encode(with_key(templates.EK_ECC_P256, key(number)))) for number in range(10, 10 + count))


def certified(size: int) -> TpmEvidence:
    return replace(SHOWN, endorsement_keys=(replace(SHOWN.endorsement_keys[0], certificate=bytes(size)),))


@pytest.mark.parametrize(
    ("most", "beyond"),
    [
        (replace(SHOWN, endorsement_keys=keys(8)), replace(SHOWN, endorsement_keys=keys(9))),
        (certified(1 << 14), certified((1 << 14) + 1)),
        (replace(SHOWN, ek_chain=(b"",) * 64), replace(SHOWN, ek_chain=(b"",) * 65)),
        (
            replace(SHOWN, ek_chain=(bytes(1 << 15),) * 2),
            replace(SHOWN, ek_chain=(bytes(1 << 15), bytes((1 << 15) + 1))),
        ),
        (replace(SHOWN, pcr_banks=(11,) * 16), replace(SHOWN, pcr_banks=(11,) * 17)),
    ],
    ids=["keys", "certificate", "parts of a chain", "bytes of a chain", "banks"],
)
def test_evidence_is_taken_up_to_its_bounds(most: TpmEvidence, beyond: TpmEvidence) -> None:
    assert len(attestation.read_evidence(most).offered) == len(most.endorsement_keys)
    with pytest.raises(No) as refused:
        attestation.read_evidence(beyond)
    assert (refused.value.reason, refused.value.detail) == (Reason.EVIDENCE_MALFORMED, MORE)


def test_a_key_is_shown_once() -> None:
    twice = replace(SHOWN, endorsement_keys=(*keys(1), replace(keys(1)[0], certificate=b"another")))
    with pytest.raises(No) as refused:
        attestation.read_evidence(twice)
    assert refused.value.detail == "one endorsement key twice"


@pytest.mark.parametrize("part", ["ek", "ak_public", "node_key_public"])
def test_an_area_that_is_too_long_is_not_taken_apart(part: str) -> None:
    for size, said in ((1025, "area has 1025 bytes"), (1024, "area: ")):
        area = bytes(size)
        shown = replace(SHOWN, endorsement_keys=(OfferedKey(area),)) if part == "ek" else replace(SHOWN, **{part: area})  # type: ignore[arg-type]
        with pytest.raises(No) as refused:
            attestation.read_evidence(shown)
        assert refused.value.reason is Reason.EVIDENCE_MALFORMED
        assert said in refused.value.detail


QUOTE = Attestation(bytes(1024), bytes(64))
ANSWER = ChallengeAnswer("c-1", bytes(32), QUOTE, (bytes(64),) * 24, QUOTE)
LONG = replace(QUOTE, attest=bytes(1025))


@pytest.mark.parametrize(
    "changes",
    [{"pcr_values": (b"",) * 25}, {"pcr_values": (bytes(65),)}, {"quote": LONG}, {"certification": LONG}],
    ids=["PCRs", "a PCR", "quote", "certification"],
)
def test_an_answer_is_taken_up_to_its_bounds(changes: dict[str, object]) -> None:
    assert attestation.within_bounds(ANSWER)
    assert attestation.within_bounds(replace(ANSWER, certification=None))
    assert not attestation.within_bounds(replace(ANSWER, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [{"ak_public": bytes(1025)}, {"key_public": bytes(1025)}, {"certification": LONG}],
    ids=["AK", "key", "certification"],
)
def test_a_renewals_proof_is_taken_up_to_its_bounds(changes: dict[str, object]) -> None:
    proof = KeyAttestation(bytes(1024), bytes(1024), QUOTE)
    spki = ecdsa.spki_of(key(3).public_key())
    assert attestation.renewal_trouble(b"", proof, spki, b"").startswith("an area of the key_attestation: ")
    longer = replace(proof, **changes)  # type: ignore[arg-type]
    assert attestation.renewal_trouble(b"", longer, spki, b"") == "the key_attestation is larger than one can be"
