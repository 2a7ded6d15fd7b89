"""`make test`: system parts, then every suite as processes of its own, then the table (decisions 29, 30)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from tools import guest_kernel, lanes, system_parts, tally

ROOT = Path(__file__).resolve().parent.parent
# pytest's exit code for "no tests collected": the counts judge that, not the process.
NO_TESTS_COLLECTED = 5

# What measures time has the machine to itself.
ALONE = ("bench",)
# Takes long, and its folders know nothing of each other: a process each.
SPLIT = ("e2e",)
# What fails quickest is known first; then the longest, so that small parts are left to fill the lanes' ends.
FIRST = ("unit", "e2e/tpm", "crash", "contract", "e2e/node", "e2e/test_demo.py")


def main(chosen: Sequence[str], root: Path = ROOT) -> int:
    began_s = time.monotonic()
    ci = os.environ.get("CI") == "true"
    os.environ["PATH"] = system_parts.search_path(os.environ.get("PATH", ""))
    counts = tally.read_counts(root / "tests" / "counts.json")
    known = tally.suites_in(root / "tests", counts)
    unknown = [suite for suite in chosen if suite not in known]
    if unknown:
        print(f"make test: no suite {', '.join(unknown)}; there are: {' '.join(known)}", file=sys.stderr)
        return 2
    suites = [suite for suite in known if not chosen or suite in chosen]

    absent = _get_system_parts() + _get_guest_kernel() + _get_node_modules(root / "tests" / "contract" / "typescript")
    outcomes, endings = run_suites(root, suites)
    failures = endings + tally.problems(outcomes, counts, suites, ci=ci)

    print()
    for line in absent:
        print(f"missing: {line}")
    if absent and ci:
        failures.append("CI=true and a part is missing, see above")
    for failure in failures:
        print(f"FAILED: {failure}")
    rows = tally.table(outcomes, time.monotonic() - began_s)
    print(*rows, tally.total(outcomes), sep="\n", flush=True)
    return 1 if failures or any(outcome.failed for outcome in outcomes) else 0


def run_suites(root: Path, suites: Sequence[str]) -> tuple[list[tally.Outcome], list[str]]:
    """Every suite that is there: the outcomes, and how a process ended that says no more itself."""
    there = [suite for suite in suites if (root / "tests" / suite).is_dir()]
    results = root / ".test-results"
    shutil.rmtree(results / "parts", ignore_errors=True)
    (results / "parts").mkdir(parents=True)
    for suite in there:
        # A process that dies writes no report, and the last run's is not this one's.
        (results / f"{suite}.xml").unlink(missing_ok=True)

    ended: list[lanes.Ended] = []
    beside = [suite for suite in there if suite not in ALONE]
    if len(beside) > 1:
        ended += lanes.run_beside(root, parts_beside(root, beside))
    else:
        ended += [lanes.run_alone(root, _part(root, suite)) for suite in beside]
    ended += [lanes.run_alone(root, _part(root, suite)) for suite in there if suite in ALONE]

    outcomes: list[tally.Outcome] = []
    endings: list[str] = []
    for suite in there:
        parts = [one for one in ended if one.part.suite == suite]
        judged = [_judge(one) for one in parts]
        outcomes.append(tally.together(suite, [outcome for outcome, _ in judged]))
        broken = [how for _, how in judged if how]
        endings += broken
        if not broken:
            reports = [one.part.report.read_text(encoding="utf-8") for one in parts]
            (results / f"{suite}.xml").write_text(tally.one_report(reports), encoding="utf-8")
    return outcomes, endings


def parts_beside(root: Path, suites: Sequence[str]) -> list[lanes.Part]:
    """What runs in lanes, in the order in which it begins."""
    parts: list[lanes.Part] = []
    for suite in suites:
        inside = sorted((root / "tests" / suite).iterdir()) if suite in SPLIT else []
        names = [path.name for path in inside if path.match("test_*.py") or any(path.rglob("test_*.py"))]
        parts += [_part(root, suite, name) for name in names] or [_part(root, suite)]
    begins = {f"tests/{name}": number for number, name in enumerate(FIRST)}
    return sorted(parts, key=lambda part: begins.get(part.name, len(begins)))


def _part(root: Path, suite: str, *inside: str) -> lanes.Part:
    name = "/".join(("tests", suite, *inside))
    file = root / ".test-results" / "parts" / ".".join((suite, *inside))
    report, log = file.with_name(f"{file.name}.xml"), file.with_name(f"{file.name}.log")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", name)
    return lanes.Part(suite, name, command, report, log)


def _judge(ended: lanes.Ended) -> tuple[tally.Outcome, str]:
    """The outcome of a part, and how its process ended if that is a failure of its own."""
    how = ""
    try:
        outcome = tally.read_report(ended.part.suite, ended.part.report.read_text(encoding="utf-8"))
    except (OSError, ET.ParseError):
        outcome = tally.Outcome(ended.part.suite, seconds=ended.seconds)
        how = " and no report"
    # A test that calls os._exit(0) takes every test after it along, silently.
    if how or (ended.code not in (0, NO_TESTS_COLLECTED) and not outcome.failed):
        return tally.broken(outcome), f"{ended.part.name}: pytest ended with {ended.code}{how}, see above"
    return outcome, ""


def _get_system_parts() -> list[str]:
    """Installs what it can; the install line of each part that is still missing."""
    absent = system_parts.missing(system_parts.PARTS, os.environ["PATH"])
    if absent and system_parts.can_install():
        system_parts.install([part.package for part in absent], "make test")
        absent = system_parts.missing(system_parts.PARTS, os.environ["PATH"])
    lines = [part.install_line() for part in absent]
    for part in absent:
        print(f"make test: {part.program} is missing, tests that need it are skipped", flush=True)
    return lines


def _get_guest_kernel() -> list[str]:
    """A kernel for the tests that boot one; the install line when there is none."""
    if guest_kernel.found() is None and system_parts.can_install():
        guest_kernel.fetch(guest_kernel.FOLDER, "make test")
    if guest_kernel.found() is not None:
        return []
    print("make test: no kernel for a virtual machine, tests that need one are skipped", flush=True)
    return [guest_kernel.INSTALL_LINE]


def _get_node_modules(folder: Path) -> list[str]:
    """node_modules as package-lock.json has it; the install line of what that needs and is missing."""
    if not (folder / "package.json").exists():
        return []
    lock_sha256 = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "node_modules" / ".stamp"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == lock_sha256:
        return []
    npm = system_parts.Part("npm", "npm")
    if system_parts.missing([npm], os.environ["PATH"]) and system_parts.can_install():
        system_parts.install([npm.package], "make test")
    if system_parts.missing([npm], os.environ["PATH"]):
        return [npm.install_line()]
    print("make test: npm ci in tests/contract/typescript", flush=True)
    if subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=False).returncode != 0:
        return ["node_modules: npm ci in tests/contract/typescript failed, see above"]
    stamp.write_text(lock_sha256, encoding="utf-8")
    return []


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
