"""The request of a join: what is asked for and kept, and how one that was cut off goes on."""

from dataclasses import replace

import pytest

from bcd.domain.lifecycle.begin_join import Wanted
from bcd.domain.model.datadir import IDENTITY, KEY, PENDING
from bcd.domain.model.failures import FixConfiguration, Message, MustJoinAgain, Usage
from bcd.domain.model.joining import Failed
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.names import NodeId, Role
from bcd.protocol.files import join_pending
from bcd.protocol.pki import seal
from tests.fakes import pki
from tests.fakes.joining import ANY_NODE, TOKEN, ControlPlane, Credential, Silent
from tests.fakes.memory_join import Answers, ByTpm, begun, failure, good, join, never, pending, with_tpm
from tests.fakes.memory_node import PATH, MemoryNode
from tests.fakes.memory_tpm import LOCKED


def test_the_question_holds_the_sealed_token_and_the_machines_claims_and_no_secret() -> None:
    plane = ControlPlane()
    join(MemoryNode(), plane)
    (asked,) = plane.sent
    assert (asked.claims.hostname, asked.daemon_version) == ("rack-3-7", "0.0.0-test")
    assert (asked.pending.attestor, asked.pending.node_id, asked.pending.role) == ("join-token", None, Role.NODE)
    assert asked.pending.sealed is not None
    assert TOKEN not in asked.pending.sealed.sealed
    assert seal.open_sealed(pki.ENCRYPTION_KEY, asked.pending.sealed.sealed, asked.pending.csr) == TOKEN
    assert "token" not in repr(asked.pending.sealed)
    assert "PRIVATE" not in repr(asked)


@pytest.mark.parametrize("node_id", [None, pki.NODE])
def test_a_node_id_makes_it_a_provisioned_join(node_id: NodeId | None) -> None:
    plane = Answers(good)
    join(MemoryNode(), plane, wanted=Wanted(Role.NODE, node_id))
    assert plane.sent[0].pending.attestor == ("join-token" if node_id is None else "provisioned")
    assert plane.sent[0].pending.node_id == node_id


def test_the_request_is_durable_before_it_is_sent() -> None:
    node = MemoryNode()
    seen: list[bool] = []
    plane = ControlPlane(on_send=lambda: seen.append(PENDING in _safe(node)))
    join(node, plane)
    assert seen == [True]
    assert PENDING not in node.files


def _safe(node: MemoryNode) -> set[str]:
    """The names that every power cut now would leave."""
    disks = list(node.disk.states_at(len(node.disk.trace)))
    return set.intersection(*(set(disk.files(PATH)) for disk in disks))


@pytest.mark.parametrize("text", [None, b"x"])
def test_without_a_token_nothing_is_begun_or_sent(text: bytes | None) -> None:
    node, plane, credential = MemoryNode(), ControlPlane(), Credential(text)
    if text is None:
        assert isinstance(failure(node, plane, credential), Usage)
        assert (node.files, plane.sent) == ({}, [])
    else:
        assert failure(node, plane, credential).message is Message.JOIN_REFUSED
        assert len(plane.sent) == 1
    assert not credential.was_spent


def test_a_key_to_seal_to_that_is_wrong_is_found_before_the_token_is_read() -> None:
    def wrong() -> seal.Recipient:
        raise FixConfiguration(Message.ENCRYPTION_PIN, have="a", path="b", presented="c")

    node, plane, credential = MemoryNode(), ControlPlane(), Credential()
    assert failure(node, plane, credential, recipient=wrong).message is Message.ENCRYPTION_PIN
    assert (node.files, plane.sent, credential.taken) == ({}, [], 0)


# --- A join that goes on


def test_a_join_that_was_begun_goes_on_with_the_same_request_and_no_token() -> None:
    node = begun()
    request, key = pending(node).csr, pending(node).key
    plane, credential = ControlPlane(), Credential(None)
    join(node, plane, credential, recipient=never)
    assert [asked.pending.csr for asked in plane.sent] == [request]
    assert node.files.keys() == {IDENTITY, KEY}
    assert node.files[KEY] == key
    assert (credential.taken, credential.was_spent) == (0, True)


def test_a_join_that_was_not_begun_needs_the_token() -> None:
    assert failure(MemoryNode(), ControlPlane(), Credential(None)).message is Message.NO_TOKEN


@pytest.mark.parametrize("wanted", [Wanted(Role.NODE, NodeId("n-9")), Wanted(Role.SITE, None)])
def test_a_join_that_was_begun_as_something_else_is_not_taken_over(wanted: Wanted) -> None:
    node, plane, credential = begun(), ControlPlane(), Credential()
    before = node.disk.image
    assert failure(node, plane, credential, wanted=wanted).message is Message.PENDING_OTHER
    assert (plane.sent, credential.taken) == ([], 0)
    assert node.disk.image == before


@pytest.mark.parametrize("what", ["empty", "torn", "rubbish", "no key", "another version"])
def test_a_request_that_cannot_be_read_is_named_with_the_way_back_and_stays(what: str) -> None:
    node = begun()
    whole = node.files[PENDING]
    broken = {
        "empty": b"",
        "torn": whole[: len(whole) // 2],
        "rubbish": b"\xff\xfe",
        "no key": join_pending.encode(replace(pending(node), key=b"-----BEGIN PRIVATE KEY-----\n")),
        "another version": whole.replace(b'"version": 1', b'"version": 2'),
    }
    node.put(PENDING, broken[what])
    found = failure(node, ControlPlane())
    assert isinstance(found, MustJoinAgain)
    assert found.message is Message.PENDING_UNREADABLE
    assert f"{PATH}/{PENDING}" in found.text
    assert found.text.endswith("to give that join up: bcd join --reset --yes, then bcd join")
    assert node.files == {PENDING: broken[what]}


# --- A key in the TPM


def test_the_key_of_a_join_is_in_the_tpm_and_its_record_on_disk() -> None:
    node, _ = with_tpm()
    assert join(node).kind is KeyKind.TPM
    assert node.files[KEY].startswith(b"-----BEGIN BCD TPM NODE KEY-----\n")


def test_a_join_that_was_begun_goes_on_with_the_key_that_the_tpm_derives_again() -> None:
    node, held = with_tpm()
    assert failure(node, Silent()).message is Message.NO_RETRY
    key = pending(node).key
    held.trouble = LOCKED
    assert failure(node, ControlPlane()).message is Message.KEY_UNAVAILABLE
    assert pending(node).key == key
    held.trouble = None
    join(node, ControlPlane(), Credential(None))
    assert node.files[KEY] == key


def test_a_join_that_was_begun_before_the_tpm_was_cleared_is_given_up_by_a_person() -> None:
    node, held = with_tpm()
    failure(node, Silent())
    held.clear()
    plane = ControlPlane()
    found = failure(node, plane)
    assert isinstance(found, MustJoinAgain)
    assert "the TPM derives another key than the one it asks for (was the TPM cleared?)" in found.text
    assert plane.sent == []
    assert PENDING in node.files


def test_a_join_by_tpm_that_was_cut_off_goes_on_with_the_same_request_and_fresh_evidence() -> None:
    case = ByTpm()
    case.gets(case.challenge(), Failed("lost", never=True)).fails()
    before = pending(case.node)
    case.gets(case.challenge("c-2")).join(ANY_NODE)
    assert [one.pending.csr for one in case.plane.sent] == [before.csr] * 2
    assert [one.answer.id if one.answer else "" for one in case.plane.sent] == ["", "c-2"]
    assert PENDING not in case.node.files


@pytest.mark.parametrize(("begun_as", "asked_for"), [("tpm", "join-token"), ("join-token", "tpm")])
def test_a_join_that_was_begun_by_one_attestor_does_not_go_on_by_another(begun_as: str, asked_for: str) -> None:
    node = MemoryNode()
    failure(node, Silent(), wanted=Wanted(Role.NODE, None, begun_as))
    found = failure(node, ControlPlane(), wanted=Wanted(Role.NODE, None, asked_for))
    assert found.message is Message.PENDING_OTHER
    assert PENDING in node.files
