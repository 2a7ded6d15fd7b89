"""`make demo` runs through, and notices when any one of its steps is spoiled."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# The TPMs that are there on every machine. Certificates live as long as make demo has them: shorter ones end between a
# join and the doctor on a busy machine.
OWN_TPMS = ("--tpm", "sim")
# Each of its waits has an end of its own.
PATIENCE_S = 900
# Most of a demo is waiting; five at a time keep two processors busy without starving each other's clocks.
AT_ONCE = 5

Done = subprocess.CompletedProcess[str]


def demo(home: Path, *words: str) -> Done:
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "tools.demo", *words],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


STEPS = demo(Path("/tmp"), "--list").stdout.split("\n")[:-1]


UnderWay = dict[str, tuple[Path, Future[Done]]]
WHOLE = {"as make demo runs it": (), "with bcd-fakehw's own TPMs": OWN_TPMS}


@pytest.fixture(scope="module")
def under_way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnderWay]:
    """The whole demo, and each with one step spoiled: its directory and what will come of it."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # The longest first.
        runs = WHOLE | {step: (*OWN_TPMS, "--sabotage", step) for step in reversed(STEPS)}
        found = {}
        for name, words in runs.items():
            home = tmp_path_factory.mktemp("demo")
            found[name] = (home, pool.submit(demo, home, *words))
        yield found


@pytest.mark.parametrize("step", STEPS)
def test_a_spoiled_step_fails_there_by_name(step: str, under_way: UnderWay) -> None:
    home, running = under_way[step]
    done = running.result()
    assert done.returncode == 1, done.stdout
    assert f"demo failed at step: {step}: " in done.stdout
    shown = re.findall(r"^(\d+)\. ", done.stdout, re.MULTILINE)
    assert len(shown) == STEPS.index(step) + 1, "it failed at that step, not before and not after"
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("how", WHOLE)
def test_the_demo_shows_every_step_and_leaves_nothing(how: str, under_way: UnderWay) -> None:
    home, running = under_way[how]
    done = running.result()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\d+\. ", done.stdout, re.MULTILINE)) == len(STEPS) >= 15
    assert "✗" not in done.stdout
    assert "\033" not in done.stdout, "no colour without a terminal"
    assert list(home.iterdir()) == []


def test_the_demo_says_which_software_tpms_it_shows(under_way: UnderWay) -> None:
    default, own = (under_way[how][1].result().stdout for how in WHOLE)
    assert ("  a software TPM, swtpm;" in default) is (shutil.which("swtpm") is not None)
    assert "  a software TPM of bcd-fakehw's own " in own


def test_the_demo_does_not_show_a_private_key_where_the_tpm_has_it(under_way: UnderWay) -> None:
    for how in WHOLE:
        shown = under_way[how][1].result().stdout
        assert shown.count("-----BEGIN ") == shown.count("-----BEGIN BCD TPM NODE KEY-----") == 1
