"""What the suites did, from their JUnit reports, and what is wrong with that."""

from __future__ import annotations

import ast
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# The order in which they run: what fails quickest first. Another folder of tests comes after these.
SUITE_ORDER = ("unit", "contract", "e2e", "crash", "bench")

# Decision 29: the one thing a machine may lack in CI, and so the beginning of the one reason CI accepts.
ALLOWED_SKIP = "../shared/data"


@dataclass(frozen=True)
class Skip:
    test: str
    reason: str

    @property
    def allowed(self) -> bool:
        return self.reason.startswith(ALLOWED_SKIP)


@dataclass(frozen=True)
class Outcome:
    suite: str
    passed: int = 0
    # A test in error failed; a suite that ended without a report counts as one more.
    failed: int = 0
    skips: tuple[Skip, ...] = ()
    seconds: float = 0.0

    @property
    def run(self) -> int:
        return self.passed + self.failed

    @property
    def counted(self) -> int:
        """What the minimum is held against. Whoever has ../shared/data runs more than CI can; both have all tests."""
        return self.run + sum(skip.allowed for skip in self.skips)


def read_report(suite: str, text: str) -> Outcome:
    """The outcome a JUnit report tells. A test with a failure and an error in teardown has two entries: one test."""
    verdicts: dict[str, str] = {}
    reasons: dict[str, str] = {}
    root = ET.fromstring(text)
    for case in root.iter("testcase"):
        test = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            verdicts[test] = "failed"
        elif (skipped := case.find("skipped")) is not None:
            verdicts.setdefault(test, "skipped")
            reasons[test] = _reason(skipped)
        else:
            verdicts.setdefault(test, "passed")
    by_verdict = list(verdicts.values())
    return Outcome(
        suite,
        by_verdict.count("passed"),
        by_verdict.count("failed"),
        tuple(Skip(test, reasons[test]) for test, verdict in verdicts.items() if verdict == "skipped"),
        sum(float(element.get("time", "0")) for element in root.iter("testsuite")),
    )


def _reason(skipped: ET.Element) -> str:
    message = skipped.get("message") or ""
    if message != "collection skipped":
        return message
    # A module skipped as a whole: pytest writes the tuple (path, line, "Skipped: reason") as text.
    try:
        return str(ast.literal_eval(skipped.text or "")[2]).removeprefix("Skipped: ")
    except (ValueError, SyntaxError, LookupError, TypeError):
        return skipped.text or message


def broken(outcome: Outcome) -> Outcome:
    """The outcome of a suite whose process failed without saying which test did."""
    return replace(outcome, failed=outcome.failed + 1)


def together(suite: str, parts: Iterable[Outcome]) -> Outcome:
    """The outcome of a suite whose parts were processes of their own; the seconds are the sum of theirs."""
    whole = Outcome(suite)
    for part in parts:
        whole = Outcome(
            suite,
            whole.passed + part.passed,
            whole.failed + part.failed,
            whole.skips + part.skips,
            whole.seconds + part.seconds,
        )
    return whole


def one_report(parts: Iterable[str]) -> str:
    """The JUnit reports of a suite's parts as the report of the suite."""
    whole = ET.Element("testsuites")
    for part in parts:
        whole.extend(ET.fromstring(part).iter("testsuite"))
    return ET.tostring(whole, encoding="unicode", xml_declaration=True)


def suites_in(tests: Path, counts: Mapping[str, int]) -> list[str]:
    """Every folder with tests in it, and every suite that is counted, whether or not it is there."""
    present = {path.name for path in tests.iterdir() if path.is_dir() and any(path.rglob("test_*.py"))}
    known = [suite for suite in SUITE_ORDER if suite in present | counts.keys()]
    return known + sorted((present | counts.keys()) - set(known))


def read_counts(path: Path) -> dict[str, int]:
    """Suite to the least number of tests that must run."""
    counts = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise ValueError(f"{path}: want an object of suite names and numbers")
    return counts


def problems(outcomes: Iterable[Outcome], counts: Mapping[str, int], chosen: Sequence[str], *, ci: bool) -> list[str]:
    """What makes the run fail although perhaps no test did, each in words that name the way out."""
    found = []
    by_suite = {outcome.suite: outcome for outcome in outcomes}
    for suite in chosen:
        outcome = by_suite.get(suite)
        if outcome is None:
            found.append(f"{suite}: in tests/counts.json, but tests/{suite} was not run")
            continue
        if outcome.counted < counts.get(suite, 0):
            found.append(
                f"{suite}: {outcome.run} ran, tests/counts.json wants {counts[suite]} ({len(outcome.skips)} skipped);"
                " if tests were removed on purpose: make counts, and commit it"
            )
        if ci:
            offending = [skip for skip in outcome.skips if not skip.allowed]
            found += [f"{suite}: skipped in CI: {skip.test}: {skip.reason}" for skip in offending]
    return found


def table(outcomes: Sequence[Outcome], wall_s: float) -> list[str]:
    """A row a suite, and how long all of it took: less than their sum where suites ran beside each other."""
    rows = [("suite", "run", "skipped", "seconds")]
    rows += [(one.suite, str(one.run), str(len(one.skips)), f"{one.seconds:.1f}") for one in outcomes]
    rows.append(("wall time", "", "", f"{wall_s:.1f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(row[column].rjust(widths[column]) for column in (1, 2, 3))])
        for row in rows
    ]


def total(outcomes: Sequence[Outcome]) -> str:
    """The last line of a run, in the form CI reads."""
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(len(outcome.skips) for outcome in outcomes)
    return f"{passed} passed, {failed} failed, {skipped} skipped"
