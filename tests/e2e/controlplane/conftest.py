"""A control plane that serves, for the tests of one module, and one that was only made, to be copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.controlplane.machine import Site
from tests.fakes.plane import Plane


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that `init` made and nobody touched since."""
    plane = Plane(tmp_path_factory.mktemp("made"))
    plane.init()
    return plane.directory


@pytest.fixture
def fresh(made: Path, tmp_path: Path) -> Iterator[Plane]:
    """A copy of it for one test; nothing serves it yet."""
    plane = Plane(tmp_path)
    shutil.copytree(made, plane.directory)
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def served(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A copy of it that is served, with a node's configuration, for all tests of a module."""
    plane = Plane(tmp_path_factory.mktemp("served"))
    shutil.copytree(made, plane.directory)
    plane.serve()
    plane.node_config()
    yield plane
    plane.stop()


@pytest.fixture
def site_of() -> Callable[[Plane], Site]:
    return lambda plane: Site(plane.config.parent)
