"""bcd-fakehw's own container: the machine is a file that `BCD_FAKEHW_MACHINE` names, its TPM what
`BCD_FAKEHW_TPM` says: `none`, `sim:FILE` or `socket:PATH` of a software TPM (decision 22)."""

import errno
import os
from typing import TYPE_CHECKING

from dependency_injector import containers, providers

from bcd.adapters.hardware.machine_file import MachineFile
from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.stream import SocketLink
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.ports.hardware import Hardware
from bcd.wiring.container import Node

if TYPE_CHECKING:
    from bcd.adapters.tpmsim.factory import Made
    from bcd.adapters.tpmsim.workbench import Workbench

_TPM = "BCD_FAKEHW_TPM"
_TPM_KEYS = "BCD_FAKEHW_TPM_KEYS"


def _machine() -> MachineFile:
    return MachineFile(os.environ.get("BCD_FAKEHW_MACHINE"))


class _NoTpm:
    """`Link` of a machine without a TPM."""

    def transmit(self, _command: bytes) -> bytes:
        raise OSError(errno.ENOENT, "")

    def close(self) -> None:
        return


def _client() -> Client:
    word = os.environ.get(_TPM, "none")
    kind, _, path = word.partition(":")
    if word == "none":
        return Client(_NoTpm(), "bcd-fakehw's TPM", setting=_TPM)
    if kind == "socket" and path:
        return Client(SocketLink(path), path, setting=_TPM)
    if kind == "sim" and path:
        from bcd.adapters.tpm.link import Late
        from bcd.adapters.tpmsim.link import SimLink

        return Client(SimLink(path, Late), path, setting=f"{_TPM} (bcd-fakehw tpm manufacture makes one)")
    why = "want none, sim:FILE or socket:PATH"
    raise FixConfiguration(Message.CONFIG_KEY, path="environment", key=_TPM, why=why)


def manufacture(state: str, directory: str, banks: tuple[int, ...]) -> "Made":
    """A new software TPM at `state`, certified by the manufacturer in `directory` (adapters.tpmsim.factory)."""
    from bcd.adapters.tpmsim import factory

    return factory.manufacture(state, directory, banks)


def workbench(state: str) -> "Workbench":
    """What can happen to the software TPM at `state`."""
    from bcd.adapters.tpmsim.workbench import Workbench

    return Workbench(state)


def _tpm_is_named() -> bool:
    return os.environ.get(_TPM, "none") != "none"


def _tpm_is_for_keys() -> bool:
    word = os.environ.get(_TPM_KEYS, "")
    if word not in ("", "0", "1"):
        why = "want 1 for node keys in the TPM, or 0"
        raise FixConfiguration(Message.CONFIG_KEY, path="environment", key=_TPM_KEYS, why=why)
    return word == "1"


@containers.copy(Node)
class FakehwNode(Node):
    """The production node but for its hardware."""

    hardware: providers.Provider[Hardware] = providers.Singleton(_machine)
    client: providers.Provider[Client] = providers.Singleton(_client)
    tpm_is_for_keys: providers.Provider[bool] = providers.Callable(_tpm_is_for_keys)
    tpm_is_named: providers.Provider[bool] = providers.Callable(_tpm_is_named)
