"""`.venv` is made again when what it was made from changed, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.make_venv import fingerprint, needed, read_stamp

NOTHING, PROJECT, EVERYTHING = (False, False), (False, True), (True, True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "requirements.lock").write_text("pytest==9\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    return tmp_path


def test_nothing_changed_nothing_is_done(root: Path) -> None:
    (root / "requirements.lock").touch()
    assert needed(fingerprint(root, "3.11.7"), fingerprint(root, "3.11.7")) == NOTHING


def test_without_a_stamp_everything_is_made(root: Path) -> None:
    assert needed(fingerprint(root, "3.11.7"), {}) == EVERYTHING


def test_another_lock_file_makes_everything_anew(root: Path) -> None:
    before = fingerprint(root, "3.11.7")
    (root / "requirements.lock").write_text("pytest==10\n", encoding="utf-8")
    assert needed(fingerprint(root, "3.11.7"), before) == EVERYTHING


def test_another_project_file_installs_the_project_again(root: Path) -> None:
    before = fingerprint(root, "3.11.7")
    (root / "pyproject.toml").write_text("[project]\nname='x'\n", encoding="utf-8")
    assert needed(fingerprint(root, "3.11.7"), before) == PROJECT


def test_another_python_or_a_copied_tree_makes_everything_anew(root: Path) -> None:
    before = fingerprint(root, "3.11.7")
    assert needed(fingerprint(root, "3.13.0"), before) == EVERYTHING
    assert needed({**before, "root": "/elsewhere"}, before) == EVERYTHING


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_torn_stamp_is_no_stamp(tmp_path: Path, text: str) -> None:
    stamp = tmp_path / "stamp.json"
    stamp.write_text(text, encoding="latin-1")
    assert read_stamp(stamp) == {}
    assert read_stamp(tmp_path / "absent") == {}
