"""A million replies that no TPM gives: each is a value, a code or a documented failure, and nothing else.

atheris has wheels for Linux on x86-64 alone; elsewhere these are skipped, and what tests/unit/protocol/tpm2 draws with
hypothesis remains.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.contract.fixtures import tpm2_replies

ROOT = Path(__file__).resolve().parents[3]
# One reply costs 20 µs, a script of them 200, a socket 70: half a minute on one core.
RUNS = {"answers": 930_000, "client": 50_000, "links": 20_000}
# Time for a machine that has other things to do.
TIMEOUT_S = 300.0

fuzzed = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="no atheris for this platform")


def fuzz(target: str, runs: int, seeds: Path, *options: str) -> tuple[int, str]:
    """The exit status of a run, and all that it said."""
    seeds.mkdir()
    # A found input is in what is said: no file is left behind.
    words = ["-m", "tests.contract.wire.fuzz_tpm", target, str(seeds), *options]
    done = subprocess.run(
        [sys.executable, *words, f"-runs={runs}", f"-artifact_prefix={seeds}-"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout


@fuzzed
def test_a_million_replies_without_an_uncaught_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counted = 0
    for target, runs in RUNS.items():
        began = time.monotonic()
        status, said = fuzz(target, runs, tmp_path / target)
        assert status == 0, said[-6000:]
        [done] = re.findall(r"^Done (\d+) runs", said, re.MULTILINE)
        [covered] = re.findall(r"DONE +cov: (\d+)", said)
        counted += int(done)
        with capsys.disabled():
            print(f"\nfuzz {target}: {done} runs in {time.monotonic() - began:.0f} s, {covered} edges", end="")
    with capsys.disabled():
        print(f"\nfuzz: {counted} runs")
    assert counted >= 1_000_000


@fuzzed
@pytest.mark.parametrize(
    ("target", "how", "error"),
    [
        ("answers", "unknown-selector", "KeyError"),
        ("answers", "short-take", "unpack requires a buffer of 10 bytes"),
        ("client", "no-room", "StopIteration"),
    ],
)
def test_a_decoder_that_is_wrong_is_found_by_the_same_run(target: str, how: str, error: str, tmp_path: Path) -> None:
    status, said = fuzz(target, RUNS[target], tmp_path / target, "--broken", how)
    assert status != 0
    assert "Uncaught Python exception" in said
    assert error in said


def test_the_replies_it_starts_from_are_of_every_command_and_whole() -> None:
    kept = tpm2_replies.kept()
    assert {name.split("-")[0] for name in kept} == set(tpm2_replies.BY_NAME)
    for name, reply in kept.items():
        # Raises for what is malformed.
        assert tpm2_replies.shape(name, reply) is not None


@pytest.mark.skipif(shutil.which("swtpm_setup") is None, reason="no swtpm")
def test_the_replies_it_starts_from_are_what_a_tpm_answers_today() -> None:
    assert list(tpm2_replies.differences(tpm2_replies.kept(), tpm2_replies.recorded())) == []
