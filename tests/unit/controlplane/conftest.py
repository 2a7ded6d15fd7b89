"""What most tests of the control plane begin with."""

import pytest

from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.member import Member


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


@pytest.fixture
def member(plane: MemoryControlPlane) -> Member:
    """A node that has just joined at `plane`."""
    return Member.joined(plane)
