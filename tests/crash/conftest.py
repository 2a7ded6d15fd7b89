"""Mounting needs root; without it the tests that mount are skipped, and CI counts them."""

import os
from pathlib import Path

import pytest

from tests.crash import mounts


@pytest.fixture(scope="session")
def own_mounts() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    mounts.have_own_mounts()


@pytest.fixture
def scratch(own_mounts: None, tmp_path: Path) -> Path:
    """Where a test may mount."""
    return tmp_path
