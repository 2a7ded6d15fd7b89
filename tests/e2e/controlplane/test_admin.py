"""The operator's commands against a running server, without one, and while one comes or goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from bcd.domain.model.claims import Claims
from tests.fakes import commands
from tests.fakes.commands import Ran
from tests.fakes.controlplane.machine import Machine, Site
from tests.fakes.plane import Plane

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"


@pytest.fixture(scope="module")
def lived(served: Plane) -> Plane:
    """A control plane at which something has happened: a join, a refusal, a question."""
    site = Site(served.config.parent)
    token = served.token("--node-id", "rack1-7")
    site.join(Machine(claims=Claims(hostname="metal", macs=("00:1b:21:aa:bb:cc",))), token)
    with pytest.raises(grpc.RpcError):
        site.join(Machine(claims=Claims(hostname="late")), token)
    site.join(Machine(claims=Claims(hostname="asks")), served.token("--require-approval"))
    return served


def run(plane: Plane, *words: str) -> Ran:
    return commands.run("bcd-controlplane", *words, "--dir", str(plane.directory))


LISTS: dict[tuple[str, ...], set[str]] = {
    ("token", "list"): {
        "id", "site", "role", "nodeId", "allowReclaim", "requireApproval", "state", "uses", "used", "created",
        "expires", "revoked",
    },
    ("nodes", "list"): {
        "id", "site", "role", "spiffeId", "generation", "hostname", "daemonVersion", "tokenId", "created", "joined",
        "certificate", "notAfter", "session", "lastSeen", "renewalAsked", "nodeKey", "ek", "akName",
    },
    ("refusals", "list"): {
        "id", "at", "reason", "detail", "wayBack", "source", "attestor", "tokenId", "claims",
    },
    ("approvals", "list"): {
        "id", "state", "asked", "decided", "tokenId", "site", "role", "nodeId", "reclaims", "keyPin", "source",
        "daemonVersion", "claims", "ek", "besideDenied",
    },
    ("audit", "tail"): {"seq", "at", "actor", "kind", "detail"},
}  # fmt: skip


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_has_the_same_fields_with_a_server_and_without(lived: Plane, words: tuple[str, ...]) -> None:
    rows: Any = lived.json(*words)
    assert rows
    assert {frozenset(row) for row in rows} == {frozenset(LISTS[words])}
    times = [value for row in rows for name, value in row.items() if name in {"at", "created", "asked", "joined"}]
    assert times and all(re.fullmatch(TIME, value) for value in times)
    text = lived.admin(*words).out
    assert all(str(row.get("id", row.get("seq"))) in text for row in rows)


def test_it_is_all_the_same_without_a_server(lived: Plane) -> None:
    with_server = {words: lived.json(*words) for words in LISTS}
    lived.stop()
    assert {words: lived.json(*words) for words in LISTS} == with_server
    token = lived.token()
    lived.serve()
    rows: Any = lived.json("token", "list")
    assert token.split("_")[1] in {row["id"] for row in rows}
    Site(lived.config.parent).join(Machine(), token)


def test_one_node_is_shown_with_its_machine_and_its_certificates(lived: Plane) -> None:
    shown: Any = lived.json("nodes", "show", "rack1-7")
    assert shown["node"]["spiffeId"] == "spiffe://example.test/site/lab/node/rack1-7"
    assert shown["claims"]["macs"] == ["00:1b:21:aa:bb:cc"]
    (certificate,) = shown["certificates"]
    assert set(certificate) == {
        "serial", "generation", "state", "stateSince", "keyPin", "notBefore", "notAfter", "firstUsed", "firstUsedFrom",
        "reason",
    }  # fmt: skip
    text = lived.admin("nodes", "show", "rack1-7").out
    assert certificate["keyPin"] in text and "00:1b:21:aa:bb:cc" in text


def test_a_table_lines_up(lived: Plane) -> None:
    head, *rows = lived.admin("token", "list").out.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", head)][:7]
    for row in rows:
        assert all(start == 0 or row[start - 2 : start] == "  " for start in starts), row
        assert not row.endswith(" ")


def test_a_token_is_all_that_is_printed(lived: Plane) -> None:
    done = run(lived, "token", "create", "--site", "lab")
    assert re.fullmatch(r"bcjt_[a-z2-7]{10}_[A-Za-z0-9_-]{43}\n", done.out)
    assert done.err == ""
    made: Any = lived.json("token", "create", "--site", "lab")
    assert set(made) == {"token", "id", "expires"}


def test_a_tokens_limits_are_what_was_asked_for(lived: Plane) -> None:
    made: Any = lived.json("token", "create", "--site", "barn", "--role", "site", "--ttl", "90m", "--uses", "7")
    rows: Any = lived.json("token", "list")
    (row,) = [row for row in rows if row["id"] == made["id"]]
    assert (row["site"], row["role"], row["uses"], row["state"]) == ("barn", "site", 7, "usable")
    plain: Any = lived.json("token", "create", "--site", "lab")
    rows = lived.json("token", "list")
    (row,) = [row for row in rows if row["id"] == plain["id"]]
    assert (row["role"], row["uses"], row["allowReclaim"], row["requireApproval"]) == ("node", 1, False, False)


def test_a_revoked_token_is_refused_at_once(lived: Plane) -> None:
    token = lived.token()
    assert lived.admin("token", "revoke", token.split("_")[1]).out == f"token {token.split('_')[1]} revoked\n"
    with pytest.raises(grpc.RpcError):
        Site(lived.config.parent).join(Machine(), token)
    rows: Any = lived.json("refusals", "list", "-n", "1")
    assert [row["reason"] for row in rows] == ["token-revoked"]


def test_the_audit_log_is_followed_through_a_restart(lived: Plane) -> None:
    words = ("bcd-controlplane", "audit", "tail", "--dir", str(lived.directory), "-n", "1", "--follow", "--json")
    follower = commands.start(*words)
    assert follower.stdout is not None
    first = json.loads(follower.stdout.readline())
    lived.token()
    second = json.loads(follower.stdout.readline())
    lived.stop()
    lived.token()
    third = json.loads(follower.stdout.readline())
    lived.serve()
    lived.token()
    fourth = json.loads(follower.stdout.readline())
    assert [event["seq"] for event in (second, third, fourth)] == [first["seq"] + n for n in (1, 2, 3)]
    assert {event["kind"] for event in (second, third, fourth)} == {"token.created"}
    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate(timeout=20)
    assert (follower.returncode, err) == (0, b"")


def test_the_socket_of_a_killed_server_confuses_nobody(fresh: Plane) -> None:
    fresh.serve()
    token = fresh.token()
    fresh.stop(signal.SIGKILL)
    assert (fresh.directory / "admin.sock").exists()
    rows: Any = fresh.json("token", "list")
    assert [row["id"] for row in rows] == [token.split("_")[1]]
    fresh.serve()
    assert (fresh.directory / "admin.sock").stat().st_mode & 0o777 == 0o600
    assert len(fresh.json("token", "list")) == 1  # type: ignore[arg-type]


def test_commands_and_a_server_that_comes_and_goes_do_not_miss_each_other(fresh: Plane) -> None:
    made = []
    words = ("bcd-controlplane", "token", "create", "--site", "lab", "--dir", str(fresh.directory))
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        starting = [commands.start(*words) for _ in range(3)]
        fresh.serve()
        stopping = [commands.start(*words) for _ in range(3)]
        time.sleep(0.1)
        fresh.stop(how)
        for process in starting + stopping:
            out, err = process.communicate(timeout=30)
            assert process.returncode == 0, err
            made.append(out.decode().split("_")[1])
    rows: Any = fresh.json("token", "list")
    assert set(made) <= {row["id"] for row in rows}
    assert len(set(made)) == 18


@pytest.mark.parametrize("words", [("token", "list"), ("audit", "tail")], ids=" ".join)
def test_a_reader_that_has_seen_enough_ends_it_quietly(lived: Plane, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*commands.command(["bcd-controlplane", *words, "--dir", str(lived.directory)])],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_told(lived: Plane) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*commands.command(["bcd-controlplane", "token", "list", "--dir", str(lived.directory)])],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 78
    assert done.stderr.startswith(b"standard output: No space left on device")
    assert done.stderr.count(b"\n") == 1


def test_an_empty_control_plane_says_that_there_is_nothing(fresh: Plane) -> None:
    for words, nothing in (
        (("token", "list"), "no tokens\n"),
        (("nodes", "list"), "no nodes\n"),
        (("refusals", "list"), "no refusals\n"),
        (("approvals", "list"), "no approvals\n"),
    ):
        assert fresh.admin(*words).out == nothing
        assert fresh.json(*words) == []


def test_a_nodes_configuration_is_complete_and_readable(lived: Plane, tmp_path: Path) -> None:
    out = tmp_path / "etc" / "bcd"
    shown: Any = lived.json("node-config", "--out", str(out), "--data-dir", "/srv/bcd")
    config = Site(out).config
    assert set(config) == {
        "data_dir",
        "join",
        "gateway",
        "serving_ca_spki_pin",
        "join_encryption_key_pin",
        "join_signing_key_pin",
    }
    assert config["data_dir"] == "/srv/bcd"
    assert shown["servingCaSpkiPin"] == config["serving_ca_spki_pin"]
    assert shown["files"] == [str(out / name) for name in ("config.toml", "join-encryption.jwk", "serving-ca.pem")]
    assert {path.name: path.stat().st_mode & 0o777 for path in out.iterdir()} == dict.fromkeys(
        ("config.toml", "join-encryption.jwk", "serving-ca.pem"), 0o644
    )
    assert out.stat().st_mode & 0o777 == 0o755
    for line in (out / "config.toml").read_text().splitlines():
        assert not line or line.startswith("#") or " = " in line
    before = (out / "config.toml").read_bytes()
    lived.admin("node-config", "--out", str(out), "--data-dir", "/srv/bcd")
    assert (out / "config.toml").read_bytes() == before
    Site(out).join(Machine(), lived.token())


def test_the_private_keys_never_leave_the_directory(lived: Plane, tmp_path: Path) -> None:
    lived.admin("node-config", "--out", str(tmp_path / "out"))
    handed = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert b"PRIVATE" not in handed
    assert b'"d"' not in handed
