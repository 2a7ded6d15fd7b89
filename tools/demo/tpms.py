"""The TPMs of the demo's machines. They are software: swtpm where it is installed, otherwise bcd-fakehw's own."""

import shutil
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tools.demo.stage import Stage, wait

# A Unix socket's path has room for 107 bytes.
MAX_SOCKET_PATH_BYTES = 100


class Kind(StrEnum):
    SWTPM = "swtpm"
    SIM = "sim"


WORDS = {
    Kind.SWTPM: "a software TPM, swtpm",
    Kind.SIM: "a software TPM of bcd-fakehw's own (where swtpm is installed: that)",
}


def kind_for(home: Path) -> Kind:
    fits = len(f"{home}/machine-tpm/socket") <= MAX_SOCKET_PATH_BYTES
    return Kind.SWTPM if shutil.which("swtpm") and fits else Kind.SIM


@dataclass
class Tpms:
    stage: Stage
    kind: Kind
    _named: dict[str, str] = field(default_factory=dict)

    def install(self, machine: str) -> None:
        """A TPM of its own for that machine."""
        at = self.stage.home / f"{machine}-tpm"
        if self.kind is Kind.SIM:
            makers = self.stage.home / "tpm-maker"
            self.stage.run("bcd-fakehw", "tpm", "manufacture", "--state", str(at), "--ca", str(makers))
            self._named[machine] = f"sim:{at}"
            return
        at.mkdir()
        socket = at / "socket"
        # The flags stand for the firmware, which starts a TPM before anything else runs.
        channel = ("--server", f"type=unixio,path={socket}", "--flags", "not-need-init,startup-clear")
        self.stage.start("swtpm", "socket", "--tpm2", "--tpmstate", f"dir={at}", *channel)
        wait(socket.exists, "swtpm")
        self._named[machine] = f"socket:{socket}"

    def remove(self, machine: str) -> None:
        del self._named[machine]

    def environment(self, machine: str) -> dict[str, str]:
        """How bcd-fakehw finds that machine's TPM: nothing for a machine without one."""
        named = self._named.get(machine)
        return {} if named is None else {"BCD_FAKEHW_TPM": named, "BCD_FAKEHW_TPM_KEYS": "1"}
