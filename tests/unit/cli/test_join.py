"""What `bcd join` says of an identity that is there already, and of no use."""

from datetime import timedelta

import pytest

from bcd.cli.join import _wrong
from bcd.domain.model.names import NodeId
from bcd.ports.journal import CorruptJournal, JournalOf, JournalState, NoJournal, Told
from tests.fakes import pki
from tests.fakes.memory_node import identity

HERE = identity()
NODE, END = HERE.node_id, HERE.leaf.not_after
SECOND = timedelta(seconds=1)
REVOKED = Told(session="revoked: stolen", session_since=pki.NOW)


def test_a_revocation_that_was_told_to_the_node_is_said_also_of_an_expired_certificate() -> None:
    for now in (END - SECOND, END):
        said = _wrong(HERE, JournalOf(NODE, REVOKED), now)
        assert "revoked: stolen" in said
        assert "bcd join --reset" in said


@pytest.mark.parametrize(
    "journal",
    [
        NoJournal(),
        CorruptJournal("no database"),
        JournalOf(None, REVOKED),
        JournalOf(NodeId("another"), REVOKED),
        JournalOf(NODE, Told(session="up", session_since=pki.NOW)),
        JournalOf(NODE, Told(running="bcd node (process 7)", session="revoked: stolen", session_since=pki.NOW)),
    ],
    ids=["none", "corrupt", "nobody's", "another's", "not revoked", "a node runs"],
)
def test_nothing_else_is_a_revocation(journal: JournalState) -> None:
    assert _wrong(HERE, journal, END - SECOND) == ""
    assert "expired" in _wrong(HERE, journal, END)
