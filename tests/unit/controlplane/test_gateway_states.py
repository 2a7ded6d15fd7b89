"""States of a certificate (docs/protocol.md): what each use of each certificate is answered, and what it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bcd.controlplane.app.alarms import MAX_REMEMBERED, Alarms
from bcd.controlplane.app.use import CLONE_SUSPECTED
from bcd.controlplane.domain.gateway import (
    Dead,
    HelloAnswer,
    NotNow,
    OutOfDate,
    RenewAnswer,
    Renewed,
    Superseded,
    Welcomed,
)
from bcd.controlplane.domain.news import NodeRevoked
from bcd.controlplane.domain.standing import ANOTHER_GENERATION
from bcd.controlplane.ports.store import StoreUnavailable
from tests.fakes.controlplane.control_plane import START, MemoryControlPlane, present
from tests.fakes.controlplane.machine import Machine
from tests.fakes.controlplane.member import Member

HOUR = timedelta(hours=1)


def calls(member: Member) -> list[HelloAnswer | RenewAnswer]:
    """What Renew and Hello say; neither must differ in what it makes of the certificate."""
    return [member.send(member.ask()), member.hello()]


def generation(plane: MemoryControlPlane, member: Member) -> int:
    return next(node.generation for node in plane.nodes() if node.id == member.node)


# ---- issued, current, retired, void


def test_the_first_hello_makes_a_certificate_current(member: Member) -> None:
    assert member.state == "issued"
    assert isinstance(member.hello(), Welcomed)
    assert member.state == "current"


def test_the_first_renewal_makes_a_certificate_current_too(member: Member) -> None:
    newer = member.renewed()
    assert (member.state, newer.state) == ("current", "issued")


def test_an_answer_alone_retires_nothing(plane: MemoryControlPlane, member: Member) -> None:
    """The node may never have got it (B02): the old certificate goes on until the new one is used."""
    member.hello()
    newer = member.renewed()
    plane.clock.pass_(hours=2)
    assert isinstance(member.hello(), Welcomed)
    again = member.renewed()
    assert {member.state, newer.state, again.state} == {"current", "issued"}


@pytest.mark.parametrize("first", [Member.hello, Member.renewed], ids=["hello", "renew"])
def test_the_first_use_of_the_new_one_retires_its_parent_and_voids_its_siblings(first: object, member: Member) -> None:
    member.hello()
    sibling, newer = member.renewed(), member.renewed()
    first(newer)  # type: ignore[operator]
    assert (member.state, sibling.state, newer.state) == ("retired", "void", "current")


def test_a_chain_of_renewals_leaves_one_current(plane: MemoryControlPlane, member: Member) -> None:
    held = member
    for _ in range(5):
        plane.clock.pass_(hours=14)
        held.hello()
        held = held.renewed()
    held.hello()
    states = list(plane.certificates(member.node).values())
    assert states == ["retired"] * 5 + ["current"]
    assert generation(plane, member) == 1


@pytest.mark.parametrize("passed_s", [0, 599, -3600], ids=str)
def test_a_retired_certificate_that_turns_up_soon_is_no_verdict(
    plane: MemoryControlPlane, member: Member, passed_s: int
) -> None:
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(seconds=passed_s)
    if passed_s < 0:
        plane.clock.at = max(plane.clock.at, newer.parsed.not_before)
    assert calls(member) == [Superseded(), Superseded()]
    assert (member.state, newer.state) == ("retired", "current")
    assert isinstance(newer.hello(), Welcomed)


# ---- copies


@pytest.mark.parametrize("call", [Member.hello, lambda member: member.send(member.ask())], ids=["hello", "renew"])
def test_a_retired_certificate_that_turns_up_late_is_a_copy(
    plane: MemoryControlPlane, member: Member, call: object
) -> None:
    thief = member.thief()
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(seconds=600)
    assert call(thief) == Dead(CLONE_SUSPECTED, plane.clock.now())  # type: ignore[operator]
    assert plane.news.told == [NodeRevoked(member.parsed.spiffe_id.node, 2, CLONE_SUSPECTED, plane.clock.now())]
    assert set(plane.certificates(member.node).values()) == {"revoked"}
    assert generation(plane, member) == 2
    for one in (newer, thief):
        assert all(isinstance(answer, Dead) and answer.reason == CLONE_SUSPECTED for answer in calls(one))
    assert generation(plane, member) == 2


def test_any_use_of_a_void_certificate_is_a_copy(plane: MemoryControlPlane, member: Member) -> None:
    """Node and thief both renew with one key (B48): whoever comes second gives both away."""
    member.hello()
    mine, stolen = member.renewed(), member.thief().renewed()
    assert isinstance(stolen.hello(), Welcomed)
    assert isinstance(mine.hello(), Dead)
    assert isinstance(stolen.hello(), Dead)
    assert generation(plane, member) == 2


def test_both_observations_stand_in_the_audit_log(plane: MemoryControlPlane, member: Member) -> None:
    thief = member.thief()
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(minutes=10)
    thief.hello()
    kind, detail = plane.audit()[-1]
    assert kind == "node.cloned"
    assert (detail["serial"], detail["state"], detail["source"]) == (member.serial, "retired", thief.source)
    assert (detail["otherSerial"], detail["otherSource"]) == (newer.serial, member.source)
    assert detail["otherFirstUsed"] == f"{START:%Y-%m-%dT%H:%M:%SZ}"


def test_a_shorter_grace_can_be_set() -> None:
    plane = MemoryControlPlane(leaf_lifetime=timedelta(seconds=20), retired_grace=timedelta(seconds=1))
    member = Member.joined(plane)
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(milliseconds=999)
    assert member.hello() == Superseded()
    plane.clock.pass_(milliseconds=1)
    assert isinstance(member.hello(), Dead)


# ---- dead ones, and those out of their time


def test_a_certificate_of_an_older_generation_is_dead_and_gives_no_verdict(plane: MemoryControlPlane) -> None:
    machine = Machine()
    member = Member.joined(plane, plane.token(node_id="rack1-7"), machine)
    newer = member.renewed()
    newer.hello()
    again = Member.joined(plane, plane.token(node_id="rack1-7"))
    assert isinstance(again.hello(), Welcomed)
    plane.clock.pass_(hours=1)
    told = [(answer.reason) for one in (member, newer) for answer in calls(one) if isinstance(answer, Dead)]
    assert told == [ANOTHER_GENERATION] * 2 + ["joined again"] * 2
    assert isinstance(again.hello(), Welcomed)
    assert generation(plane, again) == 2


def test_an_expired_certificate_is_refused_without_a_verdict(plane: MemoryControlPlane, member: Member) -> None:
    plane.clock.pass_(hours=1)
    newer = member.renewed()
    newer.hello()
    plane.clock.at = member.parsed.not_after
    assert calls(member) == [OutOfDate(), OutOfDate()]
    assert isinstance(newer.hello(), Welcomed)
    plane.clock.at = newer.parsed.not_after
    assert calls(newer) == [OutOfDate(), OutOfDate()]


def test_a_revoked_certificate_stays_so_when_it_expires(plane: MemoryControlPlane, member: Member) -> None:
    plane.revoke(member.node)
    plane.clock.pass_(days=2)
    assert [answer.reason for answer in calls(member) if isinstance(answer, Dead)] == ["operator: stolen"] * 2


def test_a_server_whose_clock_went_back_decides_nothing(plane: MemoryControlPlane, member: Member) -> None:
    plane.clock.at = member.parsed.not_before - timedelta(seconds=1)
    assert all(isinstance(answer, NotNow) for answer in calls(member))
    assert member.state == "issued"
    assert [kind for kind, _ in plane.audit()][-1] == "certificate.alarm"


# ---- what the store does not know


def forget(plane: MemoryControlPlane) -> Member:
    """A node whose certificate came after the backup that is put back."""
    backup = plane.snapshot()
    plane.clock.pass_(minutes=1)
    member = Member.joined(plane)
    member.hello()
    plane.restore(backup)
    return member


def test_an_unknown_certificate_is_an_alarm_and_no_verdict(plane: MemoryControlPlane) -> None:
    member = forget(plane)
    answers = calls(member)
    assert all(isinstance(answer, NotNow) and "bcd-controlplane restored" in answer.why for answer in answers)
    assert [kind for kind, _ in plane.audit()].count("certificate.alarm") == 1
    plane.clock.pass_(minutes=61)
    member.hello()
    assert [kind for kind, _ in plane.audit()].count("certificate.alarm") == 2
    assert plane.nodes() == ()


def test_a_known_serial_of_another_certificate_is_an_alarm(plane: MemoryControlPlane) -> None:
    other = MemoryControlPlane()
    mine, theirs = Member.joined(plane), Member.joined(other)
    assert mine.serial == theirs.serial
    assert isinstance(plane.hello(theirs.leaf), NotNow)
    assert mine.state == "issued"


def test_after_restored_it_is_adopted_with_its_node(plane: MemoryControlPlane) -> None:
    member = forget(plane)
    plane.restored()
    assert isinstance(member.hello(), Welcomed)
    (node,) = plane.nodes()
    assert (node.id, node.site, node.generation, member.state) == (member.node, "lab", 1, "current")
    assert isinstance(member.send(member.ask()), Renewed)
    assert ("certificate.adopted", {"node": node.id, "serial": member.serial, "newNode": True}) in plane.audit()


def test_an_adopted_certificate_replaces_what_the_backup_had(plane: MemoryControlPlane) -> None:
    first = Member.joined(plane)
    first.hello()
    backup = plane.snapshot()
    plane.clock.pass_(hours=14)
    second = first.renewed()
    second.hello()
    plane.clock.pass_(hours=14)
    third = second.renewed()
    third.hello()
    plane.restore(backup)
    plane.restored()
    assert isinstance(third.hello(), Welcomed)
    assert (first.state, third.state) == ("retired", "current")
    # Issued before the newest known: it may be a copy, or our loss. No verdict.
    assert isinstance(second.hello(), NotNow)
    assert isinstance(third.hello(), Welcomed)


@pytest.mark.parametrize("order", ["revoked, then restored", "restored, then revoked"])
@pytest.mark.parametrize("hours", [1, 30], ids=["known one in date", "known one long over"])
def test_a_certificate_the_backup_does_not_know_dies_with_its_node(
    plane: MemoryControlPlane, order: str, hours: int
) -> None:
    """Revoked before the loss, forgotten with it, and revoked again by the operator: not adopted after that."""
    first = Member.joined(plane)
    first.hello()
    backup = plane.snapshot()
    member = first
    for _ in range(2):
        plane.clock.pass_(hours=hours / 2)
        member = member.renewed()
        member.hello()
    plane.revoke(member.node, "stolen")
    plane.restore(backup)
    plane.clock.pass_(minutes=1)
    if order == "revoked, then restored":
        plane.revoke(member.node, "stolen")
        plane.restored()
    else:
        plane.restored()
        plane.revoke(member.node, "stolen")
    assert isinstance(member.hello(), Dead)
    assert isinstance(first.hello(), Dead | OutOfDate)


@pytest.mark.parametrize("used", [True, False])
def test_a_renewal_from_what_the_backup_knew_shows_a_copy_once_it_is_used(
    plane: MemoryControlPlane, used: bool
) -> None:
    """The thief has the certificate the backup knows, and comes first; the node has the one that was lost."""
    old = Member.joined(plane)
    old.hello()
    backup = plane.snapshot()
    plane.clock.pass_(hours=14)
    node = old.renewed()
    node.hello()
    plane.restore(backup)
    plane.restored()
    plane.clock.pass_(minutes=1)
    thief = old.renewed()
    if not used:
        # Whoever asked for it may never have had the answer.
        assert isinstance(node.hello(), NotNow)
        assert not any(kind == "node.cloned" for kind, _ in plane.audit())
        return
    assert isinstance(thief.hello(), Welcomed)
    assert isinstance(node.hello(), Dead)
    assert isinstance(thief.hello(), Dead)
    assert any(kind == "node.cloned" for kind, _ in plane.audit())


def test_a_node_that_joined_anew_after_the_restore_is_no_copy_of_its_past(plane: MemoryControlPlane) -> None:
    """A process that still has the certificate of before is told nothing, and takes nothing from the new one."""
    first = Member.joined(plane, plane.token(node_id="rack1-7"))
    first.hello()
    backup = plane.snapshot()
    plane.clock.pass_(hours=14)
    lost = first.renewed()
    lost.hello()
    plane.restore(backup)
    plane.restored()
    plane.clock.pass_(minutes=1)
    anew = Member.joined(plane, plane.token(node_id="rack1-7"))
    anew.hello()
    assert isinstance(lost.hello(), Dead)
    assert isinstance(anew.hello(), Welcomed)


def test_nor_is_one_that_the_backup_did_not_know_at_all(plane: MemoryControlPlane) -> None:
    """Nothing of its past was there to be revoked when it joined anew."""
    backup = plane.snapshot()
    lost = Member.joined(plane, plane.token(node_id="rack1-7"))
    lost.hello()
    plane.restore(backup)
    plane.restored()
    plane.clock.pass_(minutes=1)
    anew = Member.joined(plane, plane.token(node_id="rack1-7"))
    anew.hello()
    assert isinstance(lost.hello(), NotNow)
    assert isinstance(anew.hello(), Welcomed)


def test_a_join_in_the_second_of_a_renewal_is_not_older_than_it(plane: MemoryControlPlane) -> None:
    """The renewal is dated a second later than it was, so that it outlives the certificate before it."""
    first = Member.joined(plane, plane.token(node_id="rack1-7"))
    first.hello()
    plane.clock.pass_(seconds=0.3)
    second = first.renewed()
    second.hello()
    backup = plane.snapshot()
    plane.clock.pass_(seconds=0.3)
    anew = Member.joined(plane, plane.token(node_id="rack1-7"))
    plane.restore(backup)
    plane.restored()
    assert isinstance(anew.hello(), Welcomed)


def test_a_certificate_issued_after_the_restore_elsewhere_is_not_adopted(plane: MemoryControlPlane) -> None:
    plane.restored()
    plane.clock.pass_(hours=1)
    member = forget(plane)
    assert isinstance(member.hello(), NotNow)


def test_what_was_issued_in_the_instant_of_the_backup_is_adopted(plane: MemoryControlPlane) -> None:
    first = Member.joined(plane)
    first.hello()
    backup = plane.snapshot()
    second = first.renewed()
    second.hello()
    plane.restore(backup)
    plane.restored()
    # The renewal's dates are one second later; a join anew in the same second would have the same.
    assert isinstance(second.hello(), Welcomed)
    plane.restore(backup)
    plane.restored()
    again = Member.joined(plane, plane.token(node_id=first.node))
    plane.restore(backup)
    plane.restored()
    assert again.parsed.not_before == first.parsed.not_before
    assert isinstance(again.hello(), Welcomed)


def test_an_expired_certificate_is_not_adopted(plane: MemoryControlPlane) -> None:
    member = forget(plane)
    plane.restored()
    plane.clock.at = member.parsed.not_after
    assert calls(member) == [OutOfDate(), OutOfDate()]
    assert plane.nodes() == ()


def test_a_certificate_that_contradicts_the_node_is_not_adopted(plane: MemoryControlPlane) -> None:
    """After the backup the id went to another site."""
    Member.joined(plane, plane.token(node_id="rack1-7")).hello()
    backup = plane.snapshot()
    plane.clock.pass_(minutes=1)
    plane.delete("rack1-7")
    moved = Member.joined(plane, plane.token(site="barn", node_id="rack1-7"))
    moved.hello()
    plane.restore(backup)
    plane.restored()
    (answer,) = {type(answer) for answer in calls(moved)}
    assert answer is NotNow
    assert list(plane.certificates("rack1-7").values()) == ["current"]


def test_an_adopted_node_is_not_of_the_generations_of_one_that_was_deleted(plane: MemoryControlPlane) -> None:
    gone = Member.joined(plane, plane.token(node_id="rack1-7"))
    gone.hello()
    plane.delete("rack1-7")
    backup = plane.snapshot()
    plane.clock.pass_(minutes=1)
    member = Member.joined(plane, plane.token(node_id="rack1-7"))
    plane.restore(backup)
    plane.restored()
    assert isinstance(member.hello(), Welcomed)
    assert generation(plane, member) == 2
    assert isinstance(gone.hello(), Dead)


def test_a_store_that_contradicts_itself_decides_nothing(plane: MemoryControlPlane, member: Member) -> None:
    (node,) = plane.snapshot().nodes.all()
    plane.store.change(lambda records: records.nodes.put(replace(node, generation=0)))
    assert [type(answer) for answer in calls(member)] == [NotNow, NotNow]
    plane.store.change(lambda records: records.nodes.remove(node.id))
    assert [type(answer) for answer in calls(member)] == [NotNow, NotNow]
    assert plane.audit()[-1][0] == "certificate.alarm"


def test_alarms_are_remembered_for_so_many_certificates_and_no_more(plane: MemoryControlPlane, member: Member) -> None:
    alarms, records = Alarms(plane.log), plane.snapshot()
    shown, now = present(member.leaf), plane.clock.now()
    for number in range(MAX_REMEMBERED + 1):
        alarms.raise_(records, replace(shown, serial=f"{number:032x}"), "unknown", now)()
    before = len(records.audit.rows)
    alarms.raise_(records, replace(shown, serial=f"{1:032x}"), "unknown", now)()
    assert len(records.audit.rows) == before
    alarms.raise_(records, replace(shown, serial=f"{0:032x}"), "unknown", now)()
    assert len(records.audit.rows) == before + 1


def test_restored_raises_the_bundle_above_what_a_node_may_hold(plane: MemoryControlPlane) -> None:
    assert plane.restored().bundle_version == 1001
    assert plane.restored(bundle_above=5000).bundle_version == 5001


def test_a_node_that_was_deleted_before_the_backup_stays_dead(plane: MemoryControlPlane) -> None:
    member = Member.joined(plane)
    member.hello()
    plane.delete(member.node)
    plane.restore(plane.snapshot())
    plane.restored()
    assert isinstance(member.hello(), Dead)


# ---- the store fails


def test_a_use_that_was_not_stored_changes_nothing_and_tells_nobody(plane: MemoryControlPlane, member: Member) -> None:
    thief = member.thief()
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(minutes=10)
    told = len(plane.log.lines)
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        thief.hello()
    assert plane.news.told == []
    assert len(plane.log.lines) == told
    assert isinstance(newer.hello(), Welcomed)


def test_an_alarm_that_was_not_stored_is_raised_again(plane: MemoryControlPlane) -> None:
    member = forget(plane)
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        member.hello()
    member.hello()
    assert [kind for kind, _ in plane.audit()].count("certificate.alarm") == 1
