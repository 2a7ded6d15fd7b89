"""A control plane with leaves of 20 s that serves, and nodes that run against it, for the tests of one module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.node_process import NodeProcess
from tests.fakes.plane import Plane

Join = Callable[..., NodeProcess]


def short_lived(home: Path) -> Plane:
    """Not served yet. With a grace of 1 s: leaves this short are over long before ten minutes are."""
    plane = Plane(home)
    plane.init("--leaf-lifetime", "20s")
    config = plane.directory / "controlplane.toml"
    config.write_text(config.read_text().replace('retired_grace = "10m"', 'retired_grace = "1s"'))
    return plane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = short_lived(tmp_path_factory.mktemp("gateway"))
    made.serve()
    made.node_config()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def veteran(plane: Plane) -> Iterator[NodeProcess]:
    """A node that is up before all tests of the module that need it, and renews while they run."""
    machine = plane.machine()
    assert machine.join(plane.token()).status == 0
    node = NodeProcess(machine).start().up()
    yield node
    node.stop()


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[Plane]:
    made = short_lived(tmp_path)
    made.serve()
    made.node_config()
    yield made
    made.stop()


@pytest.fixture
def join() -> Iterator[Join]:
    """Joins a new machine and starts its node."""
    started: list[NodeProcess] = []

    def begin(plane: Plane, *, start: bool = True) -> NodeProcess:
        machine = plane.machine()
        done = machine.join(plane.token())
        assert done.status == 0, done.err
        node = NodeProcess(machine)
        started.append(node)
        return node.start() if start else node

    yield begin
    for node in started:
        node.stop()
