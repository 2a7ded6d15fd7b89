"""The two software TPMs behind one face: what befalls them from outside, so that one suite can look at both."""

import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.link import Link
from bcd.adapters.tpm.stream import SocketLink
from bcd.adapters.tpmsim.state import Persistent
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.structures import Handle, Public
from tests.fakes import simtpm, swtpm

PERSISTENT_EK = 0x81010001
# TPMA_NV (Part 2, 13.4), as tpm2_nvdefine calls them.
NV_ATTRIBUTES = {"ownerwrite": 1 << 1, "authwrite": 1 << 2, "ownerread": 1 << 17, "authread": 1 << 18, "no_da": 1 << 25}
_HIERARCHIES = {Handle.OWNER: "owner", Handle.ENDORSEMENT: "endorsement"}
_SWITCHES = {Handle.OWNER: "shEnable", Handle.ENDORSEMENT: "ehEnable"}
_ALL_PCRS = ",".join(map(str, range(24)))


class SoftwareTpm(ABC):
    """A TPM that was started, with banks sha1, sha256, sha384 and sha512."""

    # What it answers with, for messages.
    name: str

    @abstractmethod
    def link(self) -> Link: ...

    def client(self) -> Client:
        return Client(self.link(), self.name)

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def persist_ek(self) -> None:
        """Leaves the RSA endorsement key at 0x81010001, as manufacturers do."""

    @abstractmethod
    def persist(self, hierarchy: Handle, template: Public) -> None:
        """Leaves some other primary there."""

    @abstractmethod
    def store(self, index: int, data: bytes | None, attributes: str, auth: bytes = b"", size: int = 8) -> None:
        """An index and what it holds; None: never written."""

    @abstractmethod
    def power_cycle(self, *, loss: bool) -> None: ...

    @abstractmethod
    def clear(self) -> None: ...

    @abstractmethod
    def change_endorsement_seed(self) -> None: ...

    @abstractmethod
    def set_password(self, hierarchy: Handle, password: str) -> None: ...

    @abstractmethod
    def switch_off(self, hierarchy: Handle) -> None: ...

    @abstractmethod
    def extend(self, pcr: int, digest: bytes) -> None:
        """Of the sha256 bank."""

    @abstractmethod
    def only_bank(self, bank: str) -> None: ...


class Ours(SoftwareTpm):
    """bcd-fakehw's."""

    name = "tpmsim"

    def __init__(self, home: Path) -> None:
        self.sim = simtpm.bare(home)
        self.bench = self.sim.bench

    def link(self) -> Link:
        return self.sim.link()

    def close(self) -> None:
        return

    def persist_ek(self) -> None:
        self.persist(Handle.ENDORSEMENT, templates.EK_RSA_2048)

    def persist(self, hierarchy: Handle, template: Public) -> None:
        self.bench.persist(Persistent(PERSISTENT_EK, hierarchy, template))

    def store(self, index: int, data: bytes | None, attributes: str, auth: bytes = b"", size: int = 8) -> None:
        word = sum(NV_ATTRIBUTES[one] for one in attributes.split("|"))
        self.bench.store(index, data, word, auth)

    def power_cycle(self, *, loss: bool) -> None:
        self.bench.power_cycle(loss=loss)

    def clear(self) -> None:
        self.bench.clear()

    def change_endorsement_seed(self) -> None:
        self.bench.change_endorsement_seed()

    def set_password(self, hierarchy: Handle, password: str) -> None:
        self.bench.set_password(hierarchy, password.encode())

    def switch_off(self, hierarchy: Handle) -> None:
        self.bench.switch(hierarchy, off=True)

    def extend(self, pcr: int, digest: bytes) -> None:
        self.bench.extend(0x000B, pcr, digest)

    def only_bank(self, bank: str) -> None:
        self.bench.allocate((simtpm.BANKS[bank],))


class Theirs(SoftwareTpm):
    """libtpms by swtpm, handled by tpm2-tools."""

    name = "swtpm"

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "state").mkdir()
        self.tpm = swtpm.SwTpm(home)
        self._links: list[SocketLink] = []
        self.process = self._start()

    def link(self) -> Link:
        link = SocketLink(self.tpm.path)
        self._links.append(link)
        return link

    def close(self) -> None:
        self._stop(loss=False)

    def persist_ek(self) -> None:
        self._tool("tpm2_createek", "-c", hex(PERSISTENT_EK), "-G", "rsa", "-u", "ek.pem", "-f", "pem")
        self._tool("tpm2_flushcontext", "-t")

    def persist(self, hierarchy: Handle, template: Public) -> None:
        handle = self.client().load(Key(hierarchy, template)).handle
        self._tool("tpm2_evictcontrol", "-C", "o", "-c", hex(handle), hex(PERSISTENT_EK))
        self._tool("tpm2_flushcontext", "-t")

    def free(self) -> None:
        """As the kernel's resource manager does when a process ends."""
        self._tool("tpm2_flushcontext", "-t")
        self._tool("tpm2_flushcontext", "-l")

    def store(self, index: int, data: bytes | None, attributes: str, auth: bytes = b"", size: int = 8) -> None:
        words = ["-s", str(len(data) if data is not None else size), "-a", attributes]
        self._tool("tpm2_nvdefine", hex(index), "-C", "o", *words, *(("-p", auth.decode()) if auth else ()))
        if data is not None:
            (self.tpm.home / "content").write_bytes(data)
            self._tool("tpm2_nvwrite", hex(index), "-C", "o", "-i", "content")

    def power_cycle(self, *, loss: bool) -> None:
        self._stop(loss=loss)
        self.process = self._start()

    def clear(self) -> None:
        self._tool("tpm2_clear", "-c", "p")

    def change_endorsement_seed(self) -> None:
        self._tool("tpm2_changeeps")

    def set_password(self, hierarchy: Handle, password: str) -> None:
        self._tool("tpm2_changeauth", "-c", _HIERARCHIES[hierarchy], password)

    def switch_off(self, hierarchy: Handle) -> None:
        self._tool("tpm2_hierarchycontrol", "-C", "p", _SWITCHES[hierarchy], "clear")

    def extend(self, pcr: int, digest: bytes) -> None:
        self._tool("tpm2_pcrextend", f"{pcr}:sha256={digest.hex()}")

    def only_bank(self, bank: str) -> None:
        banks = [f"{one}:{_ALL_PCRS if one == bank else 'none'}" for one in simtpm.BANKS]
        self._tool("tpm2_pcrallocate", "+".join(banks))
        self.power_cycle(loss=False)

    def _tool(self, *words: str) -> None:
        # One connection at a time: another waits until this one ends.
        for link in self._links:
            link.close()
        self.tpm.tool(*words)

    def _start(self) -> "subprocess.Popen[bytes]":
        process = swtpm.spawn(self.tpm, self.tpm.home / "state")
        swtpm.wait_for(process, self.tpm)
        assert self.tpm.raw(swtpm.STARTUP)[6:10] == bytes(4)
        return process

    def _stop(self, *, loss: bool) -> None:
        for link in self._links:
            link.close()
        if not loss:
            with suppress(Exception):
                self.tpm.raw(swtpm.SHUTDOWN)
            self.process.terminate()
        else:
            self.process.kill()
        self.process.wait(timeout=swtpm.READY_S)
        for end in ("", ".ctrl"):
            Path(f"{self.tpm.path}{end}").unlink(missing_ok=True)
