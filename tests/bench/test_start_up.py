"""What a command costs, as a ratio to a bare Python process that imports the same packages, in one run.

In processor time, which other work on the machine hardly changes. The two alternate, so that a processor that slows
down slows both; medians are compared, and printed.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.plane import Plane, control_plane

ROUNDS = 15


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("bench")) as serving:
        yield serving


def cost_s(words: Sequence[str], env: Mapping[str, str], stdin: bytes = b"") -> float:
    """Processor time of a process that is started, not forked, and must end well."""
    process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def ratio(ours: Callable[[int], float], peer: str, name: str) -> float:
    """Median of ours over the median of `python -c peer`, interleaved; the first round of each warms up."""
    costs: dict[str, list[float]] = {"ours": [], "peer": []}

    def bare(_: int) -> float:
        return cost_s([sys.executable, "-c", peer], commands.environment())

    for number in range(ROUNDS + 1):
        for who, act in (("ours", ours), ("peer", bare)):
            spent_s = act(number)
            if number:
                costs[who].append(spent_s)
    medians = {who: statistics.median(found) for who, found in costs.items()}
    found = medians["ours"] / medians["peer"]
    print(f"\n{name}: {medians['ours'] * 1000:.0f} ms, peer {medians['peer'] * 1000:.0f} ms, ratio {found:.2f}")
    # It imports what its peer does, and more: what is quicker is something else.
    assert found > 1.0
    return found


def test_status_takes_at_most_twice_the_import_of_x509(plane: Plane) -> None:
    machine = plane.machine()
    assert machine.join(plane.token()).status == 0
    words = commands.command(machine.words("status"))

    def ours(_: int) -> float:
        return cost_s(words, commands.environment(machine.env))

    assert ratio(ours, "import cryptography.x509", "bcd status") <= 2.0


def test_a_join_takes_at_most_1_6_times_the_import_of_its_packages(plane: Plane) -> None:
    machines = [plane.machine() for _ in range(ROUNDS + 1)]
    tokens = [plane.token() for _ in machines]

    def ours(number: int) -> float:
        machine = machines[number]
        words = commands.command(machine.words("join"))
        return cost_s(words, commands.environment(machine.env), f"{tokens[number]}\n".encode())

    peer = "import grpc, pydantic_settings, dependency_injector.providers, cryptography.x509"
    assert ratio(ours, peer, "bcd join") <= 1.6


def test_this_file_measures_what_is_installed() -> None:
    """The commands measured are the console scripts beside this interpreter, not another bcd on the PATH."""
    assert Path(commands.command(["bcd-fakehw"])[0]).parent == Path(sys.executable).parent
