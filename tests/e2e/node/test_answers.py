"""What the control plane answers, and what the node makes of it (protocol, "What is final and what is retried")."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.commands import Ran
from tests.fakes.outside import chain_in, ended, line_with, openssl, pin_of, public_of_certificate, public_of_key, until
from tests.fakes.plane import Machine, Plane, control_plane

REFUSED = (
    "Join refused (refusal id {id}): ask the control plane's operator for "
    "bcd-controlplane refusals show {id}; then bcd join with a new token"
)


def other_planes_key(plane: Plane, machine: Machine, tmp_path: Path) -> Ran:
    """A configuration with a key to seal to that this control plane does not have, and the pin to match."""
    key = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    public = public_of_key(key)
    der = openssl("pkey", "-pubin", "-outform", "DER", stdin=public)
    jwk = json.loads((plane.config.parent / "join-encryption.jwk").read_text())
    for name, part in (("x", der[-64:-32]), ("y", der[-32:])):
        jwk[name] = openssl("base64", "-A", stdin=part).decode().translate({43: "-", 47: "_"}).rstrip("=")
    jwk.pop("kid", None)
    (tmp_path / "join-encryption.jwk").write_text(json.dumps(jwk))
    config = tmp_path / "config.toml"
    config.write_text(re.sub(r"(join_encryption_key_pin = ).*", rf'\1"{pin_of(public)}"', plane.config.read_text()))
    return machine.join(plane.token(), "--config", str(config))


def used_up(plane: Plane, machine: Machine, _: Path) -> Ran:
    token = plane.token()
    assert plane.machine().join(token).status == 0
    return machine.join(token)


def revoked(plane: Plane, machine: Machine, _: Path) -> Ran:
    token = plane.token()
    plane.admin("token", "revoke", token.split("_")[1])
    return machine.join(token)


def expired(plane: Plane, machine: Machine, _: Path) -> Ran:
    token = plane.token("--ttl", "1s")

    def state() -> object:
        return {one["id"]: one["state"] for one in plane.json("token", "list")}[token.split("_")[1]]  # type: ignore[attr-defined]

    until(lambda: state() == "expired", "the token to expire")
    return machine.join(token)


def secret_wrong(plane: Plane, machine: Machine, _: Path) -> Ran:
    token = plane.token()
    return machine.join(token[:-2] + ("AA" if token[-2:] != "AA" else "EE"))


def machine_known(plane: Plane, machine: Machine, tmp_path: Path) -> Ran:
    assert machine.join(plane.token()).status == 0
    return machine.join(plane.token(), "--data-dir", str(tmp_path / "lost and new"))


def approval_denied(plane: Plane, machine: Machine, _: Path) -> Ran:
    process = machine.start_join(plane.token("--require-approval"))
    waiting = line_with("waiting for approval", process)
    plane.admin("approvals", "deny", approval_in(waiting))
    return Ran(*ended(process))


REASONS: dict[str, Callable[[Plane, Machine, Path], Ran]] = {
    "token-malformed": lambda plane, machine, _: machine.join("x" * 40),
    "token-unknown": lambda plane, machine, _: machine.join("bcjt_aaaaaaaaaa_" + "A" * 43),
    "token-secret-wrong": secret_wrong,
    "token-revoked": revoked,
    "token-expired": expired,
    "token-used-up": used_up,
    "role-mismatch": lambda plane, machine, _: machine.join(plane.token(), "--role", "site"),
    "node-id-mismatch": lambda plane, machine, _: machine.join(plane.token("--node-id", "a"), "--node-id", "b"),
    "machine-known": machine_known,
    "seal-key-unknown": other_planes_key,
    "approval-denied": approval_denied,
}


def approval_in(line: str) -> str:
    found = re.search(r" id=(\S+)", line)
    assert found is not None, line
    return found[1]


@pytest.mark.parametrize("reason", REASONS)
def test_every_refusal_is_the_same_to_the_node_and_told_to_the_operator(
    reason: str, plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """Specification, "What the join does": every refusal is the same "Join refused"; decision 27: its id tells why."""
    done = REASONS[reason](plane, machine, tmp_path)
    found = re.search(r"refusal id ([0-9a-f]{32})\)", done.err)
    assert found is not None, done.err
    assert (done.status, done.out, done.err) == (77, "", REFUSED.format(id=found[1]) + "\n")
    shown = plane.json("refusals", "show", found[1])
    assert isinstance(shown, dict)
    assert (shown["reason"], bool(shown["wayBack"])) == (reason, True)


def test_a_refused_request_is_set_aside_and_a_new_token_joins(plane: Plane, machine: Machine) -> None:
    """Decision 8: the same request would be refused for ever."""
    assert machine.join("x" * 40).status == 77
    (aside,) = machine.files()
    assert re.fullmatch(r"join\.pending\.refused-\d{8}T\d{6}Z", aside)
    assert machine.join(plane.token()).status == 0
    assert sorted(machine.files()) == ["identity.json", aside, "node.key"]


def test_an_approval_is_waited_for_through_every_kind_of_end(plane: Plane, machine: Machine) -> None:
    """Decision 8: after a crash, Ctrl-C or a long approval the next `bcd join` resumes with the same CSR and needs no
    token; decision 18: 75, try later."""
    process = machine.start_join(plane.token("--require-approval"))
    approval = approval_in(line_with("waiting for approval", process))
    key = json.loads(machine.files()["join.pending"])["key"].encode()
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process.send_signal(how)
        status, out, err = ended(process)
        if how is signal.SIGKILL:
            assert status == -signal.SIGKILL
        else:
            line = "interrupted; run bcd join again: it goes on where it stopped\n"
            assert (status, out, err) == (75, "", line)
        shown = machine.run("status")
        assert f"waiting for approval {approval}; bcd join goes on with it" in shown.out
        assert (shown.status, shown.err) == (75, "this node has not joined (run bcd join)\n")
        process = machine.start("join")
        assert "resuming the join that was begun; no token is read" in line_with("resuming", process)
        assert approval_in(line_with("waiting for approval", process)) == approval
    assert _question(plane, approval)["keyPin"] == pin_of(public_of_key(key)), "what the approver compares"
    plane.admin("approvals", "approve", approval)
    status, out, _ = ended(process)
    assert (status, out[:12]) == (0, "joined as n-")
    assert machine.files()["node.key"] == key
    assert public_of_key(key) == public_of_certificate(chain_in(machine.data)[0])
    assert sorted(machine.files()) == ["identity.json", "node.key"]


def _question(plane: Plane, approval: str) -> dict[str, str]:
    rows = plane.json("approvals", "list")
    assert isinstance(rows, list)
    (row,) = [one for one in rows if one["id"] == approval]
    return dict(row)


def test_nobody_decides_for_another_request(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """The negative twin: a pending join is not taken for another role or node."""
    process = machine.start_join(plane.token("--require-approval"))
    line_with("waiting for approval", process)
    process.send_signal(signal.SIGINT)
    ended(process)
    before = machine.files()
    for words, what in (
        (("--role", "site"), "role (node, not site)"),
        (("--node-id", "x"), "node id (any, not x)"),
    ):
        done = machine.join("", *words)
        line = (
            f"a join is under way with another {what}: run bcd join as before, "
            "or give it up with bcd join --reset --yes\n"
        )
        assert (done.status, done.err) == (78, line)
    assert machine.files() == before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_join_that_gets_no_answer_can_be_stopped_at_once(how: signal.Signals, plane: Plane, machine: Machine) -> None:
    """Decision 18: also in the middle of a call that nobody answers; nothing of it is lost."""
    token = plane.token()
    with plane.held():
        process = machine.start_join(token)
        until((machine.data / "join.pending").exists, "the request to be on disk", process)
        process.send_signal(how)
        status, out, err = ended(process)
    line = "interrupted; run bcd join again: it goes on where it stopped\n"
    assert (status, out, err) == (75, "", line)
    assert machine.join().status == 0


def test_a_control_plane_that_comes_back_is_found(tmp_path: Path) -> None:
    """Specification, "What the join does", 3: retryable failures back off. Refused connections are said, and the same
    join goes on by itself."""
    with control_plane(tmp_path) as plane:
        machine, token = plane.machine(), plane.token()
        plane.stop()
        process: subprocess.Popen[bytes] = machine.start_join(token)
        line = line_with("join attempt failed", process)
        assert re.search(r'attempt=1 why="127\.0\.0\.1:\d+: connection refused" next_in_s=[12]\.\d$', line), line
        plane.serve()
        status, out, _ = ended(process)
        assert (status, out[:12]) == (0, "joined as n-")
