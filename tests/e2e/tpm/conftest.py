"""A control plane and a machine with a TPM for those that want one of their own; and one stage for the scenarios of
this folder, which mostly wait, and run beside each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.lifecycle.background import Background, Stage
from tests.fakes import commands
from tests.fakes.fitted_machine import OnSwTpm, on_swtpm
from tests.fakes.outside import open_folder
from tests.fakes.plane import Plane, control_plane

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def background(request: pytest.FixtureRequest) -> Iterator[Background]:
    with open_folder() as home:
        stage = Stage(home)
        runs = Background(stage, {item.name for item in request.session.items if item.path.parent == HERE})
        try:
            yield runs
        finally:
            runs.end()
            commands.end_all()
            stage.end()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("plane")) as serving:
        yield serving


@pytest.fixture
def one(plane: Plane) -> Iterator[OnSwTpm]:
    """A machine with a TPM that has not joined."""
    with on_swtpm(plane) as machine:
        yield machine


@pytest.fixture
def ended() -> Iterator[None]:
    """Nothing that the test started runs on. Not for all: what the stage started is ended by the stage."""
    yield
    commands.end_all()
