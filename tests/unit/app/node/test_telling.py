"""What a node logs is in its journal already: whoever reads the line may ask `bcd status` at once."""

from datetime import datetime

import pytest

from bcd.app.telling import _span
from bcd.ports.gateway import Ended
from tests.fakes.joining import Recorded
from tests.fakes.memory_node import MemoryNode
from tests.fakes.running_node import HOUR_S, RENEWS_S, MemoryJournal, World


class Among(MemoryJournal):
    """Writes what it is told among the lines of the log."""

    def __init__(self, events: Recorded) -> None:
        super().__init__()
        self._lines = events.lines

    def session(self, state: str, at: datetime) -> None:
        super().session(state, at)
        self._lines.append(("journal", state.split(":", maxsplit=1)[0], {}))

    def attempted(self, at: datetime, failures: int, error: str) -> None:
        super().attempted(at, failures, error)
        self._lines.append(("journal", "failed" if error else "succeeded", {}))


def test_what_is_logged_is_recorded_before() -> None:
    node = MemoryNode()
    world = World(node=node, journal=Among(node.events))
    world.gateway.refuse()
    world.at(1, world.gateway.accept)
    world.at(HOUR_S, lambda: world.gateway.say(Ended("over")))
    world.at(2 * HOUR_S, lambda: world.gateway.answer(Ended("not now")))
    world.at(RENEWS_S + 60, world.gateway.accept)
    world.run(RENEWS_S + 2 * HOUR_S)
    wanted = {
        "no session": "down",
        "session up": "up",
        "session ended": "down",
        "renewal failed": "failed",
        "renewed": "succeeded",
    }
    lines = [(level, text) for level, text, _ in node.events.lines]
    before = {text: lines[number - 1] for number, (_, text) in enumerate(lines) if text in wanted}
    assert before == {text: ("journal", recorded) for text, recorded in wanted.items()}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0s"),
        (-0.9, "0s"),
        (-1.0, "-1s"),
        (59.9, "59s"),
        (60, "1m0s"),
        (-61, "-1m1s"),
        (3600, "1h0m0s"),
        (-86399, "-23h59m59s"),
    ],
)
def test_a_span_has_a_sign_only_where_a_whole_second_is_past(seconds: float, text: str) -> None:
    assert _span(seconds) == text
