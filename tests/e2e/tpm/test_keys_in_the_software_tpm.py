"""A node key in bcd-fakehw's software TPM, and what befalls it: real processes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.plane import Machine, Plane, control_plane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "tpm.state"
    tpm(path, "manufacture", "--ca", str(tmp_path / "ca"))
    return path


def tpm(state: Path, command: str, *words: str) -> None:
    done = commands.run("bcd-fakehw", "tpm", command, "--state", str(state), *words)
    assert done.status == 0, done.err


def keys(state: Path) -> dict[str, str]:
    return {"BCD_FAKEHW_TPM": f"sim:{state}", "BCD_FAKEHW_TPM_KEYS": "1"}


def joined(plane: Plane, state: Path) -> Machine:
    machine = plane.machine()
    done = machine.run("join", stdin=f"{plane.token()}\n".encode(), env=keys(state))
    assert done.status == 0, done.err
    assert b"BCD TPM NODE KEY" in machine.files()["node.key"]
    return machine


def report(machine: Machine, state: Path) -> list[dict[str, str]]:
    """What `doctor` says of all that does not change from one moment to the next."""
    found = json.loads(machine.run("doctor", "--json", env=keys(state)).out)
    return [one for one in found if one["check"] in ("identity", "node key")]


def node_key(machine: Machine, state: Path) -> tuple[str, str]:
    """What `doctor` says of it, having had it sign."""
    [found] = [one for one in report(machine, state) if one["check"] == "node key"]
    return found["level"], found["message"]


def test_a_node_key_outlives_six_losses_of_power_and_a_lockout(plane: Plane, state: Path) -> None:
    """B27: killed without a word to the TPM each time, and never locked."""
    machine = joined(plane, state)
    before = machine.files()
    said = node_key(machine, state)
    assert said[0] == "ok"
    for _ in range(6):
        tpm(state, "power-cycle", "--loss")
        assert node_key(machine, state) == said
    tpm(state, "lockout")
    assert node_key(machine, state) == said
    tpm(state, "endorsement-seed")
    assert node_key(machine, state) == said
    assert {name: before[name] for name in ("node.key", "identity.json")}.items() <= machine.files().items()


def test_a_cleared_tpm_has_another_node_key(plane: Plane, state: Path) -> None:
    machine = joined(plane, state)
    tpm(state, "clear")
    done = machine.run("node", env=keys(state))
    assert done.status == 76
    assert "was the TPM cleared?" in done.last_error


TROUBLES = [
    (("profile", "--held", "3"), "has no free object slots"),
    (("profile", "--held", "0", "--started", "no"), "is not started"),
    (("profile", "--started", "yes", "--late", "all"), "is busy: no answer"),
    (("profile", "--late", "0"), ""),
    (("hierarchy", "--hierarchy", "owner", "--off"), "owner hierarchy is disabled"),
    (("hierarchy", "--hierarchy", "owner"), ""),
]


def test_a_tpm_that_does_not_do_it_now_costs_no_identity(plane: Plane, state: Path) -> None:
    """B30 and its like: what is on disk stays, and the key is found again."""
    machine = joined(plane, state)
    before, said = machine.files()["node.key"], report(machine, state)
    for words, why in TROUBLES:
        tpm(state, *words)
        met = report(machine, state)
        assert (
            [one["message"] for one in met if one["level"] == "fail" and why in one["message"]] if why else met == said
        )
        assert machine.files()["node.key"] == before
