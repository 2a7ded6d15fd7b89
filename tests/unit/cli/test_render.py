"""What the commands print: the documented lines, times in UTC."""

from datetime import datetime, timedelta, timezone

import pytest

from bcd.cli import render
from bcd.domain.lifecycle.join import Joined
from bcd.domain.model.datadir import Moved
from bcd.domain.model.keys import KeyKind
from tests.fakes.memory_node import identity

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("hours", [-11, -3.5, 0, 14])
def test_b25_a_time_is_the_same_instant_from_every_zone(hours: float) -> None:
    """Field report B25."""
    zone = timezone(timedelta(hours=hours))
    instant = datetime(2026, 9, 26, 12, 0, tzinfo=zone) + timedelta(hours=hours)
    assert render.time(instant) == "2026-09-26T12:00:00Z"


def test_a_join_is_told_as_the_specification_words_it(capsys: Captured) -> None:
    render.joined(Joined(identity(), KeyKind.FILE, already=False))
    out = capsys.readouterr().out
    assert out == "joined as n-7 (site hall-2, role node); certificate valid until 2026-09-27T11:55:00Z\n"


def test_a_machine_that_had_joined_is_told_without_a_time(capsys: Captured) -> None:
    render.joined(Joined(identity(), KeyKind.FILE, already=True))
    assert capsys.readouterr().out == "already joined as n-7 (site hall-2, role node)\n"


def test_a_plan_says_each_move_and_that_it_is_none_yet(capsys: Captured) -> None:
    render.reset_plan("/d", [Moved("node.key", "node.key.reset-x"), Moved("identity.json", "identity.json.reset-x")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "would move, in /d:"
    assert lines[1:3] == ["  node.key -> node.key.reset-x", "  identity.json -> identity.json.reset-x"]
    assert "join again with a new key" in lines[3]


def test_a_plan_of_nothing_says_so(capsys: Captured) -> None:
    render.reset_plan("/d", [])
    assert capsys.readouterr().out == "/d holds no identity; bcd join joins\n"


def test_what_was_moved_is_told_in_its_order(capsys: Captured) -> None:
    render.was_reset([Moved("a", "a.1"), Moved("b", "b.1")])
    assert capsys.readouterr().out == "moved a -> a.1\nmoved b -> b.1\n"


@pytest.mark.parametrize("text", ["plain", "ä", "a\nb", "a\x1b[31mb", "a\u2028b", "\udcff"])
def test_an_error_is_one_printable_line_on_standard_error(text: str, capsys: Captured) -> None:
    render.error(text)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err[:-1].isprintable()
    assert (err[:-1] == text) is text.isprintable()
