"""README.md does what it says: its commands are run as they stand there."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes import commands

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
BY_HAND = next(block for block in BLOCKS if "bcd-fakehw join" in block)
PATIENCE_S = 120


def lines_of(output: str, start: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(start)]


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the block, in a shell that stops at the first failure."""
    home = tmp_path_factory.mktemp("readme")
    env = commands.environment({"TMPDIR": str(home), "PATH": f"{commands.BIN}:{os.environ['PATH']}"})
    env.pop("BASH_ENV", None)
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", BY_HAND],
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = shell.communicate(timeout=PATIENCE_S)
    finally:
        try:
            # A block that failed half-way leaves its server running, in the session made above.
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shell.wait()
    return shell.returncode, out.decode(), err.decode()


def test_every_command_of_the_readme_succeeds(by_hand: tuple[int, str, str]) -> None:
    status, out, err = by_hand
    assert status == 0, f"{out}\n{err}"


def test_the_machine_joins_once_and_comes_back_as_the_same_node_after_a_reset(by_hand: tuple[int, str, str]) -> None:
    _, out, _ = by_hand
    first, second = (line.split()[2] for line in lines_of(out, "joined as "))
    (already,) = (line.split()[3] for line in lines_of(out, "already joined as "))
    assert first == second == already


def test_the_node_renews_when_it_is_asked_to_and_ends_when_it_is_revoked(by_hand: tuple[int, str, str]) -> None:
    _, out, err = by_hand
    assert any(line.endswith(" fakehw") and " up " in line for line in out.splitlines())
    assert lines_of(out, "1 asked to renew: 1 by their session now")
    assert [line.endswith("; the machine must join again") for line in lines_of(out, "node n-")] == [True]
    assert err.splitlines().count("agent: this node's certificate was revoked") == 1
    # The node that was revoked, and the one after the reset, which is ended and not revoked.
    assert err.count(" info identity loaded ") == 2


def test_the_dry_run_of_a_reset_shows_the_files_and_the_reset_moves_them(by_hand: tuple[int, str, str]) -> None:
    _, out, _ = by_hand
    assert lines_of(out, "would move, in ")
    moved = [line.split()[1] for line in lines_of(out, "moved ")]
    assert {"identity.json", "node.key"} <= set(moved)
    assert moved[-1] == "identity.json"


def test_status_and_doctor_have_something_to_say(by_hand: tuple[int, str, str]) -> None:
    _, out, _ = by_hand
    node = lines_of(out, "already joined as ")[0].split()[3]
    assert any(re.match(rf"identity\W.* {node} \(site lab, role node\)", line) for line in out.splitlines())
    assert any(re.match(rf"ok +identity +{node} ", line) for line in out.splitlines())
    assert not lines_of(out, "fail ")


def test_the_readme_is_one_screen() -> None:
    assert len(README.splitlines()) <= 60


def test_every_path_the_readme_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_every_make_target_the_readme_names_is_one() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README.replace("git and make;", ""))) <= targets
