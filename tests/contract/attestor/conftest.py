"""Port `Attestor` over bcd-fakehw's TPM and over libtpms."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bcd.adapters.tpm.attestor import LinkedAttestor
from bcd.adapters.tpm.client import Client
from tests.fakes.attesting import BOTH, Case, Seen
from tests.fakes.joining import Recorded
from tests.fakes.software_tpm import SoftwareTpm


@pytest.fixture(params=BOTH)
def tpm(request: pytest.FixtureRequest) -> Iterator[SoftwareTpm]:
    # A Unix socket's path has room for 107 bytes.
    with TemporaryDirectory() as home:
        made: SoftwareTpm = BOTH[request.param](Path(home))
        yield made
        made.close()


@pytest.fixture
def case(tpm: SoftwareTpm) -> Case:
    seen, events = Seen(tpm.link()), Recorded()
    client = Client(seen, tpm.name)
    return Case(tpm, seen, events, client, LinkedAttestor(client, events))
