"""Joins over the wire against a real server: certificates, crowds, crashes, faults."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from bcd.controlplane.adapters.grpc.messages import encode_request
from bcd.domain.model.claims import Claims
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from tests.fakes import commands
from tests.fakes.controlplane.machine import Machine, Site, key_pem
from tests.fakes.plane import Plane


@pytest.fixture
def site(served: Plane) -> Site:
    return Site(served.config.parent)


def refused(call: Callable[[], Any]) -> tuple[grpc.StatusCode, str, dict[str, Any]]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    return error.code(), error.details(), {item.key: item.value for item in error.trailing_metadata() or ()}


def signed(reply: pb.JoinReply) -> bytes:
    return reply.issued.SerializeToString(deterministic=True)


def openssl(*words: str) -> str:
    return subprocess.run(["openssl", *words], capture_output=True, text=True, check=True).stdout


def test_openssl_reads_the_leaf_its_chain_and_its_key(served: Plane, site: Site, tmp_path: Path) -> None:
    machine = Machine(claims=Claims(hostname="metal"))
    answer = machine.check(signed(site.join(machine, served.token())), site.signing_pin)
    assert len(answer.chain) == 2
    for name, der in zip(("leaf", "issuing"), answer.chain, strict=True):
        (tmp_path / f"{name}.der").write_bytes(der)
        openssl("x509", "-inform", "DER", "-in", f"{tmp_path}/{name}.der", "-out", f"{tmp_path}/{name}.pem")
    root = str(served.directory / "node-root-ca.pem")
    leaf = str(tmp_path / "leaf.pem")
    verified = openssl("verify", "-x509_strict", "-CAfile", root, "-untrusted", str(tmp_path / "issuing.pem"), leaf)
    assert verified.strip().endswith("OK")
    text = openssl("x509", "-in", leaf, "-noout", "-text", "-nameopt", "RFC2253,-esc_msb")
    node = answer.leaf.spiffe_id.node
    assert f"Subject: OU=bc-role:node,CN={node}" in text
    assert f"URI:spiffe://example.test/site/lab/node/{node}" in text
    assert "X509v3 Subject Alternative Name: \n" in text
    assert "X509v3 Key Usage: critical\n                Digital Signature\n" in text
    assert "TLS Web Client Authentication, TLS Web Server Authentication" in text
    assert "X509v3 Basic Constraints: critical\n                CA:FALSE" in text
    assert "ecdsa-with-SHA256" in text and "NIST CURVE: P-256" in text
    assert "X509v3 Subject Key Identifier" in text and "X509v3 Authority Key Identifier" in text
    assert len(openssl("x509", "-in", leaf, "-noout", "-serial").strip().removeprefix("serial=")) <= 32
    (tmp_path / "key.pem").write_bytes(key_pem(machine.key))
    assert openssl("x509", "-in", leaf, "-noout", "-pubkey") == openssl("pkey", "-in", f"{tmp_path}/key.pem", "-pubout")


def test_of_many_who_join_at_once_with_one_token_one_gets_a_certificate(served: Plane, site: Site) -> None:
    token = served.token()
    crowd = [Machine() for _ in range(24)]
    requests = [encode_request(machine.request(site.recipient, token)) for machine in crowd]
    channel = site.channel()
    together = threading.Barrier(len(crowd))

    def join(data: bytes) -> str:
        together.wait(20)
        try:
            return site.send(data, channel, timeout_s=30).WhichOneof("answer") or ""
        except grpc.RpcError as error:
            status: Any = error
            return str(status.code().name)

    with ThreadPoolExecutor(len(crowd)) as threads:
        outcomes = list(threads.map(join, requests))
    channel.close()
    assert sorted(set(outcomes)) == ["PERMISSION_DENIED", "issued"]
    assert outcomes.count("issued") == 1
    rows: Any = served.json("token", "list")
    assert [(row["used"], row["state"]) for row in rows if row["id"] == token.split("_")[1]] == [(1, "used-up")]


def test_an_answer_lost_to_a_kill_is_given_again_without_a_second_use(fresh: Plane) -> None:
    """The server dies as soon as its store says that the certificate was issued; nobody heard the answer."""
    fresh.serve()
    fresh.node_config()
    site, token, machine = Site(fresh.config.parent), fresh.token(), Machine()
    data = encode_request(machine.request(site.recipient, token))
    assert fresh.server is not None
    server = fresh.server

    def kill() -> bytes:
        deadline = time.monotonic() + 20
        with closing(sqlite3.connect(f"file:{fresh.directory}/store.db?mode=ro", uri=True)) as store:
            while time.monotonic() < deadline:
                found = store.execute("SELECT signed FROM answers").fetchone()
                if found:
                    server.kill()
                    return bytes(found[0])
        raise AssertionError("no answer was ever stored")

    with ThreadPoolExecutor(1) as threads:
        killed = threads.submit(kill)
        try:
            site.send(data)
        except grpc.RpcError:
            pass
        first = killed.result()
    fresh.stop(signal.SIGKILL)
    fresh.serve()
    again = site.send(data)
    assert signed(again) == first
    machine.check(first, site.signing_pin)
    rows: Any = fresh.json("token", "list")
    assert [row["used"] for row in rows] == [1]
    assert len(fresh.json("nodes", "list")) == 1  # type: ignore[arg-type]


def test_killed_at_any_moment_nothing_acknowledged_is_lost(fresh: Plane) -> None:
    fresh.serve()
    fresh.node_config()
    site = Site(fresh.config.parent)
    token = fresh.token("--uses", "1000")
    joined: list[tuple[Machine, bytes]] = []
    for number in range(4):
        assert fresh.server is not None
        killer = threading.Timer(0.05 + 0.1 * number, fresh.server.kill)
        channel = site.channel()
        try:
            while True:
                machine = Machine()
                joined.append((machine, signed(site.join(machine, token, channel))))
                if killer.ident is None:
                    # From the first answer on: how long that takes is the machine's business.
                    killer.start()
        except grpc.RpcError:
            pass
        channel.close()
        killer.join()
        fresh.stop(signal.SIGKILL)
        fresh.serve()
    channel = site.channel()
    assert joined
    # Each machine that heard an answer is still known, and hears the same one.
    for machine, heard in joined[::4]:
        assert signed(site.join(machine, token, channel)) == heard
    channel.close()
    nodes: Any = fresh.json("nodes", "list")
    rows: Any = fresh.json("token", "list")
    assert len(nodes) == rows[0]["used"]
    assert {machine.check(heard, site.signing_pin).leaf.spiffe_id.node for machine, heard in joined} <= {
        node["id"] for node in nodes
    }


def test_every_refusal_is_the_same_to_the_node_and_told_to_the_operator(served: Plane, site: Site) -> None:
    used = served.token()
    site.join(Machine(), used)
    expected = {
        "token-used-up": lambda: site.join(Machine(), used),
        "token-unknown": lambda: site.join(Machine(), f"bcjt_{'a' * 10}_{'A' * 43}"),
        "attestor-unknown": lambda: site.join(Machine(), used, attestor="x509pop"),
        "csr-malformed": lambda: site.join(Machine(), used, csr=b"\x30\x00"),
        "request-malformed": lambda: site.send(b"\xff"),
    }
    answers = {}
    for reason, call in expected.items():
        code, text, trailing = refused(call)
        assert (code, text) == (grpc.StatusCode.PERMISSION_DENIED, "Join refused")
        info = error_details_pb2.ErrorInfo()
        details = status_pb2.Status.FromString(trailing.pop("grpc-status-details-bin"))
        assert details.details[0].Unpack(info)
        assert (info.reason, info.domain) == ("ACCESS_DENIED", "bc.identity")
        shown: Any = served.json("refusals", "show", trailing.pop("refusal-id"))
        assert shown["reason"] == reason
        assert shown["source"] == "127.0.0.1"
        assert reason in served.admin("refusals", "show", shown["id"]).out if reason == "token-used-up" else True
        answers[reason] = (details.SerializeToString(), trailing)
    assert len({repr(answer) for answer in answers.values()}) == 1


def test_a_store_that_cannot_be_written_is_a_fault_and_never_a_refusal(served: Plane, site: Site) -> None:
    machine, token = Machine(), served.token()
    with closing(sqlite3.connect(served.directory / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, text, trailing = refused(lambda: site.join(machine, token))
        other.execute("ROLLBACK")
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, "temporarily unavailable")
    assert trailing == {}
    assert "SQLITE_BUSY" in served.log.read_text()
    site.join(machine, token)


def test_a_full_disk_refuses_nobody_and_loses_nothing(fresh: Plane, tmp_path: Path) -> None:
    """The directory on a small file system that fills up while the server runs."""
    script = 'mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" && cp -a "$2"/. "$1" && shift 2 && exec "$@"'
    made = tmp_path / "made"
    fresh.directory.rename(made)
    fresh.directory.mkdir()
    words = commands.command(["bcd-controlplane", "serve", "--dir", str(fresh.directory), "--join", "127.0.0.1:0"])
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(fresh.directory), str(made)]
    with fresh.log.open("wb") as log:
        fresh.server = subprocess.Popen([*mounted, *words], stdout=subprocess.PIPE, stderr=log)
    assert fresh.server.stdout is not None
    assert fresh.server.stdout.readline().startswith(b"ready "), fresh.log.read_text()
    # The server's own view of its file system, and its socket, are reached through /proc.
    inside = Plane(tmp_path / "seen")
    inside.home.mkdir()
    (inside.home / "plane").symlink_to(f"/proc/{fresh.server.pid}/root{fresh.directory}")
    inside.node_config()
    site = Site(inside.config.parent)
    token = inside.token("--uses", "100")
    first = Machine()
    heard = signed(site.join(first, token))
    filler = inside.directory / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space"):
        while True:
            os.write(descriptor, b"x" * 4096)
    os.close(descriptor)
    codes: set[tuple[grpc.StatusCode, str]] = set()
    for _ in range(60):
        code, text, _ = refused(lambda: site.join(Machine(), token)) if codes else _until_refused(site, token)
        codes.add((code, text))
    assert codes == {(grpc.StatusCode.UNAVAILABLE, "temporarily unavailable")}
    assert signed(site.join(first, token)) == heard
    filler.unlink()
    site.join(Machine(), token)


def _until_refused(site: Site, token: str) -> tuple[grpc.StatusCode, str, dict[str, Any]]:
    """What is left of the last pages is used up first."""
    for _ in range(60):
        try:
            site.join(Machine(), token)
        except grpc.RpcError as error:
            status: Any = error
            return status.code(), status.details(), {}
    raise AssertionError("the disk never filled up")


def test_a_message_of_more_than_a_mebibyte_is_not_read(served: Plane, site: Site) -> None:
    code, _, trailing = refused(lambda: site.send(b"\x0a" + b"x" * (1 << 20)))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "refusal-id" not in trailing


def test_an_approval_from_the_question_to_the_certificate(served: Plane, site: Site) -> None:
    machine, token = Machine(claims=Claims(hostname="asks")), served.token("--require-approval")
    waiting = site.join(machine, token)
    assert waiting.pending.retry_after_s >= 1
    shown = served.admin("approvals", "list").out
    for word in (waiting.pending.id, machine.pin, "asks", token.split("_")[1], "lab", "127.0.0.1"):
        assert word in shown
    assert site.join(machine, token, pending_id=waiting.pending.id).pending.id == waiting.pending.id
    served.admin("approvals", "approve", waiting.pending.id)
    machine.check(signed(site.join(machine, token, pending_id=waiting.pending.id)), site.signing_pin)


def test_those_that_wait_are_listed_alone(served: Plane, site: Site) -> None:
    token = served.token("--require-approval", "--uses", "2")
    asked = [site.join(Machine(claims=Claims(hostname=name)), token).pending.id for name in ("decided", "waits")]
    served.admin("approvals", "deny", asked[0])
    waiting, every = served.admin("approvals", "list", "--pending").out, served.admin("approvals", "list").out
    assert asked[1] in waiting and asked[0] not in waiting
    assert all(one in every for one in asked)
    rows: Any = served.json("approvals", "list", "--pending")
    assert {row["state"] for row in rows} == {"pending"}
    served.admin("approvals", "deny", asked[1])
    left: Any = served.json("approvals", "list", "--pending")
    assert not {row["id"] for row in left} & set(asked)


def test_a_tokens_secret_is_nowhere_on_the_disk_nor_in_the_log(fresh: Plane) -> None:
    fresh.serve()
    fresh.node_config()
    site = Site(fresh.config.parent)
    tokens = [fresh.token(), fresh.token("--require-approval"), fresh.token()]
    site.join(Machine(), tokens[0])
    site.join(Machine(), tokens[1])
    refused(lambda: site.join(Machine(), tokens[0]))
    refused(lambda: site.join(Machine(), tokens[2], role="site"))
    everything = [path.read_bytes() for path in fresh.directory.iterdir() if path.is_file()] + [fresh.log.read_bytes()]
    fresh.stop()
    everything += [path.read_bytes() for path in fresh.directory.iterdir() if path.is_file()]
    for token in tokens:
        secret = token.split("_", 2)[2].encode()
        assert not [data for data in everything if secret in data]
        assert [data for data in everything if token.split("_")[1].encode() in data]
