"""docs/threat-model.md: no claim without what backs it, and what backs it is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
PATHS = re.findall(r"`(\.?[a-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)+|\.importlinter)`", PAGE)


def test_every_path_it_names_exists() -> None:
    assert len(PATHS) > 30
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


def test_every_attack_in_a_table_has_something_that_backs_the_answer() -> None:
    attacks = PAGE.split("## Who attacks")[1].split("## What bcd does not do")[0]
    rows = [line.strip("|").split("|") for line in attacks.splitlines() if line.startswith("| ")]
    claims = [row for row in rows if row[-1].strip() != "Backed by"]
    assert len(claims) > 10
    assert [row[0] for row in claims if "`" not in row[-1]] == []
