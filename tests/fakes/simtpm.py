"""bcd-fakehw's software TPM, in a file of the test's own."""

from dataclasses import dataclass
from pathlib import Path

from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.link import Late
from bcd.adapters.tpmsim import factory, manufacturer
from bcd.adapters.tpmsim.file import create
from bcd.adapters.tpmsim.link import SimLink
from bcd.adapters.tpmsim.workbench import Workbench
from bcd.protocol.tpm2.structures import Algorithm

# What swtpm has as it comes.
BANKS = {"sha1": Algorithm.SHA1, "sha256": Algorithm.SHA256, "sha384": Algorithm.SHA384, "sha512": Algorithm.SHA512}
ALL_BANKS = tuple(BANKS.values())


@dataclass(frozen=True)
class SimTpm:
    """One, with its manufacturer's directory beside it when it has certificates."""

    home: Path

    @property
    def path(self) -> str:
        return str(self.home / "tpm.state")

    @property
    def manufacturer(self) -> Path:
        return self.home / "manufacturer"

    @property
    def env(self) -> dict[str, str]:
        return {"BCD_FAKEHW_TPM": f"sim:{self.path}"}

    @property
    def bench(self) -> Workbench:
        return Workbench(self.path)

    def link(self) -> SimLink:
        return SimLink(self.path, Late)

    def client(self) -> Client:
        return Client(self.link(), self.path)


def made(home: Path, banks: tuple[int, ...] = (Algorithm.SHA256,)) -> SimTpm:
    """With a manufacturer's certificates."""
    tpm = SimTpm(home)
    factory.manufacture(tpm.path, str(tpm.manufacturer), banks)
    return tpm


def bare(home: Path, banks: tuple[int, ...] = ALL_BANKS) -> SimTpm:
    """Without certificates."""
    tpm = SimTpm(home)
    create(tpm.path, factory.fresh_state(banks))
    return tpm


def made_by() -> str:
    """Its manufacturer, as its certificates have it: the four letters of a vendor's id in hex."""
    return manufacturer.MANUFACTURER
