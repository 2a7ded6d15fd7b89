"""How long a command takes, as a ratio to a bare Python process that imports the same packages, in one run.

The two alternate, so that a machine that slows down slows both; medians are compared, and printed.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.plane import Plane, control_plane

ROUNDS = 15


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("bench")) as serving:
        yield serving


def ratio(ours: Callable[[int], None], peer: str, name: str) -> float:
    """Median of ours over the median of `python -c peer`, interleaved; the first round of each warms up."""
    times: dict[str, list[float]] = {"ours": [], "peer": []}

    def bare(_: int) -> None:
        subprocess.run([sys.executable, "-c", peer], check=True, env=commands.environment())

    for number in range(ROUNDS + 1):
        for who, act in (("ours", ours), ("peer", bare)):
            began = time.perf_counter()
            act(number)
            if number:
                times[who].append(time.perf_counter() - began)
    medians = {who: statistics.median(found) for who, found in times.items()}
    found = medians["ours"] / medians["peer"]
    print(f"\n{name}: {medians['ours'] * 1000:.0f} ms, peer {medians['peer'] * 1000:.0f} ms, ratio {found:.2f}")
    return found


def test_status_takes_at_most_twice_the_import_of_x509(plane: Plane) -> None:
    machine = plane.machine()
    assert machine.join(plane.token()).status == 0
    words = commands.command(machine.words("status"))

    def ours(_: int) -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=commands.environment(machine.env))

    assert ratio(ours, "import cryptography.x509", "bcd status") <= 2.0


def test_a_join_takes_at_most_1_7_times_the_import_of_its_packages(plane: Plane) -> None:
    machines = [plane.machine() for _ in range(ROUNDS + 1)]
    tokens = [plane.token() for _ in machines]

    def ours(number: int) -> None:
        assert machines[number].join(tokens[number]).status == 0

    peer = "import grpc, pydantic_settings, dependency_injector.providers, cryptography.x509"
    # 1.45 to 1.65 on a quiet machine when the structures of a TPM still cost each its own methods. In processor time,
    # with twenty processes waiting for two cores: 1.75 with those, 1.57 to 1.69 without.
    assert ratio(ours, peer, "bcd join") <= 1.7


def test_this_file_measures_what_is_installed() -> None:
    """The commands measured are the console scripts beside this interpreter, not another bcd on the PATH."""
    assert Path(commands.command(["bcd-fakehw"])[0]).parent == Path(sys.executable).parent
