"""Joins by TPM against a real server: the rounds on the wire, what the operator decides and sees."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest

from bcd.controlplane.adapters.grpc.messages import encode_request
from bcd.domain.model.names import Role
from bcd.protocol import attestation
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pki import csr, ecdsa
from tests.fakes import manufacturer, swtpm
from tests.fakes.controlplane.attested import Attested
from tests.fakes.controlplane.machine import Machine, Site, new_key
from tests.fakes.forged import shown_in_software
from tests.fakes.plane import Plane
from tests.fakes.tpm_machine import TpmMachine


@pytest.fixture
def tpm() -> Iterator[TpmMachine]:
    with TemporaryDirectory() as folder, swtpm.running(Path(folder) / "t") as running:
        client = running.client()
        yield TpmMachine(client)
        client.close()


@pytest.fixture
def site(served: Plane) -> Site:
    return Site(served.config.parent)


def second_round(machine: Attested, reply: pb.JoinReply) -> Any:
    assert reply.WhichOneof("answer") == "challenge", reply
    challenge = attestation.challenge(reply.challenge)
    assert challenge.attestor == "tpm"
    return machine.answer(challenge)


def leaf_of(site: Site, machine: Attested, reply: pb.JoinReply) -> Any:
    checker = Machine(new_key(), csr=machine.csr)
    object.__setattr__(checker, "key", _Key(csr.key_of(machine.csr)))
    return checker.check(reply.issued.SerializeToString(deterministic=True), site.signing_pin, Role.NODE).leaf


class _Key:
    """The public half is all that a check needs."""

    def __init__(self, spki: bytes) -> None:
        self._public = ecdsa.public_key(spki)

    def public_key(self) -> Any:
        return self._public


def test_an_allowed_tpm_joins_in_two_calls_and_the_operator_sees_where_its_key_is(
    served: Plane, site: Site, tpm: TpmMachine
) -> None:
    machine = Attested(tpm)
    served.admin("ek", "allow", machine.ek(), "--site", "lab")
    first = site.send(encode_request(machine.request()))
    answer = second_round(machine, first)
    # Both rounds may be lost on the way, and are sent again.
    assert site.send(encode_request(machine.request())).challenge == first.challenge
    issued = site.send(encode_request(machine.request(answer)))
    assert site.send(encode_request(machine.request(answer))).issued == issued.issued
    leaf = leaf_of(site, machine, issued)
    assert leaf.ak_name == machine.ak_name
    (row,) = [row for row in rows(served, "nodes", "list") if row["id"] == leaf.spiffe_id.node]
    assert (row["nodeKey"], row["ek"], row["akName"]) == ("tpm", machine.ek(), machine.ak_name.hex())
    lines = served.admin("nodes", "list").out.splitlines()
    column = lines[0].index("KEY")
    assert [line[column:].split()[0] for line in lines if line.startswith(leaf.spiffe_id.node)] == ["tpm"]
    shown = served.admin("nodes", "show", leaf.spiffe_id.node).out
    assert machine.ek() in shown
    assert machine.ak_name.hex() in shown
    (joined,) = [event for event in rows(served, "audit", "tail") if event["detail"].get("node") == row["id"]]
    assert (joined["kind"], joined["detail"]["nodeKey"]) == ("node.joined", "tpm")


def test_a_machine_with_a_token_is_unattested(served: Plane, site: Site) -> None:
    machine = Machine()
    reply = site.join(machine, served.token())
    node = machine.check(reply.issued.SerializeToString(deterministic=True), site.signing_pin).leaf.spiffe_id.node
    (row,) = [row for row in rows(served, "nodes", "list") if row["id"] == node]
    assert (row["nodeKey"], row["ek"], row["akName"]) == ("unattested", "", "")


def test_a_forged_proof_is_the_same_refusal_as_any_and_told_to_the_operator(
    served: Plane, site: Site, tpm: TpmMachine
) -> None:
    machine = Attested(tpm)
    served.admin("ek", "allow", machine.ek(), "--site", "lab")
    answer = second_round(machine, site.send(encode_request(machine.request())))
    forged = type(answer)(answer.id, sha256(answer.secret).digest(), answer.quote, answer.pcr_values, None)
    with pytest.raises(grpc.RpcError) as refused:
        site.send(encode_request(machine.request(forged)))
    error: Any = refused.value
    assert (error.code(), error.details()) == (grpc.StatusCode.PERMISSION_DENIED, "Join refused")
    refusal = dict(error.trailing_metadata())["refusal-id"]
    assert rows(served, "refusals", "show", refusal)["reason"] == "secret-wrong"
    assert rows(served, "refusals", "show", refusal)["attestor"] == "tpm"


def test_a_genuine_tpm_waits_for_a_person_who_says_where_it_belongs(served: Plane, site: Site, tmp_path: Path) -> None:
    maker = manufacturer.root()
    (tmp_path / "maker.der").write_bytes(maker.der)
    served.admin("ek-roots", "import", str(tmp_path / "maker.der"))
    key, machine = new_key(), Machine()
    evidence = shown_in_software(key, new_key(), maker.ek(ecdsa.spki_of(key.public_key())))
    request = machine.request(site.recipient, "x" * 16, attestor="tpm", sealed=None, evidence=evidence)
    pending = site.send(encode_request(request)).pending
    (asked,) = [row for row in rows(served, "approvals", "list") if row["id"] == pending.id]
    assert (asked["state"], asked["keyPin"], asked["site"]) == ("pending", "", "")
    assert asked["ek"] in served.admin("approvals", "list").out
    served.admin("approvals", "approve", pending.id, "--site", "barn")
    assert [row["site"] for row in rows(served, "ek", "list") if row["publicKeySha256"] == asked["ek"]] == ["barn"]
    assert site.send(encode_request(request)).WhichOneof("answer") == "challenge"


def test_a_server_that_was_killed_between_the_rounds_takes_the_answer(fresh: Plane, tpm: TpmMachine) -> None:
    fresh.serve()
    fresh.node_config()
    site, machine = Site(fresh.config.parent), Attested(tpm)
    fresh.admin("ek", "allow", machine.ek(), "--site", "lab")
    first = site.send(encode_request(machine.request()))
    fresh.stop(signal.SIGKILL)
    fresh.serve()
    assert site.send(encode_request(machine.request())).challenge == first.challenge
    answer = second_round(machine, first)
    issued = site.send(encode_request(machine.request(answer))).issued
    fresh.stop(signal.SIGKILL)
    fresh.serve()
    assert site.send(encode_request(machine.request(answer))).issued == issued
    assert len(rows(fresh, "nodes", "list")) == 1


def test_a_backup_from_before_the_challenge_refuses_its_answer_and_asks_anew(
    fresh: Plane, tpm: TpmMachine, tmp_path: Path
) -> None:
    fresh.serve()
    fresh.node_config()
    site, machine = Site(fresh.config.parent), Attested(tpm)
    fresh.admin("ek", "allow", machine.ek(), "--site", "lab")
    fresh.stop()
    shutil.copytree(fresh.directory, tmp_path / "backup")
    fresh.serve()
    answer = second_round(machine, site.send(encode_request(machine.request())))
    fresh.stop()
    shutil.rmtree(fresh.directory)
    shutil.copytree(tmp_path / "backup", fresh.directory)
    fresh.serve()
    fresh.admin("restored")
    with pytest.raises(grpc.RpcError):
        site.send(encode_request(machine.request(answer)))
    (refusal,) = rows(fresh, "refusals", "list")
    assert refusal["reason"] == "challenge-unknown"
    assert refusal["wayBack"].endswith("bcd join there again")
    answer = second_round(machine, site.send(encode_request(machine.request())))
    assert site.send(encode_request(machine.request(answer))).WhichOneof("answer") == "issued"


def rows(served: Plane, *words: str) -> Any:
    return served.json(*words)
