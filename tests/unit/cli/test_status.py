"""What `bcd status` says of a node's plan."""

from datetime import datetime, timedelta

import pytest

from bcd.cli.status import _planned
from bcd.domain.model.identity import renew_at
from bcd.ports.journal import Told
from tests.fakes.memory_node import identity

LEAF = identity().leaf
AT = renew_at(LEAF)
NOON = AT - timedelta(hours=2)
MINUTE = timedelta(minutes=1)


def planned(at: datetime | None, now: datetime = NOON, running: str = "bcd node (process 7)") -> datetime:
    return _planned(Told(running=running, planned=at), LEAF, now)


def test_the_next_attempt_is_told_also_before_the_leaf_is_due() -> None:
    """A renewal that the gateway asked for has failed, and is tried again in a minute."""
    assert planned(NOON + MINUTE) == NOON + MINUTE
    assert planned(AT + 5 * MINUTE, AT + MINUTE) == AT + 5 * MINUTE


@pytest.mark.parametrize("at", [None, NOON - MINUTE, LEAF.not_after, LEAF.not_after + MINUTE])
def test_without_a_plan_for_this_leaf_its_own_dates_say_when(at: datetime | None) -> None:
    assert planned(at) == AT


def test_a_node_that_does_not_run_has_no_plan() -> None:
    assert planned(NOON + MINUTE, running="") == AT


def test_a_plan_that_is_past_is_told_when_the_leaf_was_due_then() -> None:
    assert planned(AT + MINUTE, AT + 2 * MINUTE) == AT + MINUTE
