"""Two processes run at a time, no line stands among another's, and what they wrote is shown however the run ends."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tools.lanes import Part, run_beside

# Opening either end of a pipe waits for the other.
MEETS_AS_FIRST = ": > meeting; "
MEETS_AS_SECOND = ": < meeting; "
# Open for both, it waits for a line.
WAITS = "read line 0<> never"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("meeting", "never"):
        os.mkfifo(tmp_path / name)
    return tmp_path


def _part(root: Path, name: str, script: str) -> Part:
    return Part(name, f"tests/{name}", ("sh", "-c", script), root / f"{name}.xml", root / f"{name}.log")


def _blocks(said: str) -> dict[str, str]:
    """What stands below each line that says how a part ended, up to the next line of the runner's."""
    return dict(re.findall(r"^--- tests/(\w+ ended.*?) after \d+ s:\n(.*?)(?=\n--- tests/|\Z)", said, re.M | re.S))


def test_two_run_beside_each_other_and_the_next_begins_when_one_ended(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = [_part(root, "a", MEETS_AS_FIRST), _part(root, "b", f"{MEETS_AS_SECOND} exit 5"), _part(root, "c", ":")]
    ended = run_beside(root, parts, lanes=2)
    assert sorted((one.part.suite, one.code) for one in ended) == [("a", 0), ("b", 5), ("c", 0)]
    steps = re.findall(r"^--- tests/(\w) (begins|ended)", capfd.readouterr().out, re.MULTILINE)
    assert steps[:2] == [("a", "begins"), ("b", "begins")]
    assert steps[2][1] == "ended"
    assert steps[-1] == ("c", "ended")


def test_the_lines_of_one_stand_together_and_in_full(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    says = (
        "for n in $(seq 2000); do echo {name} says $n; [ $n != 1000 ] || {meets} done; echo {name} failed >&2; exit 1"
    )
    parts = [
        _part(root, "a", says.format(name="a", meets=MEETS_AS_FIRST)),
        _part(root, "b", says.format(name="b", meets=MEETS_AS_SECOND)),
    ]
    assert [one.code for one in run_beside(root, parts, lanes=2)] == [1, 1]
    blocks = _blocks(capfd.readouterr().out)
    for name in ("a", "b"):
        whole = [*(f"{name} says {number}" for number in range(1, 2001)), f"{name} failed"]
        assert blocks[f"{name} ended with 1"].splitlines() == whole


def test_lines_that_are_no_text_are_shown_as_they_are(root: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run_beside(root, [_part(root, "a", r"printf '\377\n'")])
    assert capfdbinary.readouterr().out.endswith(b" s:\n\xff\n")


@pytest.mark.parametrize("asked", STOPS, ids=lambda asked: asked.name)
def test_a_run_that_is_told_to_stop_shows_what_each_had_to_say(
    root: Path, capfd: pytest.CaptureFixture[str], asked: signal.Signals
) -> None:
    """Each is interrupted once, as Ctrl-C does it, and may tidy up; nothing more begins."""
    says = "trap 'echo tidied; exit 2' INT; echo began; "
    parts = [
        _part(root, "a", f"{says}{MEETS_AS_FIRST} kill -{asked} $PPID; {WAITS}"),
        _part(root, "b", f"{says}{MEETS_AS_SECOND} {WAITS}"),
        _part(root, "c", ":"),
    ]
    before = [signal.getsignal(number) for number in STOPS]
    with pytest.raises(KeyboardInterrupt):
        run_beside(root, parts, lanes=2)
    said = capfd.readouterr().out
    assert _blocks(said) == {"a ended with 2": "began\ntidied\n", "b ended with 2": "began\ntidied\n"}
    assert "tests/c" not in said
    assert [signal.getsignal(number) for number in STOPS] == before


def test_what_a_part_has_started_is_interrupted_with_it(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    inner = "trap 'echo inner tidied; exit' INT; kill -TERM $1; read line 0<> never"
    script = f"trap 'wait; exit 2' INT; sh -c \"{inner.replace('$', chr(92) + '$')}\" sh $PPID"
    with pytest.raises(KeyboardInterrupt):
        run_beside(root, [_part(root, "a", script)])
    assert _blocks(capfd.readouterr().out) == {"a ended with 2": "inner tidied\n"}


def test_who_asks_a_second_time_does_not_wait_for_it(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # Far less than the runner's patience with those that do not end.
    deaf = "trap 'kill -INT $PPID' INT; echo began; kill -INT $PPID; sleep 5; sleep 5; exit 7"
    with pytest.raises(KeyboardInterrupt):
        run_beside(root, [_part(root, "deaf", deaf)])
    assert _blocks(capfd.readouterr().out) == {"deaf ended with -9": "began\n"}


def test_a_signal_that_was_ignored_before_stays_ignored(root: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        (ended,) = run_beside(root, [_part(root, "a", "kill -HUP $PPID")])
        assert ended.code == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
