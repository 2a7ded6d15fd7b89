"""Renew: what is checked, what is answered again, how often it may be asked, and what a new certificate says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from bcd.controlplane.app.renew import WOULD_END_SOONER
from bcd.controlplane.domain import admin_eks, tpms
from bcd.controlplane.domain.gateway import Declined, Full, Malformed, NotNow, Presented, Renewed, RenewRequest
from bcd.controlplane.domain.quota import quota, wait_for_quota
from bcd.controlplane.ports.store import Records, StoreUnavailable
from bcd.domain.model.names import NodeId
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ecdsa, statements
from bcd.protocol.pki.statements import Purpose
from tests.fakes.controlplane.control_plane import GREETING, MemoryControlPlane, present
from tests.fakes.controlplane.machine import Machine, new_key
from tests.fakes.controlplane.member import Asked, Member
from tests.fakes.controlplane.rows import certificate as row


@pytest.fixture
def member(plane: MemoryControlPlane) -> Member:
    made = Member.joined(plane)
    plane.clock.pass_(hours=14)
    return made


def rows(plane: MemoryControlPlane, member: Member) -> int:
    return len(plane.certificates(member.node))


# ---- whose TPM is denied


EK = f"sha256:{'e' * 64}"


def of_tpm(plane: MemoryControlPlane, member: Member) -> None:
    """Its node joined by the endorsement key EK."""

    def work(r: Records) -> None:
        node = r.nodes.get(NodeId(member.node))
        assert node is not None
        r.nodes.put(replace(node, ek=EK))

    plane.store.change(work).result()


def test_a_node_whose_endorsement_key_is_denied_renews_no_more_until_it_is_allowed(
    plane: MemoryControlPlane, member: Member
) -> None:
    of_tpm(plane, member)
    plane.admin(admin_eks.AllowEk(EK, "lab", "node", None, ""))
    asked = member.ask()
    assert isinstance(member.send(asked), Renewed)
    plane.admin(admin_eks.DenyEk(EK, None))
    # An answer that was given before is not given again either.
    assert member.send(asked) == Declined("the endorsement key of this node's TPM is denied")
    assert isinstance(member.send(member.ask()), Declined)
    assert plane.log.lines[-1][:2] == ("warning", "renewal refused: the endorsement key is denied")
    assert rows(plane, member) == 2
    plane.admin(admin_eks.AllowEk(EK, "lab", "node", None, ""))
    assert isinstance(member.send(asked), Renewed)


def test_a_node_whose_tpm_showed_a_denied_key_renews_no_more(plane: MemoryControlPlane, member: Member) -> None:
    """Whichever of the hashes that bcd tpm identify shows is denied."""
    of_tpm(plane, member)
    other = f"sha256:{'0' * 64}"
    plane.store.change(lambda r: tpms.remember(r, "000b", EK, [EK, other])).result()
    plane.admin(admin_eks.DenyEk(other, None))
    assert isinstance(member.send(member.ask()), Declined)
    assert plane.log.lines[-1][2]["ek"] == other
    plane.admin(admin_eks.RemoveEk(other))
    assert isinstance(member.send(member.ask()), Renewed)


def test_a_token_for_a_node_whose_tpm_is_denied_makes_it_another_machines(plane: MemoryControlPlane) -> None:
    member = Member.joined(plane, plane.token(node_id="n-1"))
    of_tpm(plane, member)
    plane.admin(admin_eks.DenyEk(EK, None))
    another = Member.joined(plane, plane.token(node_id="n-1"))
    assert [node.ek for node in plane.nodes()] == [""]
    assert isinstance(another.send(another.ask()), Renewed)


def test_a_denied_key_of_another_node_stops_nobody(plane: MemoryControlPlane, member: Member) -> None:
    plane.admin(admin_eks.DenyEk(EK, None))
    assert isinstance(member.send(member.ask()), Renewed)
    of_tpm(plane, member)
    plane.admin(admin_eks.RemoveEk(EK))
    plane.admin(admin_eks.DenyEk("0" * 64, None))
    assert isinstance(member.send(member.ask()), Renewed)


# ---- what it says


def test_a_renewed_certificate_is_the_same_nodes_with_the_next_key(plane: MemoryControlPlane, member: Member) -> None:
    newer = member.renewed()
    leaf, old = newer.parsed, member.parsed
    assert (leaf.spiffe_id, leaf.role, leaf.ak_name) == (old.spiffe_id, old.role, None)
    assert leaf.spki == ecdsa.spki_of(newer.key.public_key()) != old.spki
    assert leaf.lifetime == plane.settings.leaf_lifetime
    assert leaf.not_before <= plane.clock.now() - timedelta(minutes=5)
    (opened,) = newer.checked
    assert opened.server_time == plane.clock.now()
    assert opened.trust.version == 1
    assert len(opened.chain) == 2


def test_the_bundle_of_the_moment_comes_with_it(plane: MemoryControlPlane, member: Member) -> None:
    plane.restored()
    assert member.renewed().checked[0].trust.version == 1001


def test_what_the_client_takes_the_time_to_be_is_recorded_and_decides_nothing(
    plane: MemoryControlPlane, member: Member
) -> None:
    clock, plane.clock.at = plane.clock.at, datetime.fromisoformat("1970-01-01T00:00:07+00:00")
    asked = member.ask()
    plane.clock.at = clock
    assert isinstance(member.send(asked), Renewed)
    kind, detail = plane.audit()[-1]
    assert (kind, detail["clientTime"], detail["parent"]) == ("node.renewed", "1970-01-01T00:00:07Z", member.serial)


def test_a_ramdisks_certificate_stays_a_short_one(plane: MemoryControlPlane) -> None:
    machine = Machine()
    answer: Any = plane.join(machine.request(plane.recipient, plane.token(role="ramdisk"), role="ramdisk"))
    leaf = machine.check(answer.signed, plane.signing_pin, role=present_role("ramdisk")).leaf
    newer = Member(plane, leaf.der, machine.key).renewed()
    assert newer.parsed.lifetime == timedelta(hours=2)


def present_role(name: str) -> Any:
    from bcd.domain.model.names import role

    return role(name)


# ---- what is refused


def test_a_chain_that_begins_with_another_certificate_is_malformed(plane: MemoryControlPlane, member: Member) -> None:
    asked, other = member.ask(), Member.joined(plane)
    for chain in ((), (other.leaf,), (plane.issuing.der, member.leaf)):
        answer = plane.renew(member.leaf, asked.csr, asked.pop, chain=chain)
        assert answer == Malformed("the chain does not begin with the certificate of this connection")


def test_a_request_that_is_none_is_malformed(member: Member) -> None:
    asked = member.ask()
    for csr in (b"", asked.csr[:-1], asked.csr + b"\0", asked.csr[:-1] + bytes([asked.csr[-1] ^ 1])):
        answer = member.send(replace(asked, csr=csr))
        assert isinstance(answer, Malformed) and answer.why.startswith("the certificate request is ")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"csr": b"another"}, "the proof is for another request"),
        ({"leaf": b"another"}, "the proof is for another certificate"),
        ({"signer": new_key()}, "the proof is by another key than the certificate's"),
    ],
    ids=["request", "leaf", "signer"],
)
def test_a_proof_of_something_else_is_malformed(member: Member, changes: dict[str, Any], why: str) -> None:
    assert member.send(member.ask(**changes)) == Malformed(why)


def test_a_proof_that_is_none_is_malformed(member: Member) -> None:
    asked = member.ask()
    flipped = bytearray(asked.pop)
    flipped[-100] ^= 1
    for pop in (b"", b"\xff", asked.pop[:-1], bytes(flipped)):
        answer = member.send(replace(asked, pop=pop))
        assert isinstance(answer, Malformed) and answer.why.startswith("the proof ")


def test_a_proof_with_another_purpose_is_malformed(member: Member) -> None:
    """A statement the node key signs for something else must not renew."""
    asked = member.ask()
    payload = statements.pb.SignedStatement.FromString(asked.pop).payload
    other = statements.make(
        Purpose.DISCOVERY_ASSERTION, payload, member.key.public_key(), lambda message: ecdsa.sign(member.key, message)
    )
    other.purpose = Purpose.RENEW_POP.value
    answer = member.send(replace(asked, pop=other.SerializeToString()))
    assert answer == Malformed("the proof does not verify: the signature is not one for renew-pop")


def test_a_malformed_request_is_no_use_of_the_certificate(member: Member) -> None:
    member.send(replace(member.ask(), csr=b""))
    assert member.state == "issued"


def test_a_key_that_was_certified_before_is_declined(plane: MemoryControlPlane, member: Member) -> None:
    assert isinstance(member.send(member.ask(member.key)), Declined)
    newer = member.renewed()
    newer.hello()
    plane.clock.pass_(hours=14)
    for key in (member.key, newer.key):
        assert isinstance(newer.send(newer.ask(key)), Declined)
    # The same next key in another request: its first certificate is the only one it gets.
    asked = newer.ask()
    newer.take(asked, newer.send(asked))
    assert isinstance(newer.send(newer.ask(asked.key)), Declined)


def test_a_certificate_that_names_an_attestation_key_is_never_renewed_without_its_proof(
    plane: MemoryControlPlane, member: Member
) -> None:
    asked = member.ask()
    named = Presented(replace(member.parsed, ak_name=b"\x00\x0b" + b"a" * 32), member.serial, "192.0.2.1")
    answer = plane.gateway.renew(named, RenewRequest(asked.csr, (member.leaf,), asked.pop)).result()
    assert isinstance(answer, Declined) and "attestation key" in answer.why
    assert rows(plane, member) == 1


def test_no_certificate_ends_before_the_one_it_replaces(plane: MemoryControlPlane, member: Member) -> None:
    newer = member.renewed()
    plane.clock.pass_(minutes=-4)
    later = newer.renewed()
    assert later.parsed.not_after == newer.parsed.not_after + timedelta(seconds=1)
    assert later.parsed.not_before <= plane.clock.now()
    plane.clock.at = newer.parsed.not_before
    assert newer.send(newer.ask()) == NotNow(WOULD_END_SOONER)
    assert plane.audit()[-1][0] == "certificate.alarm"


# ---- an answer that may have been lost


def test_the_same_request_gets_the_same_answer(plane: MemoryControlPlane, member: Member) -> None:
    asked = member.ask()
    first = member.send(asked)
    plane.clock.pass_(minutes=30)
    again = member.send(asked)
    assert isinstance(first, Renewed) and isinstance(again, Renewed)
    assert again.signed == first.signed
    assert again.server_time == plane.clock.now()
    assert rows(plane, member) == 2
    member.take(asked, again).hello()


def test_another_request_gets_another_certificate(plane: MemoryControlPlane, member: Member) -> None:
    first, second = member.renewed(), member.renewed()
    assert first.leaf != second.leaf
    assert rows(plane, member) == 3


def test_an_answer_is_not_repeated_to_another_certificate(plane: MemoryControlPlane, member: Member) -> None:
    asked = member.ask()
    member.take(asked, member.send(asked))
    other = Member.joined(plane)
    stolen = other.ask(asked.key)
    assert isinstance(other.send(Asked(stolen.key, asked.csr, other.ask(csr=asked.csr).pop)), Declined)


def test_a_renewal_that_was_not_stored_is_none(plane: MemoryControlPlane, member: Member) -> None:
    asked = member.ask()
    plane.store.fail_next = True
    with pytest.raises(StoreUnavailable):
        member.send(asked)
    assert rows(plane, member) == 1
    member.take(asked, member.send(asked)).hello()
    assert rows(plane, member) == 2


# ---- the quota


@pytest.mark.parametrize(
    ("lifetime", "most"),
    [
        (timedelta(hours=24), 6),
        (timedelta(hours=1), 6),
        (timedelta(minutes=30), 12),
        (timedelta(seconds=40), 540),
        (timedelta(seconds=20), 1080),
    ],
    ids=str,
)
def test_six_an_hour_and_six_in_a_leafs_life(lifetime: timedelta, most: int) -> None:
    assert quota(lifetime) == most


def test_the_seventh_waits_for_the_first_to_be_an_hour_old(plane: MemoryControlPlane, member: Member) -> None:
    asked = member.ask()
    answer = member.send(asked)
    for _ in range(5):
        plane.clock.pass_(minutes=1)
        member.renewed()
    assert member.send(member.ask()) == Full(timedelta(minutes=55))
    # An answer that was given is given again, whatever the quota says.
    again = member.send(asked)
    assert isinstance(again, Renewed) and isinstance(answer, Renewed) and again.signed == answer.signed
    plane.clock.pass_(minutes=54, seconds=59, milliseconds=500)
    assert member.send(member.ask()) == Full(timedelta(seconds=1))
    plane.clock.pass_(seconds=1)
    member.renewed()
    assert isinstance(member.send(member.ask()), Full)


def test_a_quota_that_became_smaller_waits_for_as_many_as_are_too_many(plane: MemoryControlPlane) -> None:
    """`leaf_lifetime` was raised: there may be more renewals in the hour than are allowed now."""
    now = plane.clock.now()
    records = plane.snapshot()
    for number in range(10):
        issued = now - timedelta(minutes=50 - number)
        records.certificates.put(row(f"{number:032x}", issued=issued, parent="0a" * 16))
    wait = wait_for_quota(records, row().node_id, timedelta(hours=24), now)
    assert wait == timedelta(minutes=14)
    ahead = wait_for_quota(records, row().node_id, timedelta(hours=24), now - timedelta(days=1))
    assert ahead == timedelta(hours=1)


def test_answers_are_kept_until_their_leaf_ends(plane: MemoryControlPlane, member: Member) -> None:
    for _ in range(5):
        member = member.renewed()
        plane.clock.pass_(hours=14)
    assert len(plane.snapshot().answers.rows) == 2


def test_a_renewal_shows_that_the_node_is_there(plane: MemoryControlPlane, member: Member) -> None:
    member.renewed()
    (node,) = plane.nodes()
    assert node.last_seen == plane.clock.now()
    plane.clock.pass_(minutes=1)
    plane.hello(member.leaf, greeting=replace(GREETING, daemon_version="0.2.0"))
    (node,) = plane.nodes()
    assert (node.last_seen, node.daemon_version) == (plane.clock.now(), "0.2.0")


def test_a_quota_is_each_nodes_own(plane: MemoryControlPlane, member: Member) -> None:
    for _ in range(6):
        member.renewed()
    other = Member.joined(plane)
    other.renewed()
    assert isinstance(member.send(member.ask()), Full)


def test_a_join_counts_towards_no_quota(plane: MemoryControlPlane) -> None:
    machine = Member.joined(plane)
    for _ in range(6):
        machine.renewed()
    assert isinstance(machine.send(machine.ask()), Full)


def test_an_audit_row_names_both_certificates_and_no_secret(plane: MemoryControlPlane, member: Member) -> None:
    newer = member.renewed()
    _, detail = plane.audit()[-1]
    assert (detail["node"], detail["serial"], detail["parent"]) == (member.node, newer.serial, member.serial)
    assert set(detail) == {"node", "serial", "parent", "nodeKey", "clientTime"}
    assert detail["nodeKey"] == "unattested"


def test_the_presented_leaf_is_what_tls_said(member: Member) -> None:
    found = present(member.leaf)
    assert (found.node_id, found.leaf.sha256) == (member.node, sha256(member.leaf).digest())
    assert str(Pin.of(found.leaf.spki)) == str(Pin.of(ecdsa.spki_of(member.key.public_key())))
