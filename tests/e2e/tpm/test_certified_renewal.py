"""Renewals of a certificate that names an attestation key, by real nodes on a TPM that nobody here wrote: certified
each time, never by another key, and never sent when they cannot be."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bcd.protocol.tpm2.commands import CommandCode
from tests.e2e.lifecycle.background import GRACE, SHORT
from tests.e2e.lifecycle.lives import Running, start_plane
from tests.e2e.tpm.by_tpm import ask, joined_by_tpm, renewed, up
from tests.e2e.tpm.test_commands_sent import PROFILE
from tests.fakes.fitted_machine import OnSwTpm, on_swtpm
from tests.fakes.node_process import until
from tests.fakes.plane import Plane, control_plane
from tests.fakes.tpm_proxy import Before, refuse

ANOTHER_AK = (
    "renewal: this TPM's attestation key is not the one the certificate names (another TPM, or its endorsement seed "
    "changed): the certificate cannot be renewed here; join again: bcd join --reset --yes, then bcd join"
)
PASSWORD = 0x9A2
# Never: a dead identity, and a defect.
NEVER = {1, 70}

pytestmark = pytest.mark.usefixtures("ended")


@pytest.fixture
def one(one: OnSwTpm) -> OnSwTpm:
    """A node that joined by its TPM."""
    return joined_by_tpm(one)


def why(running: Running, times: int = 1) -> str:
    line = running.wait("renewal failed", times)
    [found] = re.findall(r' why="?(.*?)"?(?: wayBack=.*)?$', line)
    return str(found)


def serials(plane: Plane, node: str) -> list[Any]:
    """The certificates that the control plane has issued to it."""
    shown: Any = plane.json("nodes", "show", node)
    found: list[Any] = shown["certificates"]
    return found


def test_three_renewals_are_certified_through_restarts_and_a_reset_brings_the_same_node_back(
    plane: Plane, one: OnSwTpm
) -> None:
    node, ak = one.fitted.id, one.ak_name
    keys = {(one.fitted.machine.data / "node.key").read_bytes()}
    for _ in range(3):
        with up(one) as running:
            renewed(one, running)
        keys.add((one.fitted.machine.data / "node.key").read_bytes())
        assert one.fitted.leaf.ak_name == ak
    assert len(keys) == 4
    assert len(serials(plane, node)) == 4
    row = one.fitted.row()
    assert (row["id"], row["nodeKey"], row["akName"], row["generation"]) == (node, "tpm", ak.hex(), 1)
    assert one.proxy.counts["CERTIFY"] == 3
    assert set(one.proxy.codes) <= set(PROFILE.values())
    one.fitted.joined("--reset", "--yes")
    row = one.fitted.row()
    assert (row["id"], row["akName"], row["generation"]) == (node, ak.hex(), 2)
    with up(one) as running:
        renewed(one, running)
    assert one.fitted.leaf.ak_name == ak
    assert one.tpm.transient() == ""


def test_three_renewals_of_one_process_leave_room_in_the_tpm(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        control_plane(tmp_path_factory.mktemp("short"), "--leaf-lifetime", "20s") as plane,
        on_swtpm(plane) as one,
    ):
        one.fitted.allowed().joined()
        running = Running(one.fitted.machine, env=one.fitted.env)
        running.wait(" renewed ", times=3)
        assert running.count("renewal failed") == 0
        # Current key, and at most the one before it.
        until(lambda: one.tpm.transient().count("0x80") <= 2, one.tpm.transient)
        running.stop()
        assert one.tpm.transient() == ""
        assert one.fitted.leaf.ak_name == one.ak_name


def test_a_node_that_joined_by_token_renews_without_an_attestation_wherever_its_key_is(plane: Plane) -> None:
    with on_swtpm(plane) as one:
        joined = one.fitted.run("join", stdin=f"{plane.token()}\n".encode())
        assert joined.status == 0, joined.err
        with up(one) as running:
            renewed(one, running)
        assert one.fitted.status()["nodeKey"] == "tpm"
        assert one.fitted.leaf.ak_name is None
        assert one.fitted.row()["nodeKey"] == "unattested"
        assert set(one.proxy.counts) == {"CREATE_PRIMARY", "SIGN", "FLUSH_CONTEXT"}


def test_another_endorsement_seed_ends_renewals_before_anything_is_sent_and_not_the_session(
    plane: Plane, one: OnSwTpm
) -> None:
    node = one.fitted.id
    with up(one) as running:
        one.tpm.tool("tpm2_changeeps")
        ask(one)
        assert why(running) == ANOTHER_AK
        assert one.fitted.status()["renewalFailed"]["error"] == ANOTHER_AK
        assert one.fitted.status()["session"]["state"] == "up"
        assert running.count("no session|session ended") == 0
    assert len(serials(plane, node)) == 1
    # It starts with what it has: its node key is as it was.
    with up(one):
        pass
    before = one.fitted.row()
    # To the control plane it is another machine, which somebody has to let in.
    refused = one.fitted.join("--reset", "--yes")
    assert refused.status == 77
    assert "bcd tpm identify shows what its allow-list names this machine by" in refused.last_error
    one.fitted.allowed().joined()
    assert one.fitted.id != node
    rows: Any = plane.json("nodes", "list")
    assert [row for row in rows if row["id"] == node] == [before]


def test_a_seed_that_changes_after_the_attestation_key_was_looked_at_sends_nothing_either(
    plane: Plane, one: OnSwTpm
) -> None:
    with up(one) as running:
        one.proxy.on(CommandCode.CERTIFY, Before(lambda: one.tpm.tool("tpm2_changeeps")), times=1)
        ask(one)
        assert why(running) == ANOTHER_AK
    assert len(serials(plane, one.fitted.id)) == 1


def test_an_endorsement_password_ends_renewals_until_it_is_taken_away(one: OnSwTpm) -> None:
    with up(one) as running:
        one.tpm.tool("tpm2_changeauth", "-c", "endorsement", "secret")
        ask(one)
        assert why(running).startswith(
            "renewal: the certificate's node key is in the TPM, which is unavailable: "
            "the TPM's endorsement hierarchy has a password"
        )
    one.tpm.tool("tpm2_changeauth", "-c", "endorsement", "-p", "secret")
    with up(one) as running:
        renewed(one, running)
    assert one.fitted.leaf.ak_name == one.ak_name


def test_b34_an_owner_password_makes_no_file_key_of_a_certified_one(one: OnSwTpm) -> None:
    before = one.fitted.machine.files()["node.key"]
    with up(one) as running:
        one.proxy.forget()
        one.tpm.tool("tpm2_changeauth", "-c", "owner", "secret")
        ask(one)
        assert why(running).startswith(
            "renewal: the next node key in the TPM: the TPM's owner hierarchy has a password"
        )
        assert one.proxy.counts["CERTIFY"] == 0
    assert one.fitted.machine.files()["node.key"] == before
    assert "node.key.next" not in one.fitted.machine.files()


def test_a_certification_that_fails_is_made_at_the_next_attempt(one: OnSwTpm) -> None:
    with up(one) as running:
        one.proxy.on(CommandCode.CERTIFY, refuse(PASSWORD), times=1)
        ask(one)
        assert why(running).startswith("renewal: the TPM's attestation key certifying the next key: ")
        running.wait(" renewed ")
    assert one.fitted.leaf.ak_name == one.ak_name


def test_a_tpm_that_is_cleared_under_a_node_renews_nothing_and_says_how_to_come_back(
    plane: Plane, one: OnSwTpm
) -> None:
    node = one.fitted.id
    running = Running(one.fitted.machine, env=one.fitted.env)
    running.wait("session up")
    one.tpm.tool("tpm2_clear")
    ask(one)
    said = why(running)
    assert said.startswith("the node key does not match the node certificate: the TPM derives another key")
    assert said.endswith("join again: bcd join --reset --yes, then bcd join")
    assert running.lives
    running.stop()
    assert len(serials(plane, node)) == 1
    one.fitted.joined("--reset", "--yes")
    assert (one.fitted.id, one.fitted.row()["generation"]) == (node, 2)


def test_a_denied_tpm_renews_no_more_and_keeps_its_session(plane: Plane, one: OnSwTpm) -> None:
    with up(one) as running:
        plane.admin("ek", "deny", one.fitted.ek())
        ask(one)
        assert "the endorsement key of this node's TPM is denied" in why(running)
        assert running.lives
        assert "denied" in one.fitted.status()["renewalFailed"]["error"]
        assert one.fitted.status()["session"]["state"] == "up"
    assert running.process.returncode not in NEVER
    refused = one.fitted.join("--reset", "--yes")
    assert refused.status == 77
    plane.admin("ek", "remove", one.fitted.ek())


def test_b48_two_machines_with_copies_of_one_tpm_and_one_disk_both_end(tmp_path: Path) -> None:
    """What a TPM proves, its copy proves: both renew with one key, and the second use gives both away."""
    plane = start_plane(tmp_path / "p", *SHORT, grace=GRACE)
    plane.serve()
    try:
        plane.node_config()
        with on_swtpm(plane) as one:
            one.fitted.allowed().joined()
            node = one.fitted.id
            with on_swtpm(plane, one.tpm.home / "state") as copy:
                shutil.copytree(one.fitted.machine.data, copy.fitted.machine.data)
                assert copy.fitted.ek() == one.fitted.ek()
                machines = (one, copy)
                both = [Running(each.fitted.machine, env=each.fitted.env) for each in machines]

                def over() -> bool:
                    for number, running in enumerate(both):
                        # Told within the grace that the other was first it would ask again in eleven minutes.
                        if running.lives and running.count("this certificate was replaced by another"):
                            running.kill()
                            machines[number].tpm.free()
                            fitted = machines[number].fitted
                            both[number] = Running(fitted.machine, env=fitted.env)
                    return not any(running.lives for running in both)

                until(over, lambda: str([running.lines for running in both]), 60)
                assert [running.ends() for running in both] == [1, 1]
                for running in both:
                    assert running.lines[-1] == "agent: this node's certificate was revoked"
                    assert running.count("certificate revoked") == 1
                assert "node.cloned" in plane.admin("audit", "tail").out
            one.fitted.joined("--reset", "--yes")
            assert (one.fitted.id, one.fitted.row()["generation"]) == (node, 3)
    finally:
        plane.stop()
