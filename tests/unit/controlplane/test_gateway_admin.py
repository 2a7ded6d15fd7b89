"""What the operator does about nodes and trust: what it changes, whom it reaches, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from bcd.controlplane.adapters.files import config
from bcd.controlplane.adapters.pki.join_keys import SigningKey
from bcd.controlplane.domain import admin, admin_eks
from bcd.controlplane.domain.failures import NotPermitted, Usage
from bcd.controlplane.domain.gateway import Dead, Welcomed
from bcd.controlplane.domain.joining import Refused
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.news import BundleChanged, NodeRevoked, RenewalDue
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.trust import MAX_ROOTS, Approver, TrustContent
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, trust_domain
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as pb
from bcd.protocol.pki import ecdsa, trust_bundle
from tests.fakes.controlplane.control_plane import START, MemoryControlPlane
from tests.fakes.controlplane.machine import Machine, new_key
from tests.fakes.controlplane.member import Member


def spki() -> bytes:
    return ecdsa.spki_of(new_key().public_key())


def trust(plane: MemoryControlPlane, command: admin.Command) -> admin.TrustView:
    return cast(admin.TrustView, plane.admin(command))


# ---- nodes


def test_revoking_kills_every_certificate_and_the_generation(plane: MemoryControlPlane, member: Member) -> None:
    newer, issued = member.renewed(), member.renewed()
    newer.hello()
    view = plane.admin(admin.RevokeNode(member.node, " stolen "))
    assert view == admin.RevokedView(member.node, 2)
    assert set(plane.certificates(member.node).values()) == {"revoked"}
    for one in (member, newer, issued):
        assert one.hello() == Dead("operator: stolen", plane.clock.now())
    assert plane.news.told == [NodeRevoked(NodeId(member.node), 2, "operator: stolen", plane.clock.now())]
    assert plane.audit()[-1] == ("node.revoked", {"node": member.node, "reason": "operator: stolen"})


def test_a_machine_that_may_come_back_by_its_tpm_is_told_of(plane: MemoryControlPlane, member: Member) -> None:
    ek = f"sha256:{'e' * 64}"
    node = plane.store.read(lambda r: r.nodes.get(NodeId(member.node)))
    assert node is not None
    plane.store.change(lambda r: r.nodes.put(replace(node, ek=ek))).result()
    assert plane.admin(admin.RevokeNode(member.node, "stolen")) == admin.RevokedView(member.node, 2, ek)
    plane.admin(admin_eks.DenyEk(ek, None))
    assert plane.admin(admin.RevokeNode(member.node, "stolen")) == admin.RevokedView(member.node, 2)
    plane.admin(admin_eks.RemoveEk(ek))
    assert plane.admin(admin.DeleteNode(member.node)) == admin.DeletedView(member.node, ek)


def test_revoking_twice_is_once(plane: MemoryControlPlane, member: Member) -> None:
    plane.revoke(member.node, "stolen")
    plane.clock.pass_(hours=1)
    assert plane.admin(admin.RevokeNode(member.node, "again")) == admin.RevokedView(member.node, 2)
    assert len(plane.news.told) == 1
    assert [kind for kind, _ in plane.audit()].count("node.revoked") == 1


def test_a_certificate_nobody_used_and_an_expired_one_are_revoked_too(
    plane: MemoryControlPlane, member: Member
) -> None:
    newer = member.renewed()
    plane.clock.pass_(days=2)
    plane.revoke(member.node)
    assert (member.state, newer.state) == ("revoked", "revoked")


def test_a_revoked_machine_comes_back_with_a_token_that_lets_it(plane: MemoryControlPlane) -> None:
    machine = Machine()
    member = Member.joined(plane, plane.token(node_id="rack1-7"), machine)
    plane.revoke(member.node)
    again = Member.joined(plane, plane.token(node_id="rack1-7"))
    assert isinstance(again.hello(), Welcomed)
    assert isinstance(member.hello(), Dead)
    (node,) = plane.nodes()
    assert node.generation == 3


def test_a_deleted_node_is_gone_and_its_certificates_are_dead(plane: MemoryControlPlane, member: Member) -> None:
    member.hello()
    assert plane.admin(admin.DeleteNode(member.node)) == admin.DeletedView(member.node)
    assert plane.nodes() == ()
    assert member.hello() == Dead("deleted", plane.clock.now())
    assert isinstance(plane.news.told[0], NodeRevoked)
    assert plane.audit()[-1][0] == "node.deleted"
    with pytest.raises(Usage, match=f"no node {member.node}"):
        plane.delete(member.node)


def test_a_revoked_node_can_be_deleted(plane: MemoryControlPlane, member: Member) -> None:
    plane.revoke(member.node)
    plane.delete(member.node)
    assert plane.audit()[-1][0] == "node.deleted"
    assert plane.nodes() == ()


def test_a_node_that_gets_a_deleted_ones_id_is_not_of_its_generations(plane: MemoryControlPlane) -> None:
    first = Member.joined(plane, plane.token(node_id="rack1-7"))
    first.hello()
    plane.clock.pass_(days=2)
    old = first.serial
    plane.delete("rack1-7")
    second = Member.joined(plane, plane.token(node_id="rack1-7"))
    assert isinstance(second.hello(), Welcomed)
    assert isinstance(first.hello(), Dead)
    (node,) = plane.nodes()
    assert (node.generation, plane.certificates("rack1-7")[old]) == (2, "revoked")


def test_a_deleted_nodes_machine_joins_with_a_plain_token(plane: MemoryControlPlane) -> None:
    claims = Claims(product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="BRD-1")
    member = Member.joined(plane, machine=Machine(claims=claims))
    known = Machine(claims=claims)
    assert isinstance(plane.join(known.request(plane.recipient, plane.token())), Refused)
    plane.delete(member.node)
    again = Member.joined(plane, machine=Machine(claims=claims))
    assert again.node != member.node


def test_a_renewal_is_asked_of_one_or_of_all(plane: MemoryControlPlane, member: Member) -> None:
    other = Member.joined(plane)
    plane.news.up.add(NodeId(member.node))
    assert plane.admin(admin.AskRenewal(member.node, "moved")) == admin.RenewalsView(1, 1)
    assert plane.news.told == [RenewalDue(NodeId(member.node), "moved")]
    assert plane.admin(admin.AskRenewal(None, "all")) == admin.RenewalsView(2, 1)
    answer = other.hello()
    assert isinstance(answer, Welcomed) and answer.renew_now == "all"
    plane.clock.pass_(seconds=1)
    newer = other.renewed()
    answer = newer.hello()
    assert isinstance(answer, Welcomed) and answer.renew_now == ""
    asked = {node.id: node.renewal_asked is not None for node in plane.nodes()}
    assert asked == {member.node: True, other.node: False}


def test_no_renewal_is_asked_of_a_node_that_is_revoked(plane: MemoryControlPlane, member: Member) -> None:
    other = Member.joined(plane)
    plane.revoke(other.node, "stolen")
    with pytest.raises(NotPermitted, match=rf"node {other.node} is revoked \(operator: stolen\)"):
        plane.admin(admin.AskRenewal(other.node, "moved"))
    plane.news.told.clear()
    assert plane.admin(admin.AskRenewal(None, "all")) == admin.RenewalsView(1, 0)
    assert plane.news.told == [RenewalDue(NodeId(member.node), "all")]


def test_a_renewal_is_asked_of_a_revoked_node_that_joined_again(plane: MemoryControlPlane) -> None:
    first = Member.joined(plane, plane.token(node_id="rack1-7"))
    plane.revoke(first.node)
    assert Member.joined(plane, plane.token(node_id="rack1-7")).node == first.node
    assert plane.admin(admin.AskRenewal(first.node, "moved")) == admin.RenewalsView(1, 0)


@pytest.mark.parametrize("reason", ["", " ", "x" * 201, "two\nlines", "\x1b[31m"], ids=repr)
def test_a_reason_is_one_printable_line(plane: MemoryControlPlane, member: Member, reason: str) -> None:
    for command in (admin.RevokeNode(member.node, reason), admin.AskRenewal(None, reason)):
        with pytest.raises(Usage, match="--reason is 1 to 200 printable characters"):
            plane.admin(command)
    assert member.state == "issued"


@pytest.mark.parametrize(
    "command", [admin.RevokeNode("n-none", "x"), admin.DeleteNode("n-none"), admin.AskRenewal("n-none", "x")], ids=str
)
def test_a_node_that_is_not_there_is_said_so(plane: MemoryControlPlane, command: admin.Command) -> None:
    with pytest.raises(Usage, match="no node n-none"):
        plane.admin(command)


def test_a_node_that_joins_again_has_its_old_sessions_told(plane: MemoryControlPlane) -> None:
    Member.joined(plane, plane.token(node_id="rack1-7"))
    assert plane.news.told == []
    Member.joined(plane, plane.token(node_id="rack1-7"))
    assert plane.news.told == [NodeRevoked(NodeId("rack1-7"), 2, "joined again", plane.clock.now())]


def test_a_join_that_is_not_stored_tells_nobody(plane: MemoryControlPlane) -> None:
    Member.joined(plane, plane.token(node_id="rack1-7"))
    token = plane.token(node_id="rack1-7")
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        Member.joined(plane, token)
    assert plane.news.told == []


# ---- trust


def test_a_root_makes_a_new_version_that_nodes_can_open(plane: MemoryControlPlane) -> None:
    key = spki()
    view = trust(plane, admin.AddRoot(key.hex()))
    assert (view.version, view.command_roots) == (2, (str(Pin.of(key)),))
    (item,) = plane.news.told
    assert isinstance(item, BundleChanged) and item.bundle.version == 2
    pins = Pins((Pin(plane.signing_pin),))
    opened = trust_bundle.open_serialized(item.bundle.signed, pins, trust_domain("example.test"))
    assert (opened.version, opened.roots) == (2, (key,))
    gone = trust(plane, admin.RemoveRoot(str(Pin.of(key))))
    assert (gone.version, gone.command_roots) == (3, ())


def test_what_changes_nothing_makes_no_version(plane: MemoryControlPlane) -> None:
    key = spki()
    trust(plane, admin.AddRoot(key.hex()))
    assert trust(plane, admin.AddRoot(key.hex())).version == 2
    trust(plane, admin.AddApprover("Änne", key.hex()))
    assert trust(plane, admin.AddApprover("Änne", key.hex())).version == 3
    assert trust(plane, admin.ShowTrust()).version == 3
    assert len(plane.news.told) == 2
    assert [kind for kind, _ in plane.audit()].count("trust.changed") == 2


def test_approvers_come_and_go_and_roots_stay(plane: MemoryControlPlane) -> None:
    root, one, two = spki(), spki(), spki()
    trust(plane, admin.AddRoot(root.hex()))
    trust(plane, admin.AddApprover("Änne", one.hex()))
    view = trust(plane, admin.AddApprover("Bo", two.hex()))
    assert [(a.name, a.key_pin) for a in view.approvers] == [("Änne", str(Pin.of(one))), ("Bo", str(Pin.of(two)))]
    view = trust(plane, admin.RemoveApprover("Änne"))
    assert [a.name for a in view.approvers] == ["Bo"]
    assert view.command_roots == (str(Pin.of(root)),)


def test_a_bundle_says_all_that_it_holds() -> None:
    content = TrustContent((spki(),), (Approver("Änne", spki()),), quorum=1)
    signing = SigningKey(new_key())
    signed = signing.trust_bundle(trust_domain("example.test"), 7, START, content)
    assert signing.content(signed) == content
    bundle = pb.TrustBundle.FromString(pb.SignedStatement.FromString(signed).payload)
    assert (bundle.version, bundle.trust_domain) == (7, "example.test")
    (approver,) = bundle.approvers
    assert approver.kid == ecdsa.thumbprint(ecdsa.public_key(approver.spki))


def test_one_key_is_one_approver(plane: MemoryControlPlane) -> None:
    key = spki()
    trust(plane, admin.AddApprover("Änne", key.hex()))
    for command in (admin.AddApprover("Anne", key.hex()), admin.AddApprover("Änne", spki().hex())):
        with pytest.raises(NotPermitted) as caught:
            plane.admin(command)
        assert caught.value.message is Message.APPROVER_KNOWN


def test_a_bundle_has_room_for_as_many_roots_as_a_node_takes(plane: MemoryControlPlane) -> None:
    assert MAX_ROOTS == trust_bundle.MAX_ROOTS
    for number in range(MAX_ROOTS):
        trust(plane, admin.AddRoot(spki().hex()))
        trust(plane, admin.AddApprover(f"approver {number}", spki().hex()))
    for command in (admin.AddRoot(spki().hex()), admin.AddApprover("late", spki().hex())):
        with pytest.raises(NotPermitted) as caught:
            plane.admin(command)
        assert caught.value.message is Message.BUNDLE_FULL


@pytest.mark.parametrize(
    "command",
    [
        admin.AddRoot("00"),
        admin.AddRoot("not hexadecimal"),
        admin.AddApprover("Bo", "00"),
        admin.AddApprover("", "aa"),
        admin.AddApprover(" Bo", "aa"),
        admin.AddApprover("x" * 65, "aa"),
        admin.AddApprover("B\no", "aa"),
        admin.RemoveRoot("sha256:00"),
        admin.RemoveRoot("sha256:" + "00" * 32),
        admin.RemoveApprover("Bo"),
        admin.Restored(-1),
        admin.Restored(2**63 - 1),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(plane: MemoryControlPlane, command: Any) -> None:
    with pytest.raises(Usage):
        plane.admin(command)
    assert trust(plane, admin.ShowTrust()).version == 1
    assert plane.news.told == []


def test_restored_tells_the_sessions_its_bundle(plane: MemoryControlPlane) -> None:
    key = spki()
    trust(plane, admin.AddRoot(key.hex()))
    view = plane.restored()
    assert view.bundle_version == 1002
    last = plane.news.told[-1]
    assert isinstance(last, BundleChanged) and last.bundle.version == 1002
    assert trust(plane, admin.ShowTrust()).command_roots == (str(Pin.of(key)),)
    assert plane.audit()[-1] == ("store.restored", {"version": 1002})


# ---- the setting


def settings(text: str) -> Settings:
    return config.decode(
        f'trust_domain = "example.test"\nhosts = ["localhost"]\nleaf_lifetime = "24h"\n{text}\n'.encode()
    )


def test_the_grace_is_ten_minutes_or_less() -> None:
    assert settings("").retired_grace == timedelta(minutes=10)
    assert settings('retired_grace = "1s"').retired_grace == timedelta(seconds=1)
    made = Settings(trust_domain("example.test"), ("localhost",), timedelta(hours=1), timedelta(seconds=90))
    assert config.decode(config.encode(made)) == made


@pytest.mark.parametrize("value", ['"0s"', '"11m"', '"soon"', "600", "true"])
def test_any_other_grace_is_refused(value: str) -> None:
    with pytest.raises(config.BadConfig, match=r"^retired_grace: "):
        settings(f"retired_grace = {value}")
