"""Whatever a machine shows or answers is granted, challenged or refused with a reason: never a fault of ours."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bcd.controlplane.domain.attestation import renewal_trouble
from bcd.controlplane.domain.joining import Challenged, JoinRequest, Refused
from bcd.domain.model.attestation import Attestation, ChallengeAnswer, KeyAttestation, OfferedKey, TpmEvidence
from bcd.domain.model.claims import Claims
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import csr
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.structures import Public
from bcd.protocol.tpm2.wire import decode
from tests.fakes import swtpm
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.forged import Forger
from tests.fakes.tpm_machine import TpmMachine

MANY = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def forger() -> Iterator[Forger]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as tpm:
        client = tpm.client()
        yield Forger.of(TpmMachine(client))
        client.close()


@pytest.fixture(scope="module")
def right(forger: Forger) -> tuple[JoinRequest, ChallengeAnswer, MemoryControlPlane]:
    """A request with evidence, and the good answer to its challenge."""
    plane = MemoryControlPlane()
    spki = forger.ek.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    plane.store.change(lambda r: r.eks.put(rows.listed_ek(ek=str(Pin.of(spki))))).result()
    shown = forger.evidence()
    request = JoinRequest("tpm", forger.tpm.csr(), None, "", "node", Claims(), evidence=shown)
    got = plane.join(request)
    assert isinstance(got, Challenged)
    return request, forger.answer(shown, got.challenge, request.csr), plane


def changed(data: st.DataObject, right: bytes) -> bytes:
    """Now and then the right bytes; else with some of them changed, cut off or added, or any at all."""
    match data.draw(st.integers(0, 4)):
        case 0:
            return right
        case 1:
            return right[: data.draw(st.integers(0, len(right)))]
        case 2:
            at = data.draw(st.integers(0, max(len(right) - 1, 0)))
            return right[:at] + data.draw(st.binary(min_size=1, max_size=4)) + right[at + 1 :]
        case 3:
            return right + data.draw(st.binary(max_size=8))
    return data.draw(st.binary(max_size=64))


def attestation(data: st.DataObject, right: Attestation, forger: Forger) -> Attestation:
    attest = changed(data, right.attest)
    signature = forger.signed(attest).signature if data.draw(st.booleans()) else changed(data, right.signature)
    return Attestation(attest, signature)


@MANY
@given(data=st.data())
def test_evidence_of_any_bytes(
    data: st.DataObject, right: tuple[JoinRequest, ChallengeAnswer, MemoryControlPlane]
) -> None:
    request, _, plane = right
    shown = request.evidence
    assert shown is not None
    keys = tuple(
        OfferedKey(changed(data, key.public_area), data.draw(st.binary(max_size=40)))
        for key in shown.endorsement_keys[: data.draw(st.integers(0, 2))]
    )
    evidence = TpmEvidence(
        keys,
        tuple(data.draw(st.lists(st.binary(max_size=16), max_size=3))),
        tuple(data.draw(st.lists(st.integers(0, 2**32 - 1), max_size=3))) or (11,),
        changed(data, shown.ak_public),
        changed(data, shown.node_key_public),
    )
    assert isinstance(plane.join(replace(request, evidence=evidence)), Challenged | Refused)


@MANY
@given(data=st.data())
def test_an_answer_of_any_bytes(
    data: st.DataObject, right: tuple[JoinRequest, ChallengeAnswer, MemoryControlPlane], forger: Forger
) -> None:
    request, good, plane = right
    before = plane.store.snapshot()
    answer = ChallengeAnswer(
        good.id,
        good.secret if data.draw(st.booleans()) else data.draw(st.binary(max_size=40)),
        attestation(data, good.quote, forger),
        tuple(data.draw(st.lists(st.binary(max_size=64), max_size=9))) if data.draw(st.booleans()) else good.pcr_values,
        attestation(data, good.certification, forger) if good.certification and data.draw(st.booleans()) else None,
    )
    shown = request.evidence
    assert shown is not None
    area = changed(data, shown.node_key_public)
    plane.join(replace(request, answer=answer, evidence=replace(shown, node_key_public=area)))
    plane.store.restore(before)


@MANY
@given(data=st.data())
def test_a_keys_attestation_of_any_bytes(
    data: st.DataObject, right: tuple[JoinRequest, ChallengeAnswer, MemoryControlPlane], forger: Forger
) -> None:
    request, good, _ = right
    shown = request.evidence
    assert shown is not None and good.certification is not None
    ak = changed(data, shown.ak_public)
    value = KeyAttestation(ak, changed(data, shown.node_key_public), attestation(data, good.certification, forger))
    named = names.name(decode(Public, shown.ak_public))
    spki = csr.key_of(csr.make_csr(ec.generate_private_key(ec.SECP256R1())))
    # For another request's key: never proved, whatever the bytes.
    assert renewal_trouble(named, value, spki, bytes(32))
