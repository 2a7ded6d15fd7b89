"""What the machine lacks is found, and named with the line that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import system_parts
from tools.system_parts import Part


def test_a_program_that_is_not_on_the_path_is_missing(tmp_path: Path) -> None:
    (tmp_path / "here").touch(mode=0o755)
    (tmp_path / "not-executable").touch(mode=0o644)
    parts = [Part("here", "a"), Part("not-executable", "b"), Part("absent", "c")]
    assert [part.program for part in system_parts.missing(parts, str(tmp_path))] == ["not-executable", "absent"]


def test_a_library_without_a_program_is_missing_when_its_file_is(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    parts = [Part("a", "a", str(tmp_path / "there")), Part("b", "b", str(tmp_path / "absent"))]
    assert [part.program for part in system_parts.missing(parts, str(tmp_path))] == ["b"]


def test_the_install_line_names_program_and_package() -> None:
    assert Part("mkfs.ext4", "e2fsprogs").install_line() == "mkfs.ext4: apt-get install e2fsprogs"


def test_the_suites_look_where_debian_keeps_roots_programs() -> None:
    assert system_parts.search_path("/usr/bin:/usr/sbin") == "/usr/bin:/usr/sbin:/usr/local/sbin:/sbin"
    assert system_parts.search_path("") == "/usr/local/sbin:/usr/sbin:/sbin"


@pytest.mark.parametrize(
    ("os_release", "debian"),
    [
        ("ID=debian\n", True),
        ('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n', True),
        ('ID=mint\nID_LIKE="ubuntu debian"\n', True),
        ('ID="fedora"\n', False),
        ("ID=notdebian\n", False),
        ("", False),
    ],
)
def test_debian_is_known_by_its_os_release(os_release: str, debian: bool) -> None:
    assert system_parts.is_debian(os_release) is debian
