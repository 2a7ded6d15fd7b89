"""A TPM has an endorsement key of each kind, and its machine shows those it likes: who is denied stays out by each.

The machines are below a manufacturer's CA that admits, the one place where no key has to be known."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.adapters.tpm.client import Key
from bcd.controlplane.domain import admin_eks
from bcd.controlplane.domain.eks import EkRoot
from bcd.controlplane.domain.joining import Challenged, JoinAnswer, Waiting
from bcd.domain.model.attestation import OfferedKey
from bcd.domain.model.names import Role, SiteId
from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.wire import encode
from tests.fakes import manufacturer, swtpm
from tests.fakes.controlplane.attested import Attested
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.forged import with_key
from tests.fakes.tpm_machine import ECC_EK, RSA_EK, TpmMachine

MAKER = manufacturer.root()


@pytest.fixture(scope="module")
def tpms() -> Iterator[tuple[TpmMachine, TpmMachine]]:
    with (
        TemporaryDirectory() as folder,
        swtpm.running(Path(folder) / "a") as one,
        swtpm.running(Path(folder) / "b") as two,
    ):
        clients = one.client(), two.client()
        yield TpmMachine(clients[0]), TpmMachine(clients[1])
        for client in clients:
            client.close()


@pytest.fixture
def plane() -> MemoryControlPlane:
    plane = MemoryControlPlane()
    row = EkRoot(f"sha256:{'0' * 64}", MAKER.der, plane.clock.now(), SiteId("lab"), Role.NODE)
    plane.store.change(lambda r: r.ek_roots.put(row)).result()
    return plane


class Showing(Attested):
    """The machine of `tpm`, that shows these of its keys, each with its manufacturer's certificate."""

    def __init__(self, tpm: TpmMachine, *keys: Key) -> None:
        super().__init__(tpm.again())
        tpm.unique = self.tpm.unique
        offered = tuple(self.offered(key) for key in keys)
        self.evidence = replace(self.evidence, endorsement_keys=offered)

    def offered(self, key: Key) -> OfferedKey:
        area = self.tpm.public(key)
        return OfferedKey(encode(area), MAKER.ek(names.spki(area)))

    def with_another_ak(self) -> "Showing":
        """As who wants to be taken for another TPM would: no tool of his needs the usual template."""
        ak = with_key(templates.AK, ec.generate_private_key(ec.SECP256R1()))
        self.evidence = replace(self.evidence, ak_public=encode(ak))
        return self


def deny(plane: MemoryControlPlane, ek: str) -> admin_eks.EkView:
    view = plane.admin(admin_eks.DenyEk(ek, None))
    assert isinstance(view, admin_eks.EkView)
    return view


def waits(answer: JoinAnswer) -> str:
    assert isinstance(answer, Waiting), answer
    return answer.id


def test_a_denied_tpm_does_not_come_in_by_the_key_it_did_not_join_with(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    both = Showing(tpms[0], RSA_EK, ECC_EK)
    both.joined(plane)
    view = deny(plane, both.ek(RSA_EK))
    assert [(one.public_key_sha256, one.tie) for one in view.others] == [(both.ek(ECC_EK), "shown")]
    assert Showing(tpms[0], ECC_EK).refused(plane) == "ek-denied"
    detail = plane.refusals()[0].detail
    assert detail.startswith(f"{both.ek(RSA_EK)}, which this TPM showed before (endorsement key {both.ek(ECC_EK)}")
    # Another TPM of that manufacturer still does.
    Showing(tpms[1], RSA_EK, ECC_EK).joined(plane)


def test_whichever_key_is_denied_the_node_of_that_tpm_is_out(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    both = Showing(tpms[0], RSA_EK, ECC_EK)
    node = both.joined(plane).leaf.spiffe_id.node
    view = deny(plane, both.ek(ECC_EK))
    assert [(one.public_key_sha256, one.tie, one.joined_as) for one in view.others] == [
        (both.ek(RSA_EK), "showed", node)
    ]
    assert Showing(tpms[0], RSA_EK).refused(plane) == "ek-denied"
    plane.admin(admin_eks.RemoveEk(both.ek(ECC_EK)))
    assert Showing(tpms[0], RSA_EK).joined(plane).leaf.spiffe_id.node == node


def test_two_keys_that_joined_with_one_attestation_key_are_one_tpm(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    Showing(tpms[0], ECC_EK).joined(plane)
    rsa = Showing(tpms[0], RSA_EK)
    answer = rsa.answer(rsa.challenged(plane))
    view = deny(plane, rsa.ek(ECC_EK))
    # Between the rounds, too.
    assert rsa.refused(plane, answer) == "ek-denied"
    assert view.others == ()
    plane.admin(admin_eks.RemoveEk(rsa.ek(ECC_EK)))
    assert isinstance(rsa.ask(plane), Challenged)
    rsa.joined(plane)
    view = deny(plane, rsa.ek(ECC_EK))
    assert [(one.public_key_sha256, one.tie) for one in view.others] == [(rsa.ek(RSA_EK), "same")]


def test_behind_another_attestation_key_the_other_key_waits_for_a_person(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    both = Showing(tpms[0], RSA_EK, ECC_EK)
    both.joined(plane)
    hidden = Showing(tpms[0], ECC_EK).with_another_ak()
    assert isinstance(hidden.ask(plane), Challenged)
    deny(plane, both.ek(RSA_EK))
    question = waits(hidden.ask(plane))
    assert [(row.id, row.ek, row.beside_denied) for row in plane.approvals()] == [
        (question, both.ek(ECC_EK), both.ek(RSA_EK))
    ]
    assert plane.audit()[-1][1]["besideDenied"] == both.ek(RSA_EK)
    deny(plane, both.ek(ECC_EK))
    assert hidden.refused(plane) == "ek-denied"


def test_who_shows_anothers_key_gets_that_asked_about_and_not_shut_out(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    """The evidence of a machine is its word: a stranger can put a key there that is not his."""
    mine, thief = Showing(tpms[0], ECC_EK), Showing(tpms[1], RSA_EK)
    thief.evidence = replace(thief.evidence, endorsement_keys=(*thief.evidence.endorsement_keys, mine.offered(ECC_EK)))
    thief.joined(plane)
    deny(plane, thief.ek(RSA_EK))
    question = waits(mine.ask(plane))
    plane.approve(question, site="lab")
    node = mine.joined(plane).leaf.spiffe_id.node
    # Known now, it is asked about no more.
    assert Showing(tpms[0], ECC_EK).joined(plane).leaf.spiffe_id.node == node


def test_a_node_is_not_asked_about_for_what_a_stranger_showed(
    plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]
) -> None:
    mine, thief = Showing(tpms[0], ECC_EK), Showing(tpms[1], RSA_EK)
    node = mine.joined(plane).leaf.spiffe_id.node
    thief.evidence = replace(thief.evidence, endorsement_keys=(*thief.evidence.endorsement_keys, mine.offered(ECC_EK)))
    # The key that owns a node would be challenged, and the thief has no answer.
    challenge = thief.challenged(plane)
    assert challenge.tpm.ek_name == mine.ek_name(ECC_EK)
    assert plane.store.read(lambda r: r.tpm_keys.of_ek(thief.ek(RSA_EK))) == []
    assert Showing(tpms[0], ECC_EK).joined(plane).leaf.spiffe_id.node == node


def test_a_challenge_that_fails_ties_nothing(plane: MemoryControlPlane, tpms: tuple[TpmMachine, TpmMachine]) -> None:
    both = Showing(tpms[0], RSA_EK, ECC_EK)
    right = both.answer(both.challenged(plane))
    assert both.refused(plane, replace(right, secret=bytes(32))) == "secret-wrong"
    assert plane.store.read(lambda r: r.tpm_keys.of_ak(both.ak_name.hex())) == []
