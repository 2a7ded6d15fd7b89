"""The same suite over bcd-fakehw's software TPM and over libtpms."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.software_tpm import Ours, SoftwareTpm, Theirs

BOTH = {"tpmsim": Ours, "swtpm": Theirs}


@pytest.fixture(params=BOTH)
def tpm(request: pytest.FixtureRequest) -> Iterator[SoftwareTpm]:
    """One of the two, of its own."""
    # A Unix socket's path has room for 107 bytes.
    with tempfile.TemporaryDirectory() as home:
        made: SoftwareTpm = BOTH[request.param](Path(home))
        yield made
        made.close()


@pytest.fixture
def both() -> Iterator[tuple[SoftwareTpm, SoftwareTpm]]:
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        pair = Ours(Path(ours)), Theirs(Path(theirs))
        yield pair
        for one in pair:
            one.close()
