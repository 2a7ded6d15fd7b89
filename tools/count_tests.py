"""`make counts`: tests/counts.json from the reports of the last `make test`. By hand only: it lowers the bar too."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from tools import tally

ROOT = Path(__file__).resolve().parent.parent


def counted(old: Mapping[str, int], reports: Mapping[str, str]) -> dict[str, int]:
    """The new counts: a suite without a report keeps its number, one that ran nothing is not counted."""
    merged = {**old, **{suite: tally.read_report(suite, text).counted for suite, text in reports.items()}}
    order = [suite for suite in tally.SUITE_ORDER if suite in merged]
    return {suite: merged[suite] for suite in order + sorted(merged.keys() - set(order)) if merged[suite]}


def main() -> int:
    path = ROOT / "tests" / "counts.json"
    present = tally.suites_in(ROOT / "tests", {})
    files = [file for file in sorted((ROOT / ".test-results").glob("*.xml")) if file.stem in present]
    if not files:
        print("make counts: no results of a run: make test first", file=sys.stderr)
        return 1
    old = tally.read_counts(path)
    kept = {suite: count for suite, count in old.items() if suite in present}
    try:
        new = counted(kept, {file.stem: file.read_text(encoding="utf-8") for file in files})
    except ET.ParseError as error:
        print(f"make counts: a report in .test-results is torn ({error}): make test again", file=sys.stderr)
        return 1
    path.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
    for suite in {**old, **new}:
        print(f"{suite}: {old.get(suite, 0)} -> {new.get(suite, 0)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
