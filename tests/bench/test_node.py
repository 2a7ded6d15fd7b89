"""What a node costs while it lives: memory and processor time beside a bare process, and one renewal in its parts.

The bare process imports the very modules the node has loaded, ours left out, and holds an idle channel to the same
server, so that the ratio says what bcd itself adds.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bcd.adapters.fs.local import LocalFs
from bcd.adapters.fs.syscalls import OsSyscalls
from bcd.adapters.grpc.gateway import GrpcGateway
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.host.clock import SystemClock
from bcd.adapters.keys.file import FileKeys
from bcd.adapters.log.quiet import Quiet
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.renew import NewPair, Renew
from bcd.domain.model.datadir import KEY
from bcd.domain.model.loading import Loaded
from bcd.ports.gateway import Ended, Pair
from bcd.wiring import config_file
from tests.fakes import commands
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.plane import Plane, control_plane

LOADED = """
import sys
import bcd.wiring.running, bcd.wiring.fakehw, bcd.wiring.settings, bcd.adapters.log.events, bcd.cli.node
print("\\n".join(sorted(m for m in sys.modules if m.split(".")[0] not in ("bcd", "__main__"))))
"""
BARE = """
import importlib, sys
for name in open(sys.argv[1]).read().split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass
import grpc
channel = grpc.secure_channel(sys.argv[2], grpc.ssl_channel_credentials(open(sys.argv[3], "rb").read()))
grpc.channel_ready_future(channel).result(20)
print("ready", flush=True)
sys.stdin.read()
"""
# Long enough to see a wake-up every 30 s at its share, short enough for a suite.
IDLE_S = 8.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("node"), "--leaf-lifetime", "20s") as serving:
        yield serving


@pytest.fixture(scope="module")
def slow_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("renewals")) as serving:
        yield serving


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def bare(plane: Plane, tmp_path: Path) -> Iterator[int]:
    """The bare process' id, its channel idle."""
    modules = tmp_path / "modules"
    found = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    modules.write_text(found.stdout)
    address = json.loads((plane.directory / "endpoints.json").read_text())["join"]
    ca = plane.config.parent / "serving-ca.pem"
    words = [sys.executable, "-c", BARE, str(modules), address, str(ca)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.stdin.close()


def test_a_node_after_three_renewals_is_hardly_larger_than_what_it_imports(plane: Plane, bare: int) -> None:
    machine = plane.machine()
    assert machine.join(plane.token()).status == 0
    node = machine.start("node")
    assert node.stderr is not None
    try:
        for _ in range(3):
            while b"renewed" not in (line := node.stderr.readline()):
                assert line, "the node ended"
        while b"session up" not in node.stderr.readline():
            pass
        ratio = resident_kib(node.pid) / resident_kib(bare)
        print(f"\nbcd node: {resident_kib(node.pid)} KiB, peer {resident_kib(bare)} KiB, ratio {ratio:.2f}")
        before = [processor_s(pid) for pid in (node.pid, bare)]
        began = time.monotonic()
        # Half a lifetime at the most: what is measured is the waiting.
        time.sleep(IDLE_S)
        took = time.monotonic() - began
        ours, theirs = (processor_s(pid) - had for pid, had in zip((node.pid, bare), before, strict=True))
        print(f"idle for {took:.0f} s: bcd node {ours / took:.2%} of a processor, peer {theirs / took:.2%}")
        # The goal is 1.15. Measured: 1.146 on every run, and 1.152 when bcd is compiled at each start.
        assert ratio <= 1.17
        # A node with a 20 s certificate looks about as often as one with 24 h: at most every 30 s.
        assert ours / took <= 0.02
    finally:
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=20)


class Counted(OsSyscalls):
    """The kernel's calls, counted."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    def __getattribute__(self, name: str) -> object:
        found = object.__getattribute__(self, name)
        if callable(found) and not name.startswith("_"):
            calls = object.__getattribute__(self, "calls")
            calls[name] = calls.get(name, 0) + 1
        return found


def test_a_renewal_takes_little_more_than_its_call_and_its_disk(slow_plane: Plane) -> None:
    """From the request to the stored pair, beside a bare channel's handshake and the same bytes made durable."""
    machine = slow_plane.machine()
    assert machine.join(slow_plane.token()).status == 0
    config = config_file.read(str(slow_plane.config), {"data_dir": str(machine.data)})
    assert config.gateway is not None and config.serving_ca_spki_pin is not None
    assert config.join_signing_key_pin is not None
    counted, clock, keys = Counted(), SystemClock(), FileKeys()
    fs = LocalFs(str(machine.data), clock, syscalls=counted)
    loaded = Load(fs, keys, Quiet(), str(machine.data))()
    assert isinstance(loaded, Loaded)
    record = fs.read(KEY, 1 << 20)
    assert record is not None
    pair = Pair(loaded.identity.leaf, loaded.identity.chain, keys.open(record))  # type: ignore[arg-type]
    roots = Roots(
        config.gateway, pins=config.serving_ca_spki_pin, config_path=config.path, clock=clock, ca_file=lambda: None
    )
    gateway = GrpcGateway(config.gateway, roots, lambda _: None)
    renew = Renew(fs, keys, MemoryAttestor(), ChangeIdentity(fs), config.join_signing_key_pin)
    times: dict[str, list[float]] = {"renewal": [], "stored": []}
    counts = {}
    # Five: the quota of a node with 24 h certificates is six an hour.
    for _ in range(5):
        connection = gateway.connect(pair)
        assert not isinstance(connection, Ended)
        counted.calls.clear()
        began = time.perf_counter()
        outcome = renew(pair, connection, datetime.now(UTC), None)
        times["renewal"].append(time.perf_counter() - began)
        counts = dict(counted.calls)
        connection.close()
        assert isinstance(outcome, NewPair), outcome
        pair = outcome.pair
        began = time.perf_counter()
        with fs.lock(1):
            for name in ("one", "two", "three"):
                fs.write(name, b"x" * 2000)
            fs.rename("three", "four")
        times["stored"].append(time.perf_counter() - began)
    renewal, stored = (statistics.median(found) * 1000 for found in times.values())
    print(f"\nrenewal: {renewal:.0f} ms from request to stored; the same writes alone {stored:.0f} ms; calls {counts}")
    changing = {name: counts.get(name, 0) for name in ("create", "write", "rename", "unlink")}
    # Two writes of the next key and one of the identity, and the promotion: nothing more touches the disk.
    assert changing == {"create": 3, "write": 3, "rename": 4, "unlink": 0}
    assert counts["sync"] <= 8


def test_this_file_measures_what_is_installed() -> None:
    assert Path(commands.command(["bcd-fakehw"])[0]).parent == Path(sys.executable).parent
