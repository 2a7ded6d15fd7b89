"""A software TPM that nobody here wrote (swtpm with libtpms), a fresh state for each test, and tpm2-tools beside it."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.stream import SocketLink

# TPM2_Startup and TPM2_Shutdown, both CLEAR: sent by what stands for the firmware, never by bcd.
STARTUP = bytes.fromhex("80010000000c000001440000")
SHUTDOWN = bytes.fromhex("80010000000c000001450000")
# Patience alone: these take a fraction of a second.
READY_S = 30.0


@dataclass(frozen=True)
class SwTpm:
    """One that runs."""

    home: Path

    @property
    def path(self) -> str:
        return str(self.home / "tpm")

    @property
    def env(self) -> dict[str, str]:
        return {"BCD_FAKEHW_TPM": f"socket:{self.path}"}

    def client(self) -> Client:
        return Client(SocketLink(self.path), self.path)

    def raw(self, command: bytes) -> bytes:
        link = SocketLink(self.path)
        try:
            return link.transmit(command)
        finally:
            link.close()

    def tool(self, *words: str, check: bool = True) -> str:
        """One of tpm2-tools, and what it printed."""
        done = subprocess.run(
            words,
            cwd=self.home,
            env={**os.environ, "TPM2TOOLS_TCTI": f"swtpm:path={self.path}", "TSS2_LOG": "all+none"},
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_S,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def kept(self) -> str:
        """What outlives a power cycle: persistent handles and NV indices."""
        return self.tool("tpm2_getcap", "handles-persistent") + self.tool("tpm2_nvreadpublic")

    def free(self) -> None:
        """What the kernel's resource manager does when a process ends without giving back what it loaded."""
        self.tool("tpm2_flushcontext", "-t")
        self.tool("tpm2_flushcontext", "-l")

    def transient(self) -> str:
        return self.tool("tpm2_getcap", "handles-transient")


def manufacture(state: Path, *words: str) -> None:
    """Makes a TPM's state, with certificates of a manufacturer of its own when asked for."""
    state.mkdir(parents=True)
    authority = state.parent / f"{state.name}-manufacturer"
    authority.mkdir()
    conf = authority / "localca.conf"
    names = {"signingkey": "key.pem", "issuercert": "cert.pem", "certserial": "serial"}
    lines = [f"statedir = {authority}", *(f"{key} = {authority / name}" for key, name in names.items())]
    conf.write_text("\n".join(lines) + "\n")
    (authority / "options").write_text("--platform-manufacturer bcd\n--platform-version 1\n--platform-model test\n")
    setup = authority / "setup.conf"
    tool = shutil.which("swtpm_localca")
    setup.write_text(
        f"create_certs_tool = {tool}\ncreate_certs_tool_config = {conf}\n"
        f"create_certs_tool_options = {authority / 'options'}\nactive_pcr_banks = sha256\n"
    )
    command = ["swtpm_setup", "--tpm2", "--tpmstate", str(state), "--config", str(setup), "--overwrite", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running(home: Path, state: Path | None = None, *, started: bool = True) -> Iterator[SwTpm]:
    """A software TPM with a copy of `state`, or with none; `started` as after the firmware."""
    home.mkdir(parents=True, exist_ok=True)
    own = home / "state"
    if state is None:
        own.mkdir()
    else:
        shutil.copytree(state, own)
    tpm = SwTpm(home)
    process = spawn(tpm, own)
    try:
        wait_for(process, tpm)
        if started:
            assert tpm.raw(STARTUP)[6:10] == bytes(4)
        yield tpm
    finally:
        with suppress(Exception):
            # Without an orderly end libtpms counts towards a lockout (B28).
            tpm.raw(SHUTDOWN)
        process.terminate()
        process.wait(timeout=READY_S)


def spawn(tpm: SwTpm, state: Path) -> "subprocess.Popen[bytes]":
    """Its process, on its way up."""
    # tpm2-tools look for the control channel there.
    channels = ["--server", f"type=unixio,path={tpm.path}", "--ctrl", f"type=unixio,path={tpm.path}.ctrl"]
    return subprocess.Popen(
        ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}", "--flags", "not-need-init", *channels],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(process: "subprocess.Popen[bytes]", tpm: SwTpm) -> None:
    pause = threading.Event()
    for _ in range(int(READY_S / 0.02)):
        if listens(tpm.path) and listens(f"{tpm.path}.ctrl"):
            return
        assert process.poll() is None, "swtpm ended"
        pause.wait(0.02)
    raise AssertionError("swtpm does not start")


def listens(path: str) -> bool:
    """Whether somebody does: a socket's file is there a moment before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


@contextmanager
def answering(path: Path, reply: bytes | None) -> Iterator[dict[str, str]]:
    """Something at a socket that answers everything with `reply`, or nothing at all."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        while connection.recv(4096):
                            if reply is not None:
                                connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield {"BCD_FAKEHW_TPM": f"socket:{path}"}
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=READY_S)
