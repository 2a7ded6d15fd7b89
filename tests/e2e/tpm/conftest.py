"""One stage for the scenarios of this folder: they mostly wait, and run beside each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.lifecycle.background import Background, Stage
from tests.fakes import commands
from tests.fakes.outside import open_folder

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
