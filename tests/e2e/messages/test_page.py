"""docs/messages.md is what the catalogues say, and names tests that are there."""

import re
import subprocess
import sys

from tests.e2e.messages import page


def test_the_page_is_what_the_catalogues_make() -> None:
    """When this fails after a message was changed: python -m tests.e2e.messages.page."""
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_each_test_the_page_names_is_one_that_pytest_finds() -> None:
    named = set(re.findall(r"`(tests/[^`]+\[\w+\])`", page.PAGE.read_text(encoding="utf-8")))
    files = sorted({name.split("::")[0] for name in named})
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
    found = subprocess.run(words, cwd=page.ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert named - set(found) == set()


def test_each_exit_on_the_page_is_one_of_decision_18() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", page.PAGE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert told == page.known_exits()
