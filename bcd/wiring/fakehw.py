"""bcd-fakehw's own container: the machine is a file that `BCD_FAKEHW_MACHINE` names, its TPM what
`BCD_FAKEHW_TPM` says: `none`, or `socket:PATH` of a software TPM (decision 22)."""

import errno
import os

from dependency_injector import containers, providers

from bcd.adapters.hardware.machine_file import MachineFile
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.ports.hardware import Hardware
from bcd.ports.tpm import Tpm
from bcd.wiring.container import Node

_TPM = "BCD_FAKEHW_TPM"


def _machine() -> MachineFile:
    return MachineFile(os.environ.get("BCD_FAKEHW_MACHINE"))


class _NoTpm:
    """`Link` of a machine without a TPM."""

    def transmit(self, _command: bytes) -> bytes:
        raise OSError(errno.ENOENT, "")

    def close(self) -> None:
        return


def _tpm() -> Tpm:
    # A join needs none of what this imports.
    from bcd.adapters.tpm.client import Client
    from bcd.adapters.tpm.identify import LinkedTpm
    from bcd.adapters.tpm.stream import SocketLink

    word = os.environ.get(_TPM, "none")
    kind, _, path = word.partition(":")
    if word == "none":
        return LinkedTpm(lambda: Client(_NoTpm(), "bcd-fakehw's TPM"))
    if kind == "socket" and path:
        return LinkedTpm(lambda: Client(SocketLink(path), path))
    why = "not in this version" if kind == "sim" else "want none or socket:PATH"
    raise FixConfiguration(Message.CONFIG_KEY, path="environment", key=_TPM, why=why)


@containers.copy(Node)
class FakehwNode(Node):
    """The production node but for its hardware."""

    hardware: providers.Provider[Hardware] = providers.Singleton(_machine)
    tpm: providers.Provider[Tpm] = providers.Singleton(_tpm)
