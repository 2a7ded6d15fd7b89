"""docs/architecture.md names what is there, and all rooms, adapters and suites that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", PAGE))
# Paths of the repository have a slash and no other punctuation; those of a running machine begin with one.
PATHS = sorted(word for word in WORDS if re.fullmatch(r"\.?[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)+", word))
FILES_AT_ROOT = {"Makefile", "README.md", ".importlinter"} & WORDS


def rooms_in(folder: Path, pattern: str) -> set[str]:
    """Folders right below `folder` in which some file matches."""
    return {str(one.relative_to(ROOT)) for one in folder.iterdir() if one.is_dir() and any(one.rglob(pattern))}


@pytest.mark.parametrize("path", [*PATHS, *sorted(FILES_AT_ROOT)])
def test_every_path_it_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_it_names_paths_at_all() -> None:
    assert len(PATHS) > 30


def test_it_names_every_adapter() -> None:
    assert rooms_in(ROOT / "bcd" / "adapters", "*.py") <= WORDS


def test_it_names_every_room() -> None:
    rooms = rooms_in(ROOT / "bcd", "*.py") | rooms_in(ROOT / "bcd" / "controlplane", "*.py") - {"bcd/domain"}
    domain = rooms_in(ROOT / "bcd" / "domain", "*.py")
    assert rooms - {"bcd/domain"} | domain <= WORDS


def test_it_names_every_suite() -> None:
    assert rooms_in(ROOT / "tests", "test_*.py") <= WORDS


def test_the_order_of_the_rooms_is_the_one_that_is_checked() -> None:
    shown = re.search(r"^entry > .*$", PAGE, re.MULTILINE)
    contract = re.search(r"^layers =\n((?:    .*\n)+)", (ROOT / ".importlinter").read_text("utf-8"), re.MULTILINE)
    assert shown and contract
    checked = [line.strip().strip("()") for line in contract[1].splitlines()]
    assert shown[0] == " > ".join(checked).replace("bcd.", "")


def test_it_lists_six_files_to_read_first() -> None:
    section = PAGE.split("## Read these six files")[1].split("\n## ")[0]
    assert len(re.findall(r"^\d\. `", section, re.MULTILINE)) == 6
