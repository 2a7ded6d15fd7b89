"""docs/operations.md: its links lead somewhere, its commands and checks are there, and its exit codes are all."""

import re
from pathlib import Path

import pytest

from bcd.app.findings import Check
from bcd.controlplane.cli.arguments import parser
from bcd.domain.model.failures import Exit

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
# Words an admin command begins with, up to its first option or argument.
ADMIN = sorted(set(re.findall(r"bcd-controlplane ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?)", TEXT)))


def anchors(page: str) -> set[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8") if page else TEXT
    return {
        re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-")
        for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^):]+)\)", TEXT))))
def test_every_link_leads_somewhere(link: str) -> None:
    page, _, anchor = link.partition("#")
    assert not page or (ROOT / "docs" / page).exists()
    assert not anchor or anchor in anchors(page)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`(config/[a-z.-]+|pyproject\.toml|requirements\.lock)`", TEXT)))
)
def test_every_file_it_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("words", ADMIN)
def test_every_command_of_the_control_plane_is_one(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*words.split(), "--help"])
    assert ended.value.code == 0
    assert words in capsys.readouterr().out


def test_it_has_every_exit_code() -> None:
    told = {int(number) for number in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)}
    assert told == {int(one) for one in Exit}


def test_it_has_every_check_of_doctor_but_those_that_cannot_fail() -> None:
    rows = re.findall(r"^\| ([a-z, ]+) \|", section("What to do for each check of doctor"), re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")}
    assert named == {check.value for check in Check} - {Check.NODE_KEY}
