"""Mounts of their own, and one stage for all scenarios."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import mounts
from tests.e2e.lifecycle.background import Background, Stage
from tests.fakes import commands
from tests.fakes.outside import open_folder
from tests.fakes.plane import is_root

HOSTS = Path("/etc/hosts")


@pytest.fixture(scope="session")
def background(request: pytest.FixtureRequest) -> Iterator[Background]:
    if not is_root():
        pytest.skip("run as root: only root may mount a file system")
    # Before there is a thread: threads have the mounts of the one that made them.
    mounts.have_own_mounts()
    with open_folder() as home:
        hosts = home / "hosts"
        hosts.write_text(HOSTS.read_text())
        stage = Stage(home)
        subprocess.run(["mount", "--bind", str(hosts), str(HOSTS)], check=True)
        runs = Background(stage, {item.name for item in request.session.items})
        try:
            yield runs
        finally:
            runs.end()
            commands.end_all()
            stage.end()
            subprocess.run(["umount", str(HOSTS)], check=True)
