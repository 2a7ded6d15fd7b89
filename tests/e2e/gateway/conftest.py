"""Control planes that serve, and nodes that run against them, for the tests of one module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.node_process import NodeProcess
from tests.fakes.plane import Plane

Join = Callable[..., NodeProcess]


def serving(home: Path, *init_words: str, grace: str | None = None) -> Iterator[Plane]:
    """`grace` seconds after its replacement a certificate in use is a copy's."""
    plane = Plane(home)
    plane.init(*init_words)
    if grace is not None:
        config = plane.directory / "controlplane.toml"
        config.write_text(config.read_text().replace('retired_grace = "10m"', f'retired_grace = "{grace}"'))
    plane.serve()
    plane.node_config()
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Its leaves last a day: whatever a node does within a test it was told to do, however slow the machine is."""
    yield from serving(tmp_path_factory.mktemp("gateway"))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Leaves of 20 s: its nodes renew by themselves while a test waits."""
    yield from serving(tmp_path_factory.mktemp("short"), "--leaf-lifetime", "20s", grace="1s")


@pytest.fixture(scope="module")
def veteran(short: Plane) -> Iterator[NodeProcess]:
    """A node that is up before all tests of the module that need it, and renews while they run."""
    machine = short.machine()
    assert machine.join(short.token()).status == 0
    node = NodeProcess(machine).start().up()
    yield node
    node.stop()


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[Plane]:
    """Leaves of 40 s: a renewal that failed is tried again well before they end, be the server slow to start."""
    yield from serving(tmp_path, "--leaf-lifetime", "40s")


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
