"""A join by TPM in its rounds: libtpms on one side, the control plane in memory on the other."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bcd.domain.model.claims import Claims
from bcd.domain.model.names import Role, SiteId
from tests.fakes import swtpm
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.attested import METAL, Attested
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.machine import Machine
from tests.fakes.swtpm import SwTpm
from tests.fakes.tpm_machine import ECC_EK, RSA_EK, TpmMachine


@pytest.fixture(scope="module")
def tpms() -> Iterator[tuple[SwTpm, SwTpm]]:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        one, two = (stack.enter_context(swtpm.running(Path(folder) / name)) for name in "ab")
        yield one, two


@pytest.fixture
def machines(tpms: tuple[SwTpm, SwTpm]) -> Iterator[tuple[Attested, Attested]]:
    clients = [tpm.client() for tpm in tpms]
    one, two = (Attested(TpmMachine(client)) for client in clients)
    yield one, two
    for client in clients:
        client.close()


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


def test_a_machine_whose_tpm_is_allowed_joins_without_a_token(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    machine = machines[0]
    machine.allow(plane)
    leaf = machine.joined(plane).leaf
    assert leaf.spiffe_id.site == "lab"
    assert leaf.ak_name == machine.ak_name
    (node,) = plane.nodes()
    assert (node.id, node.node_key, node.token_id) == (leaf.spiffe_id.node, "tpm", "")
    kind, detail = plane.audit()[-1]
    assert (kind, detail["nodeKey"], detail["ek"]) == ("node.joined", "tpm", machine.ek(RSA_EK))
    assert detail["ak"] == machine.ak_name.hex()
    assert len(detail["pcrs"].split()) == 8


def test_a_tpm_with_only_its_ecc_key_allowed_is_challenged_by_that(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    machine = machines[0]
    machine.allow(plane, ECC_EK)
    assert machine.challenged(plane).tpm.ek_name == machine.ek_name(ECC_EK)
    assert machine.joined(plane).leaf.ak_name == machine.ak_name


def test_a_key_in_a_file_proves_the_tpm_and_is_unattested(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    machine = Attested(machines[0].tpm, key_in_tpm=False)
    machine.allow(plane)
    assert machine.joined(plane).leaf.ak_name is None
    (node,) = plane.nodes()
    assert node.node_key == "unattested"
    assert plane.audit()[-1][1]["nodeKey"] == "unattested"


def test_the_same_tpm_comes_back_as_the_same_node_whatever_it_claims(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    first = machines[0]
    first.allow(plane)
    leaf = first.joined(plane).leaf
    again = Attested(first.tpm.again(), claims=Claims(hostname="another"))
    second = again.joined(plane).leaf
    assert second.spiffe_id == leaf.spiffe_id
    assert second.spki != leaf.spki
    assert second.ak_name == leaf.ak_name
    assert [node.generation for node in plane.nodes()] == [2]


def test_two_tpms_with_the_claims_of_one_machine_are_two_nodes(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    for machine in machines:
        machine.claims = METAL
        machine.allow(plane)
    one, two = (machine.joined(plane).leaf.spiffe_id.node for machine in machines)
    assert one != two
    assert len(plane.nodes()) == 2


def test_a_node_with_another_tpm_is_not_given_away(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    one, two = machines
    one.allow(plane, node_id="n-1")
    assert one.joined(plane).leaf.spiffe_id.node == "n-1"
    two.allow(plane, node_id="n-1")
    assert two.refused(plane) == "ek-node-taken"
    plane.delete("n-1")
    assert two.joined(plane).leaf.spiffe_id.node == "n-1"
    assert [node.generation for node in plane.nodes()] == [2]


def test_a_node_that_joined_with_a_token_becomes_the_tpms_the_operator_names(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    request = Machine().request(plane.recipient, plane.token(node_id="n-1"), wanted_node_id="n-1")
    plane.join(request)
    machines[0].allow(plane, node_id="n-1")
    assert machines[0].joined(plane).leaf.spiffe_id.node == "n-1"


def test_the_best_bank_the_tpm_has_is_asked_for(plane: MemoryControlPlane, machines: tuple[Attested, Attested]) -> None:
    machine = machines[0]
    machine.allow(plane)
    for banks, asked in (((4, 13, 12, 11), 11), ((13, 12, 4), 12), ((13,), 13)):
        machine = Attested(machine.tpm.again())
        machine.evidence = replace(machine.evidence, pcr_banks=banks)
        assert machine.challenged(plane).tpm.pcr_bank == asked
        machine.joined(plane)
    joined = [detail for kind, detail in plane.audit() if kind == "node.joined"]
    found = [(detail["pcrBank"], len(detail["pcrs"].split()[0])) for detail in joined]
    assert found == [("0x000b", 64), ("0x000c", 96), ("0x000d", 128)]


def test_a_node_does_not_move_to_another_site(plane: MemoryControlPlane, machines: tuple[Attested, Attested]) -> None:
    machine = machines[0]
    machine.allow(plane)
    machine.joined(plane)
    row = rows.listed_ek(ek=machine.ek(RSA_EK), site=SiteId("barn"))
    plane.store.change(lambda r: r.eks.put(row)).result()
    assert Attested(machine.tpm.again()).refused(plane) == "site-mismatch"


def test_the_role_is_the_allowed_ones(plane: MemoryControlPlane, machines: tuple[Attested, Attested]) -> None:
    machine = machines[0]
    machine.allow(plane, role=Role.SITE)
    assert machine.refused(plane) == "role-mismatch"
    machine.role = Role.SITE
    assert machine.joined(plane).leaf.role is Role.SITE


def test_a_denied_tpm_is_refused_before_and_after_its_challenge(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    machine = machines[0]
    machine.allow(plane)
    answer = machine.answer(machine.challenged(plane))
    machine.deny(plane)
    assert machine.refused(plane) == "ek-denied"
    assert machine.refused(plane, answer) == "ek-denied"


def test_a_tpm_nobody_knows_and_no_manufacturer_vouches_for_is_refused(
    plane: MemoryControlPlane, machines: tuple[Attested, Attested]
) -> None:
    assert machines[0].refused(plane) == "ek-certificate-missing"
