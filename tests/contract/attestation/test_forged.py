"""Forged evidence: one thing changed at a time, everything that covers it signed anew by keys the forger holds.

Each is refused for that one thing; and with that one check left out the same forgery gets its certificate, so no other
check keeps it away. What cannot even be read (`check` None) has no check to leave out."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bcd.controlplane.domain.attestation import ALL, Checks
from bcd.controlplane.domain.joining import Challenged, Granted, JoinAnswer, JoinRequest, Refused
from bcd.domain.model.attestation import TpmEvidence
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import SiteId
from bcd.domain.model.pins import Pin
from bcd.protocol.tpm2.attest import Check
from bcd.protocol.tpm2.structures import ClockInfo
from tests.fakes import swtpm
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.forged import Forger
from tests.fakes.forgeries import ORDER, PROVED, SHOWN, Case, Proved, Shown, signature
from tests.fakes.tpm_machine import TpmMachine

SPKI = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture(scope="module")
def forger() -> Iterator[Forger]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as tpm:
        client = tpm.client()
        yield Forger.of(TpmMachine(client))
        client.close()


@pytest.fixture
def plane(forger: Forger) -> MemoryControlPlane:
    """Where the operator allowed the keys the forger has: what is left to refuse is the forgery."""
    plane = MemoryControlPlane()
    for key in (forger.ek, forger.ecc_ek):
        spki = key.public_key().public_bytes(*SPKI)
        row = rows.listed_ek(ek=str(Pin.of(spki)), site=SiteId("lab"))
        plane.store.change(lambda r, row=row: r.eks.put(row)).result()  # type: ignore[misc]
    return plane


def first(forger: Forger, evidence: TpmEvidence | None) -> JoinRequest:
    return JoinRequest(
        attestor="tpm",
        csr=forger.tpm.csr(),
        sealed=None,
        wanted_node_id="",
        role="node",
        claims=Claims(hostname="metal"),
        evidence=evidence,
    )


def case_of(plane: MemoryControlPlane, forger: Forger, evidence: TpmEvidence | None = None) -> Case:
    evidence = evidence or forger.evidence()
    request = first(forger, evidence)
    got = plane.join(request)
    assert isinstance(got, Challenged), plane.refusals()[0]
    right = forger.answer(evidence, got.challenge, request.csr)
    return Case(plane, forger, request, got.challenge, right)


def leaving_out(plane: MemoryControlPlane, check: Check) -> None:
    kept = Checks(*(tuple(row for row in part if row[0] is not check) for part in (ALL.ek, ALL.ak, ALL.answer)))  # type: ignore[arg-type]
    assert kept != ALL
    plane.joins = replace(plane.joins, tpm_checks=kept)


def why(plane: MemoryControlPlane, answer: JoinAnswer) -> str:
    assert isinstance(answer, Refused), answer
    row = plane.refusals()[0]
    assert row.id == answer.id
    return row.reason


def test_unforged_it_is_granted(plane: MemoryControlPlane, forger: Forger) -> None:
    """All that follows differs from this by one thing."""
    assert isinstance(plane.join(case_of(plane, forger).answering()), Granted)


def test_a_high_s_is_accepted(plane: MemoryControlPlane, forger: Forger) -> None:
    case = case_of(plane, forger)

    def other_half(signature: bytes) -> bytes:
        return signature[:32] + (ORDER - int.from_bytes(signature[32:])).to_bytes(32)

    assert isinstance(plane.join(signature("quote", other_half)(case)), Granted)


def test_what_is_only_recorded_refuses_nobody(plane: MemoryControlPlane, forger: Forger) -> None:
    case = case_of(plane, forger)
    quote = case.forger.changed(case.right.quote, clock=ClockInfo(0, 9, 9, 0), firmware=0, qualified_signer=b"")
    given = (bytes([7]) * 32,) * 8
    quote = case.forger.changed(quote, attested={"pcr_digest": sha256(b"".join(given)).digest()})
    assert isinstance(plane.join(case.answering(quote=quote, pcr_values=given)), Granted)
    detail = plane.audit()[-1][1]
    assert (detail["clockMs"], detail["clockSafe"], detail["resets"], detail["firmware"]) == (0, False, 9, "0" * 16)
    assert detail["pcrs"].split() == [value.hex() for value in given]


@pytest.mark.parametrize("forgery", SHOWN, ids=lambda f: f.name)
def test_evidence_with_one_thing_changed_is_refused(plane: MemoryControlPlane, forger: Forger, forgery: Shown) -> None:
    request = first(forger, forgery.change(forger, forger.evidence()))
    assert why(plane, plane.join(request)) == forgery.reason
    assert not plane.nodes()


@pytest.mark.parametrize("forgery", [f for f in SHOWN if f.check], ids=lambda f: f.name)
def test_only_its_check_keeps_changed_evidence_away(plane: MemoryControlPlane, forger: Forger, forgery: Shown) -> None:
    assert forgery.check is not None
    leaving_out(plane, forgery.check)
    evidence = forgery.change(forger, forger.evidence())
    assert isinstance(plane.join(case_of(plane, forger, evidence).answering()), Granted), plane.refusals()[0]


@pytest.mark.parametrize("forgery", PROVED, ids=lambda f: f.name)
def test_a_proof_with_one_thing_changed_is_refused(plane: MemoryControlPlane, forger: Forger, forgery: Proved) -> None:
    request = forgery.change(case_of(plane, forger))
    assert why(plane, plane.join(request)) == forgery.reason
    assert not plane.nodes()


@pytest.mark.parametrize("forgery", [f for f in PROVED if f.check], ids=lambda f: f.name)
def test_only_its_check_keeps_a_changed_proof_away(plane: MemoryControlPlane, forger: Forger, forgery: Proved) -> None:
    assert forgery.check is not None
    request = forgery.change(case_of(plane, forger))
    leaving_out(plane, forgery.check)
    assert isinstance(plane.join(request), Granted), plane.refusals()[0]


def test_every_check_that_can_be_left_out_keeps_somebody_away() -> None:
    reading = {Check.QUOTE_MALFORMED, Check.CERTIFICATION_MALFORMED}
    assert {f.check for f in (*SHOWN, *PROVED)} - {None} == set(Check) - reading
    assert len([*SHOWN, *PROVED]) >= 100
