"""`make demo` runs through, and notices when any one of its steps is spoiled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parent.parent.parent / "tools" / "demo.py"


def demo(*words: str, home: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(DEMO), *words],
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


STEPS = demo("--list", home=Path("/")).stdout.split("\n")[:-1]


def test_the_demo_shows_every_step_and_leaves_nothing(tmp_path: Path) -> None:
    done = demo(home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\d+\. ", done.stdout, re.MULTILINE)) == len(STEPS) >= 7
    assert "✗" not in done.stdout
    assert "\033" not in done.stdout, "no colour without a terminal"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_spoiled_step_fails_there_by_name(step: str, tmp_path: Path) -> None:
    done = demo("--sabotage", step, home=tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"demo failed at step: {step}: " in done.stdout
    shown = re.findall(r"^(\d+)\. ", done.stdout, re.MULTILINE)
    assert len(shown) == STEPS.index(step) + 1, "it failed at that step, not before and not after"
    assert list(tmp_path.iterdir()) == []
