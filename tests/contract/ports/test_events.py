"""The port `Events`: one contract over the log, in both of its forms, and the fake that remembers."""

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loguru import logger

from bcd.adapters.log.events import LogEvents
from bcd.adapters.log.quiet import Quiet
from bcd.ports.events import Events
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.joining import Recorded
from tests.fakes.properties import few

_FIELD = re.compile(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "=]+)$')


@dataclass(frozen=True)
class Told:
    level: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rig:
    """Events, and what a reader of them is told."""

    events: Events
    told: Callable[[], list[Told]]


def from_json(line: str) -> Told:
    value = json.loads(line)
    level, text = value.pop("level"), value.pop("message")
    datetime.fromisoformat(value.pop("time"))
    return Told(level, text, {name: str(shown) for name, shown in value.items()})


def from_text(line: str) -> Told:
    when, level, rest = line.split(" ", 2)
    datetime.fromisoformat(when)
    fields = {}
    while found := _FIELD.search(rest):
        fields[found[1]] = json.loads(found[2]) if found[2].startswith('"') else found[2]
        rest = rest[: found.start()]
    return Told(level, rest, dict(reversed(fields.items())))


class EventsContract:
    @staticmethod
    def each_event_is_told_once_and_in_order(rig: Rig) -> None:
        rig.events.info("first")
        rig.events.warning("second")
        rig.events.error("third")
        assert rig.told() == [Told("info", "first"), Told("warning", "second"), Told("error", "third")]

    @staticmethod
    def fields_are_told_by_name(rig: Rig) -> None:
        rig.events.info("joined", node="n-7", attempt=3, as_="node.key.1")
        assert rig.told() == [Told("info", "joined", {"node": "n-7", "attempt": "3", "as": "node.key.1"})]

    @staticmethod
    def a_field_is_told_as_it_is_whatever_it_holds(rig: Rig) -> None:
        for value in (
            "two words",
            'say "no"',
            "a=b",
            "a\nb\r\nc",
            "{oops} {0} {time}",
            "<red>no</red>",
            "<b>",
            "\\<b>",
            "3 < 4",
            "back\\slash",
            "",
            "\x1b[31m",
            "\u2028 \u0085",
            "ä",
        ):
            rig.events.info("join attempt failed", why=value)
            assert rig.told()[-1] == Told("info", "join attempt failed", {"why": value}), value

    @staticmethod
    def braces_and_markup_in_the_text_are_text(rig: Rig) -> None:
        for text in ("{why} <red>x</red>", "a < b", "<b>", "{", "}"):
            rig.events.error(text, why="x")
            assert rig.told()[-1] == Told("error", text, {"why": "x"}), text


def log(form: str, level: str = "info") -> Iterator[Rig]:
    """LogEvents on a stream that stands in for standard error."""
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        events = LogEvents(level, form)
    read = from_json if form == "json" else from_text

    def told() -> list[Told]:
        text = stream.getvalue()
        assert text == "" or text.endswith("\n")
        return [read(line) for line in text.removesuffix("\n").split("\n") if text]

    try:
        yield Rig(events, told)
    finally:
        logger.remove()


def told_by(level: str, text: str, fields: dict[str, object]) -> Told:
    return Told(level, text, {name.rstrip("_"): str(value) for name, value in fields.items()})


def recorded() -> Iterator[Rig]:
    events = Recorded()
    yield Rig(events, lambda: [told_by(*line) for line in events.lines])


IMPLEMENTATIONS = {"text": lambda: log("text"), "json": lambda: log("json"), "recorded": recorded}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("check", checks_of(EventsContract).values(), ids=checks_of(EventsContract))
def test_every_implementation_meets_the_contract(check: Callable[[Rig], None], implementation: str) -> None:
    for rig in IMPLEMENTATIONS[implementation]():
        check(rig)


class Wrong:
    """Tells `change` of what it should."""

    def __init__(self, change: Callable[[Told], list[Told]]) -> None:
        self.told: list[Told] = []
        self._change = change

    def info(self, text: str, **fields: object) -> None:
        self.told += self._change(told_by("info", text, fields))

    def warning(self, text: str, **fields: object) -> None:
        self.told += self._change(told_by("warning", text, fields))

    def error(self, text: str, **fields: object) -> None:
        self.told += self._change(told_by("error", text, fields))


@pytest.mark.parametrize(
    ("change", "caught_by"),
    [
        (lambda told: [told, told], "each_event_is_told_once_and_in_order"),
        (lambda told: [Told("info", told.text, told.fields)], "each_event_is_told_once_and_in_order"),
        (lambda told: [Told(told.level, told.text)], "fields_are_told_by_name"),
        (
            lambda told: [Told(told.level, told.text, {k: v.replace("\n", " ") for k, v in told.fields.items()})],
            "a_field_is_told_as_it_is_whatever_it_holds",
        ),
        (
            lambda told: [Told(told.level, told.text.replace("{why}", "x"), told.fields)],
            "braces_and_markup_in_the_text_are_text",
        ),
    ],
)
def test_a_wrong_implementation_fails_the_contract(change: Callable[[Told], list[Told]], caught_by: str) -> None:
    def make() -> Rig:
        events = Wrong(change)
        return Rig(events, lambda: list(events.told))

    assert caught_by in failed_checks(EventsContract, make)


# --- The log alone

LEVELS = ["debug", "info", "warning", "error"]


def one_of_each(events: LogEvents) -> None:
    for level in LEVELS:
        getattr(events, level)(f"at {level}")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("level", LEVELS)
def test_an_event_below_the_level_is_not_logged_and_the_others_are(level: str, form: str) -> None:
    for rig in log(form, level):
        assert isinstance(rig.events, LogEvents)
        one_of_each(rig.events)
        assert [told.level for told in rig.told()] == LEVELS[LEVELS.index(level) :]


@few
@example(text="\x7f", value="\x7f\u2028")
@given(text=st.text(), value=st.text())
@pytest.mark.parametrize("form", ["text", "json"])
def test_every_event_is_one_printable_line_and_no_defect_of_the_logger(form: str, text: str, value: str) -> None:
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        LogEvents("info", form).info(text, why=value)
        logger.remove()
    said = stream.getvalue()
    assert said.endswith("\n")
    assert said.removesuffix("\n").isprintable()
    if form == "json":
        told = json.loads(said)
        assert (told["message"], told["why"]) == (text, value)


def test_b25_a_time_is_told_in_utc() -> None:
    """Field report B25."""
    when = datetime(2026, 9, 26, 14, 30, tzinfo=timezone(timedelta(hours=14)))
    for rig in log("json"):
        rig.events.info("resuming", begun=when)
        assert rig.told()[0].fields == {"begun": "2026-09-26T00:30:00Z"}


def test_the_log_says_when_in_utc() -> None:
    stream = io.StringIO()
    before = datetime.now(UTC) - timedelta(seconds=1)
    with contextlib.redirect_stderr(stream):
        LogEvents("info", "text").info("now")
        logger.remove()
    when = stream.getvalue().split(" ")[0]
    assert when.endswith("Z")
    assert before <= datetime.fromisoformat(when) <= datetime.now(UTC)


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for level in ("info", "warning", "error"):
        getattr(Quiet(), level)("text", why="x")
    assert capfd.readouterr() == ("", "")
    one_of_each(LogEvents("debug", "text"))
    logger.remove()
    assert capfd.readouterr().err.count("\n") == 4
