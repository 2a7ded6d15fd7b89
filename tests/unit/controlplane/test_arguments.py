"""The grammar of bcd-controlplane: what a person who mistypes is told, and that every help page is complete."""

import argparse
import os
from collections.abc import Iterator

import pytest

import bcd
from bcd.controlplane.cli.arguments import parser
from bcd.controlplane.cli.main import main


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def commands(of: argparse.ArgumentParser, *words: str) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every parser of the grammar, with the words that lead to it."""
    yield words, of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from commands(inner, *words, name)


ALL = dict(commands(parser()))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_option_and_argument_says_what_it_is(words: tuple[str, ...]) -> None:
    assert [action.dest for action in ALL[words]._actions if not action.help and action.metavar != "COMMAND"] == []


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (
            ["nods", "list"],
            "bcd-controlplane: no such command: 'nods' (did you mean nodes?) (see bcd-controlplane --help)",
        ),
        (["xyzzy"], "bcd-controlplane: no such command: 'xyzzy' (see bcd-controlplane --help)"),
        (
            ["nodes", "lst"],
            "bcd-controlplane nodes: no such command: 'lst' (did you mean list?) (see bcd-controlplane nodes --help)",
        ),
        (
            ["--dir", "plane", "nodes", "list"],
            "bcd-controlplane: options come after the command (see bcd-controlplane --help)",
        ),
        (
            ["nodes", "list", "--dir", "plane", "--jsn"],
            "bcd-controlplane nodes list: unrecognized arguments: --jsn (did you mean --json?) "
            "(see bcd-controlplane nodes list --help)",
        ),
        (
            ["nodes", "list", "--dir", "plane", "word"],
            "bcd-controlplane nodes list: unrecognized arguments: word (see bcd-controlplane nodes list --help)",
        ),
    ],
)
def test_what_is_mistyped_is_answered_by_the_command_that_does_not_know_it(
    argv: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert capsys.readouterr() == ("", f"{line}\n")


@pytest.mark.parametrize("argv", [["--version"], ["version"]])
def test_it_says_its_version(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr() == (f"bcd-controlplane {bcd.__version__}\n", "")


@pytest.mark.parametrize(("argv", "status"), [([], 2), (["help"], 0), (["--help"], 0), (["-h"], 0)])
def test_without_a_command_it_shows_them_all(argv: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert all(f"\n    {words[0]}" in out for words in ALL if len(words) == 1)
