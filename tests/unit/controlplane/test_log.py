"""The log: one line an event, whatever is in it."""

from __future__ import annotations

import json

import pytest

from bcd.controlplane.adapters.log.stderr import StderrLog

HOSTILE = 'x\n2026-09-26T11:42:00Z info node joined\x1b[2J"\u202e'


def test_nothing_a_node_sends_breaks_a_line_or_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    log = StderrLog(as_json=False)
    log.warning("join refused", detail=HOSTILE)
    log.fault("a call failed", ValueError(HOSTILE))
    lines = capsys.readouterr().err.removesuffix("\n").split("\n")
    assert len(lines) == 2
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert ' warning join refused detail="x\\n' in lines[0]


def test_a_plain_word_stands_alone_and_nothing_else_passes_for_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    StderrLog(as_json=False).info("node joined", node="n-1", at="2026-09-26T11:42:00Z", ek="sha256:00", seen=3, why="")
    line = capsys.readouterr().err
    assert line.endswith(' info node joined node=n-1 at=2026-09-26T11:42:00Z ek=sha256:00 seen=3 why=""\n')
    for hostile in ("x node=n-2", 'x"', "x=1", "ü"):
        StderrLog(as_json=False).info("node joined", host=hostile)
        assert capsys.readouterr().err.endswith(f" host={json.dumps(hostile)}\n")


def test_json_lines_hold_each_field_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    StderrLog(as_json=True).info("node joined", node="n-1", detail=HOSTILE)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    told = json.loads(line)
    assert (told["level"], told["event"], told["node"], told["detail"]) == ("info", "node joined", "n-1", HOSTILE)
