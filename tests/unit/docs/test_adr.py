"""The decision records: one page each, numbered, and nothing in them that is not there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs" / "adr").glob("*.md"))
# Paths of the repository; those of a running machine begin with a slash.
PATH = re.compile(r"`(\.?[a-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)+)`")


def test_they_are_numbered_without_a_gap() -> None:
    assert [page.name[:4] for page in PAGES] == [f"{number:04}" for number in range(1, len(PAGES) + 1)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_is_a_short_page_with_its_number_context_decision_consequence_and_what_holds_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert text.startswith(f"# {int(page.name[:4])}. ")
    parts = [text.index(f"**{part}") for part in ("Context", "Decision", "Consequence", "Held by")]
    assert parts == sorted(parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_it_names_exists(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_other_page_it_points_to_exists(page: Path) -> None:
    numbers = {int(number) for number in re.findall(r"\(page (\d+)\)", page.read_text(encoding="utf-8"))}
    assert numbers <= set(range(1, len(PAGES) + 1))


def test_every_direct_dependency_has_its_reason() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dependencies = re.findall(r'^    "([a-z-]+)([^"]*)",$', project, re.MULTILINE)
    text = (ROOT / "docs" / "adr" / "0002-dependencies.md").read_text(encoding="utf-8")
    runtime, development = dependencies[:7], dependencies[7:]
    assert [f"{name} {range_}" for name, range_ in runtime] == re.findall(r"^- `([^`]+)`", text, re.MULTILINE)
    assert [name for name, _ in development if f"`{name}`" not in text] == []
