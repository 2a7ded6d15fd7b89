"""Every finding of doctor, printed by a real process from a real state; docs/messages.md is made from this table."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bcd.app.findings import Level, Told
from tests.e2e.messages import tpm
from tests.e2e.messages.test_node_messages import joined, mounted, with_config, with_journal_of
from tests.fakes import commands
from tests.fakes.outside import closed_port
from tests.fakes.plane import Machine, Plane, control_plane

NEXT = "node.key.next"
Found = dict[str, str]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with control_plane(tmp_path_factory.mktemp("doctor")) as serving:
        yield serving


def asked(machine: Machine, prefix: tuple[str, ...] = (), env: "dict[str, str] | None" = None) -> list[Found]:
    """The report, and that its exit status is what its levels say."""
    done = machine.run("doctor", "--json", env=env, prefix=prefix)
    report: list[Found] = json.loads(done.out)
    assert done.status == (1 if any(found["level"] == Level.FAIL for found in report) else 0)
    assert done.err == ""
    return report


# ---- states


def fresh(plane: Plane) -> list[Found]:
    return asked(plane.machine())


def sound(plane: Plane) -> list[Found]:
    return asked(joined(plane))


def without(key: str) -> Callable[[Plane], list[Found]]:
    return lambda plane: asked(with_config(plane, f"without-{key}", **{key: ""}))


def config_writable(plane: Plane) -> list[Found]:
    machine = with_config(plane, "writable")
    machine.plane.config.chmod(0o666)
    return asked(machine)


def read_only(plane: Plane) -> list[Found]:
    machine = plane.machine()
    with mounted(machine.data, "-o", "ro,mode=700"):
        return asked(machine)


def full(plane: Plane) -> list[Found]:
    machine = plane.machine()
    with mounted(machine.data, "-o", "size=64k,mode=700"):
        return asked(machine)


def promotes(plane: Plane) -> list[Found]:
    """A renewal that was cut between identity.json and the rename."""
    machine = joined(plane)
    (machine.data / "node.key").rename(machine.data / NEXT)
    return asked(machine)


def removes(plane: Plane) -> list[Found]:
    machine = joined(plane)
    key = machine.data / NEXT
    words = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)]
    subprocess.run(words, check=True, capture_output=True)
    key.chmod(0o600)
    return asked(machine)


def key_in_tpm(plane: Plane) -> list[Found]:
    with tpm.fresh() as swtpm:
        return asked(tpm.joined(plane, swtpm), env=tpm.with_keys(swtpm))


def key_beside_tpm(plane: Plane) -> list[Found]:
    machine = joined(plane)
    with tpm.fresh() as swtpm:
        return asked(machine, env=tpm.with_keys(swtpm))


def key_beside_tpm_with_password(plane: Plane) -> list[Found]:
    """B34."""
    machine = joined(plane)
    with tpm.fresh() as swtpm:
        swtpm.tool("tpm2_changeauth", "-c", "owner", "secret")
        return asked(machine, env=tpm.with_keys(swtpm))


def no_such_tpm(plane: Plane) -> list[Found]:
    """A path by mistake."""
    env = {"BCD_FAKEHW_TPM": f"sim:{plane.home}/none", "BCD_FAKEHW_TPM_KEYS": "1"}
    return asked(joined(plane), env=env)


def no_tpm(plane: Plane) -> list[Found]:
    return asked(joined(plane), env={"BCD_FAKEHW_TPM": "none", "BCD_FAKEHW_TPM_KEYS": "1"})


def later(by: str) -> Callable[[Plane], list[Found]]:
    return lambda plane: asked(joined(plane), prefix=("faketime", by))


def corrupt_journal(plane: Plane) -> list[Found]:
    machine = joined(plane)
    (machine.data / "journal.db").write_text("not a journal")
    (machine.data / "journal.db").chmod(0o600)
    return asked(machine)


def own_journal(plane: Plane) -> list[Found]:
    machine = joined(plane)
    with_journal_of(machine, json.loads(machine.run("status", "--json").out)["nodeId"])
    return asked(machine)


def pending_unreadable(plane: Plane) -> list[Found]:
    machine = plane.machine()
    machine.data.mkdir(mode=0o700)
    (machine.data / "join.pending").write_text("{")
    (machine.data / "join.pending").chmod(0o600)
    return asked(machine)


def pending_begun(plane: Plane) -> list[Found]:
    machine = plane.machine()
    _begun(plane, machine)
    return asked(machine)


def pending_done(plane: Plane) -> list[Found]:
    """A join that was cut between its last two lines."""
    machine = plane.machine()
    kept = _begun(plane, machine)
    plane.admin("approvals", "approve", json.loads(kept)["pendingId"])
    assert machine.join().status == 0
    pending = machine.data / "join.pending"
    pending.write_bytes(kept)
    pending.chmod(0o600)
    return asked(machine)


def _begun(plane: Plane, machine: Machine) -> bytes:
    """join.pending of a join that was killed while it waited for approval."""
    process = machine.start("join")
    with process:
        process.stdin.write(plane.token("--require-approval").encode() + b"\n")
        process.stdin.close()
        assert b"waiting for approval" in process.stderr.readline()
        process.kill()
    return (machine.data / "join.pending").read_bytes()


@contextmanager
def node(machine: Machine, until: bytes) -> "Iterator[None]":
    """A node that runs and has logged `until`."""
    process = machine.start("node")
    with process:
        while until not in (line := process.stderr.readline()):
            assert line, "the node ended"
        yield
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def runs(plane: Plane) -> list[Found]:
    machine = joined(plane)
    with node(machine, b"session up"):
        return asked(machine)


def revoked(plane: Plane) -> list[Found]:
    machine = joined(plane)
    process = machine.start("node")
    with process:
        while b"session up" not in (line := process.stderr.readline()):
            assert line, "the node ended"
        plane.admin("nodes", "revoke", json.loads(machine.run("status", "--json").out)["nodeId"], "--reason", "stolen")
        process.communicate(timeout=20)
    assert process.returncode == 1
    return asked(machine)


def session_down(plane: Plane) -> list[Found]:
    with closed_port() as port:
        machine = with_config(plane, "gateway-gone", gateway=f'"127.0.0.1:{port}"')
        assert machine.join(plane.token()).status == 0
        with node(machine, b"no session"):
            return asked(machine)


def renewal_failed(plane: Plane) -> list[Found]:
    """A renewal that is due, and a gateway that is not there: seen by a node whose clock is late in the day."""
    with ExitStack() as stack:
        port = stack.enter_context(closed_port())
        machine = with_config(plane, "renewal-fails", gateway=f'"127.0.0.1:{port}"')
        assert machine.join(plane.token()).status == 0
        process = stack.enter_context(
            commands.start(*machine.words("node"), env=machine.env, prefix=("faketime", "+20 hours"))
        )
        while b"renewal failed" not in (line := process.stderr.readline()):
            assert line, "the node ended"
        found = asked(machine)
        # faketime stays between: the node is its child, and would outlive it.
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        process.communicate(timeout=20)
    return found


def unreachable(key: str) -> Callable[[Plane], list[Found]]:
    def act(plane: Plane) -> list[Found]:
        with closed_port() as port:
            return asked(with_config(plane, f"{key}-away", **{key: f'"127.0.0.1:{port}"'}))

    return act


PROVOKED: dict[Told, Callable[[Plane], list[Found]]] = {
    Told.CONFIG_INCOMPLETE: without("join_signing_key_pin"),
    Told.CONFIG_WRITABLE: config_writable,
    Told.CONFIG_OK: fresh,
    Told.ENCRYPTION_KEY_OK: fresh,
    Told.DIRECTORY_NONE: fresh,
    Told.DIRECTORY_READ_ONLY: read_only,
    Told.DIRECTORY_FULL: full,
    Told.DIRECTORY_OK: sound,
    Told.IDENTITY_OK: sound,
    Told.IDENTITY_PROMOTES: promotes,
    Told.IDENTITY_REMOVES: removes,
    Told.IDENTITY_RENEWS: renewal_failed,
    Told.NODE_KEY_NONE: fresh,
    Told.NODE_KEY_TPM: key_in_tpm,
    Told.NODE_KEY_FILE: no_tpm,
    Told.NODE_KEY_NO_SUCH_TPM: no_such_tpm,
    Told.NODE_KEY_UNUSED: sound,
    Told.NODE_KEY_MOVES: key_beside_tpm,
    Told.NODE_KEY_STAYS: key_beside_tpm_with_password,
    Told.TPM_UNUSED: sound,
    Told.TPM_NONE: no_tpm,
    Told.TPM_OK: key_in_tpm,
    Told.CERTIFICATE_NONE: fresh,
    Told.CERTIFICATE_EXPIRED: later("+2 days"),
    Told.CERTIFICATE_LATE: later("+20 hours"),
    Told.CERTIFICATE_OK: sound,
    Told.JOURNAL_NONE: fresh,
    Told.JOURNAL_CORRUPT: corrupt_journal,
    Told.JOURNAL_OK: own_journal,
    Told.PENDING_NONE: fresh,
    Told.PENDING_UNREADABLE: pending_unreadable,
    Told.PENDING_DONE: pending_done,
    Told.PENDING_BEGUN: pending_begun,
    Told.CLOCK_UNKNOWN: fresh,
    Told.CLOCK_BEHIND: later("-1 day"),
    Told.CLOCK_OK: sound,
    Told.NODE_NONE: fresh,
    Told.NODE_STOPPED: sound,
    Told.NODE_RUNS: runs,
    Told.NODE_REVOKED: revoked,
    Told.SESSION_NONE: sound,
    Told.SESSION_UP: runs,
    Told.SESSION_DOWN: session_down,
    Told.RENEWAL_NONE: sound,
    Told.RENEWAL_FAILED: renewal_failed,
    Told.JOIN_PORT_NONE: without("join"),
    Told.JOIN_PORT_TROUBLE: unreachable("join"),
    Told.JOIN_PORT_OK: fresh,
    Told.GATEWAY_NONE: without("gateway"),
    Told.GATEWAY_TROUBLE: unreachable("gateway"),
    Told.GATEWAY_OK: fresh,
}
ROOT = {Told.DIRECTORY_READ_ONLY, Told.DIRECTORY_FULL}


def pattern(template: str) -> "re.Pattern[str]":
    words = re.split(r"\{\w+\}", template)
    return re.compile(".*".join(re.escape(word) for word in words))


def test_every_finding_has_its_provocation() -> None:
    assert set(PROVOKED) == set(Told)


@pytest.mark.parametrize("told", PROVOKED, ids=lambda told: told.name)
def test_finding(told: Told, plane: Plane, seen: dict[Callable[[Plane], list[Found]], list[Found]]) -> None:
    if told in ROOT and os.geteuid() != 0:
        pytest.skip("needs root to bring the state about")
    act = PROVOKED[told]
    if act not in seen:
        seen[act] = act(plane)
    row = told.value
    [found] = [found for found in seen[act] if found["check"] == row.check]
    assert found["level"] == row.level
    assert pattern(row.message).fullmatch(found["message"])
    assert pattern(row.way_back).fullmatch(found["wayBack"])
    assert bool(found["wayBack"]) == (found["level"] in {Level.WARN, Level.FAIL}), "what is wrong has a way back"


@pytest.fixture(scope="module")
def seen() -> dict[Callable[[Plane], list[Found]], list[Found]]:
    """Reports by the state they were made in: many findings stand in one."""
    return {}


def test_the_report_for_people_says_what_the_document_says(plane: Plane) -> None:
    machine = joined(plane)
    lines = machine.run("doctor").out.splitlines()
    report = asked(machine)
    assert len(lines) == len(report)
    for line, found in zip(lines, report, strict=True):
        assert line.startswith(found["level"])
        assert found["check"] in line
        assert found["message"] in line


def test_the_parts_of_a_report_are_a_list_and_nothing_else(plane: Plane) -> None:
    for found in fresh(plane):
        assert set(found) == {"check", "level", "message", "wayBack"}
