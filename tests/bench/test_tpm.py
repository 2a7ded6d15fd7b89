"""What bcd's TPM client adds to a command, as ratios in one run on one software TPM: to the bare round trip of the same
bytes, and to tpm2-pytss. On a chip, whose Sign takes a hundred times as long, nothing of it would be seen.

They take turns, and of each turn what its quickest tenth stays below is compared: what else a machine does lengthens
all of them, and not alike, and the single quickest is a matter of luck. The best of the rounds counts, since a client
that is slow is so in all of them.
"""

import json
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.keys import p1363
from bcd.adapters.tpm.stream import SocketLink
from bcd.protocol.tpm2 import commands, templates
from bcd.protocol.tpm2.structures import NO_HASH_CHECK, Algorithm, Handle, Scheme
from bcd.protocol.tpm2.wire import encode
from tests.fakes import swtpm
from tests.fakes.swtpm import SwTpm
from tools import system_parts

ROUNDS, TURNS = 6, 150
NODE_KEY = Key(Handle.OWNER, templates.node_key(bytes(range(32))))
SCHEME = Scheme(Algorithm.ECDSA, Algorithm.SHA256)
SIGN = commands.SignIn(bytes(32), SCHEME, NO_HASH_CHECK)
PEER = Path(__file__).parent / "pytss_peer.py"
T = TypeVar("T")


class Remembering(SocketLink):
    """The socket link, with the bytes of the last command."""

    last = b""

    def transmit(self, command: bytes) -> bytes:
        self.last = command
        return super().transmit(command)


class Watch:
    """How long each thing took, every time."""

    def __init__(self) -> None:
        self.took_s: dict[tuple[str, str], list[float]] = {}

    def __call__(self, what: str, who: str, act: Callable[[], T]) -> T:
        began = time.perf_counter()
        result = act()
        self.took_s.setdefault((what, who), []).append(time.perf_counter() - began)
        return result

    def ratio(self, what: str, who: str) -> float:
        rounds = zip(self._turns(what, "bcd"), self._turns(what, who), strict=True)
        return min(_quick(ours) / _quick(theirs) for ours, theirs in rounds)

    def _turns(self, what: str, who: str) -> Iterator[list[float]]:
        took_s = self.took_s[what, who]
        assert len(took_s) == ROUNDS * TURNS
        return (took_s[first : first + TURNS] for first in range(0, len(took_s), TURNS))

    def __str__(self) -> str:
        return "\n".join(
            f"{what:14}{who:12} quick {_quick(took) * 1e6:5.0f} µs, median {statistics.median(took) * 1e6:5.0f} µs, "
            f"bcd to it {self.ratio(what, who):.2f}"
            for (what, who), took in sorted(self.took_s.items())
        )


def _quick(took_s: list[float]) -> float:
    return statistics.quantiles(took_s, n=10)[0]


@pytest.fixture(scope="module")
def tpm() -> Iterator[SwTpm]:
    # A Unix socket's path has room for 107 bytes.
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home) / "run") as running:
        yield running


def signature(client: Client) -> bytes:
    """From the digest to both halves, which is what whoever signs has and wants."""
    answer, _ = client.use((NODE_KEY,), commands.SIGN, commands.SignIn(bytes(32), SCHEME, NO_HASH_CHECK))
    return p1363(answer.parameters.signature.ecdsa)


def our_turn(tpm: SwTpm, watch: Watch) -> tuple[bytes, bytes]:
    """Through the client, with its codec and cache; gives the two commands as they were sent."""
    link = Remembering(tpm.path)
    client = Client(link, tpm.path)
    for _ in range(TURNS):
        client.release(NODE_KEY)
        watch("CreatePrimary", "bcd", lambda: client.load(NODE_KEY))
    create = link.last
    for _ in range(TURNS):
        watch("Sign", "bcd", lambda: client.use((NODE_KEY,), commands.SIGN, SIGN))
    for _ in range(TURNS):
        assert len(watch("signature", "bcd", lambda: signature(client))) == 64
    sign = link.last
    client.close()
    return create, sign


def bare_turn(tpm: SwTpm, watch: Watch, create: bytes, sign: bytes) -> None:
    """The same bytes, and one read for each reply."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.connect(tpm.path)

        def sent(command: bytes) -> bytes:
            connected.sendall(command)
            return connected.recv(4096)

        def flush() -> None:
            handle = int.from_bytes(made[10:14])
            sent(commands.write_command(commands.FLUSH_CONTEXT, (), commands.FlushContextIn(handle)))

        made = sent(create)
        for _ in range(TURNS):
            flush()
            made = watch("CreatePrimary", "bare socket", lambda: sent(create))
        for _ in range(TURNS):
            # The handle is the one of before: there is no other key.
            assert watch("Sign", "bare socket", lambda: sent(sign))[6:10] == bytes(4)
        flush()


def their_turn(tpm: SwTpm, watch: Watch) -> None:
    template = encode(NODE_KEY.template)
    words = [tpm.path, (len(template).to_bytes(2) + template).hex(), str(TURNS)]
    done = subprocess.run(["/usr/bin/python3", str(PEER), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for what, took in json.loads(done.stdout).items():
        watch.took_s.setdefault((what, "tpm2-pytss"), []).extend(took)


def has_pytss() -> bool:
    return not system_parts.missing([part for part in system_parts.PARTS if "pytss" in part.package], "")


@pytest.fixture(scope="module")
def watch(tpm: SwTpm) -> Watch:
    found = Watch()
    for _ in range(ROUNDS):
        # One after the other: swtpm serves one connection at a time.
        create, sign = our_turn(tpm, found)
        bare_turn(tpm, found, create, sign)
        if has_pytss():
            their_turn(tpm, found)
    print(f"\n{found}")
    return found


@pytest.mark.parametrize(("what", "most"), [("Sign", 1.15), ("CreatePrimary", 1.18)])
def test_a_command_takes_hardly_longer_than_the_round_trip_of_its_bytes(what: str, most: float, watch: Watch) -> None:
    # The goal is 1.10. Over all rounds, on a machine with other work or without: Sign 1.05 to 1.08, CreatePrimary 1.03
    # to 1.10; the best round is somewhat lower. A pause of 0.1 ms in each command gives 1.4 and 1.35.
    assert watch.ratio(what, "bare socket") <= most


@pytest.mark.skipif(not has_pytss(), reason="no python3-tpm2-pytss")
@pytest.mark.parametrize(("what", "most"), [("signature", 1.0), ("CreatePrimary", 0.7)])
def test_a_signature_and_a_key_take_less_than_with_tpm2_pytss(what: str, most: float, watch: Watch) -> None:
    # The goal is 0.9. Measured as above: a signature 0.88 to 0.90, of which the TPM itself takes 0.82; CreatePrimary
    # 0.53 to 0.55. The goal cannot be had for the call alone, which leaves the halves in C's memory: that is
    # a tenth longer than the TPM itself takes.
    assert watch.ratio(what, "tpm2-pytss") < most
