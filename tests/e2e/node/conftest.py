"""One control plane for all tests here, and the machines that join it. As root: `bcd` itself runs as root alone,
and what root must not do to others can be seen by root alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.outside import open_folder
from tests.fakes.plane import Machine, Plane, control_plane, is_root


@pytest.fixture(autouse=True, scope="session")
def _root() -> None:
    if not is_root():
        pytest.skip("run as root: bcd does")


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    yield
    commands.end_all()


@pytest.fixture(scope="session")
def plane() -> Iterator[Plane]:
    with open_folder() as home, control_plane(home) as running:
        yield running


@pytest.fixture
def machine(plane: Plane) -> Machine:
    """A machine that has not joined."""
    return plane.machine()


@pytest.fixture(scope="session")
def joined(plane: Plane) -> Machine:
    """A machine that has joined; tests leave it as it is."""
    one = plane.machine("joined")
    assert one.join(plane.token()).status == 0
    return one


@pytest.fixture
def unroutable(plane: Plane, tmp_path: Path) -> Path:
    """A configuration whose control plane nobody can reach: a join that gets as far as the network does not end."""
    for name in ("config.toml", "join-encryption.jwk"):
        (tmp_path / name).write_bytes((plane.config.parent / name).read_bytes())
    config = tmp_path / "config.toml"
    lines = config.read_text().splitlines()
    config.write_text("\n".join('join = "127.0.0.1:1"' if line.startswith("join =") else line for line in lines))
    return config
