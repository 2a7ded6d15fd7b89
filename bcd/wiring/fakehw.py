"""bcd-fakehw's own container: the machine is a file that `BCD_FAKEHW_MACHINE` names (decision 22)."""

import os

from dependency_injector import containers, providers

from bcd.adapters.hardware.machine_file import MachineFile
from bcd.ports.hardware import Hardware
from bcd.wiring.container import Node


def _machine() -> MachineFile:
    return MachineFile(os.environ.get("BCD_FAKEHW_MACHINE"))


@containers.copy(Node)
class FakehwNode(Node):
    """The production node but for its hardware."""

    hardware: providers.Provider[Hardware] = providers.Singleton(_machine)
