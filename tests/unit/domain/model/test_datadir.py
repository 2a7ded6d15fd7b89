"""Which files an identity has, and what they are called when they are moved aside."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from bcd.domain.model import datadir
from bcd.domain.model.datadir import Directory, Entry
from bcd.domain.model.names import NodeId

THEN = datetime(2026, 9, 26, 11, 42, 0, 999_999, tzinfo=UTC)
ENTRY = Entry("node.key", True, 0o600, 0, 241, 0, 1)
DIRECTORY = Directory("/var/lib/bcd", 0o700, 0, 1 << 30, False)


def test_moved_files_carry_the_utc_time() -> None:
    """The specification's own example: node.key.reset-20260926T114200Z."""
    assert datadir.reset_name("node.key", THEN) == "node.key.reset-20260926T114200Z"
    assert datadir.orphan_name("node.key", THEN) == "node.key.orphan-20260926T114200Z"
    assert datadir.corrupt_name("journal.db", THEN) == "journal.db.corrupt-20260926T114200Z"


def test_another_nodes_journal_carries_its_name_and_the_unix_time() -> None:
    assert datadir.other_nodes_journal(NodeId("n-3"), THEN) == "journal.db.n-3-1790422920"


@pytest.mark.parametrize("hours", [-12, -3.5, 0, 5.75, 14])
def test_the_name_is_the_same_instant_in_every_zone(hours: float) -> None:
    """B25: a time told in another zone is still written in UTC."""
    there = THEN.astimezone(timezone(timedelta(hours=hours)))
    assert datadir.reset_name("node.key", there) == "node.key.reset-20260926T114200Z"
    assert datadir.other_nodes_journal(NodeId("n-3"), there) == "journal.db.n-3-1790422920"


@pytest.mark.parametrize(
    "name", [datadir.reset_name, datadir.orphan_name, datadir.corrupt_name, datadir.other_nodes_journal]
)
def test_a_time_without_a_zone_is_refused(name: object) -> None:
    """B25: it would be read as local time."""
    with pytest.raises(ValueError, match="zone"):
        name(NodeId("x"), THEN.replace(tzinfo=None))  # type: ignore[operator]


def test_reset_moves_the_identity_last_and_everything_the_specification_names() -> None:
    """Decision 7: a cut leaves a mismatch, which points back to --reset."""
    assert datadir.RESET_ORDER[-1] == datadir.IDENTITY
    assert {"identity.json", "node.key", "node.key.next", "journal.db", "join.pending"} <= set(datadir.RESET_ORDER)
    assert {f"journal.db-{kind}" for kind in ("journal", "wal", "shm")} <= set(datadir.RESET_ORDER)
    assert len(set(datadir.RESET_ORDER)) == len(datadir.RESET_ORDER)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700, 0o000])
def test_a_mode_of_the_owner_alone_is_tight(mode: int) -> None:
    assert not replace(ENTRY, mode=mode).loose
    assert not replace(DIRECTORY, mode=mode).loose


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o777])
def test_any_bit_for_group_or_others_is_loose(mode: int) -> None:
    assert replace(ENTRY, mode=mode).loose
    assert replace(DIRECTORY, mode=mode).loose


def test_the_secrets_are_those_that_hold_a_key() -> None:
    assert set(datadir.SECRETS) == {"node.key", "node.key.next", "join.pending"}
    assert (datadir.DIRECTORY_MODE, datadir.FILE_MODE) == (0o700, 0o600)
