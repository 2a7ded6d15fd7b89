"""Every message of bcd, printed by a real process from a real state.

A message counts when it is here: `docs/messages.md` is made from this table (tests/e2e/messages/test_page.py).
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bcd.domain.model.failures import Message
from tests.e2e.messages import attested, tpm
from tests.fakes import commands, pki, scripted_server
from tests.fakes.commands import Ran
from tests.fakes.outside import open_folder, until
from tests.fakes.plane import Machine, Plane, control_plane

OTHER_PIN = "sha256:" + "0" * 64
NOBODY = 65534


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    # Somebody who is not root has to get as far as the files.
    with open_folder() as home, control_plane(home) as serving:
        yield serving


# ---- states


def joined(plane: Plane) -> Machine:
    machine = plane.machine()
    done = machine.join(plane.token())
    assert done.status == 0, done.err
    return machine


def with_config(plane: Plane, name: str, **keys: str) -> Machine:
    """A machine whose configuration differs in some keys; an empty text leaves the key out."""
    folder = plane.home / name
    folder.mkdir()
    for path in plane.config.parent.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    text = (folder / "config.toml").read_text()
    for key, value in keys.items():
        text = re.sub(rf"(?m)^{key} = .*\n", f"{key} = {value}\n" if value else "", text)
    (folder / "config.toml").write_text(text)
    other = Plane(plane.home / name, server=None)
    other.config.parent.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            path.rename(other.config.parent / path.name)
    return Machine(other, f"{name}-node")


@contextmanager
def scripted(plane: Plane, name: str, answer: scripted_server.Answer) -> Iterator[Machine]:
    with scripted_server.serving(plane.directory, answer) as port:
        yield with_config(plane, name, join=f'"127.0.0.1:{port}"')


@contextmanager
def mounted(target: Path, *options: str) -> Iterator[None]:
    target.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(target)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)


def unprivileged(*words: str) -> Ran:
    return commands.run(*words, prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"])


# ---- how each message comes about


def not_joined(plane: Plane) -> Ran:
    return plane.machine().run("status")


def key_mismatch(plane: Plane) -> Ran:
    """B06: the key is there and empty."""
    machine = joined(plane)
    (machine.data / "node.key").write_bytes(b"")
    return machine.run("join")


def identity_unreadable(plane: Plane) -> Ran:
    """B04."""
    machine = joined(plane)
    (machine.data / "identity.json").write_bytes(b"")
    return machine.run("join")


def expired(plane: Plane) -> Ran:
    machine = joined(plane)
    return commands.run(*machine.words("join"), env=machine.env, prefix=["faketime", "+2 days"])


def revoked_before(plane: Plane) -> Ran:
    machine, process = _running(plane)
    plane.admin("nodes", "revoke", json.loads(machine.run("status", "--json").out)["nodeId"], "--reason", "stolen")
    assert _ended(process).status == 1
    return machine.run("join")


def permission_denied(plane: Plane) -> Ran:
    return unprivileged(*joined(plane).words("status"))


def not_a_directory(plane: Plane) -> Ran:
    machine = plane.machine()
    machine.data.write_text("")
    return machine.join(plane.token())


def directory_loose(plane: Plane) -> Ran:
    machine = joined(plane)
    machine.data.chmod(0o755)
    return machine.run("status")


def directory_owner(plane: Plane) -> Ran:
    machine = joined(plane)
    os.chown(machine.data, NOBODY, NOBODY)
    return machine.run("status")


def file_loose(plane: Plane) -> Ran:
    machine = joined(plane)
    (machine.data / "node.key").chmod(0o640)
    return machine.run("status")


def file_owner(plane: Plane) -> Ran:
    machine = joined(plane)
    os.chown(machine.data / "identity.json", NOBODY, NOBODY)
    return machine.run("status")


def not_a_file(plane: Plane) -> Ran:
    machine = plane.machine()
    (machine.data / "join.pending").mkdir(parents=True)
    machine.data.chmod(0o700)
    return machine.join(plane.token())


def no_space(plane: Plane) -> Ran:
    """B08."""
    machine = plane.machine()
    with mounted(machine.data, "-o", "size=64k,mode=700"):
        filler = os.open(machine.data / "filler", os.O_WRONLY | os.O_CREAT)
        with pytest.raises(OSError, match="No space"):
            while True:
                os.write(filler, b"x" * 4096)
        os.close(filler)
        return machine.join(plane.token())


def read_only(plane: Plane) -> Ran:
    """B10."""
    machine = plane.machine()
    with mounted(machine.data, "-o", "ro,mode=700"):
        return machine.join(plane.token())


def file_system(plane: Plane) -> Ran:
    machine = plane.machine()
    return commands.run(*machine.words("status"), "--data-dir", "/" + "x" * 300, env=machine.env)


def locked(plane: Plane) -> Ran:
    """The 45 s it waits go by on a faked clock that runs faster."""
    machine = plane.machine()
    machine.data.mkdir(mode=0o700)
    holder = subprocess.Popen(["flock", str(machine.data), "cat"], stdin=subprocess.PIPE)
    try:
        while subprocess.run(["flock", "-n", str(machine.data), "true"], check=False).returncode == 0:
            pass
        env = machine.env | {"FAKETIME_DONT_RESET": "1"}
        return commands.run(*machine.words("join"), stdin=b"x" * 20, env=env, prefix=["faketime", "-f", "+0 x60"])
    finally:
        holder.communicate(b"")


def run_as_root(plane: Plane) -> Ran:
    return unprivileged("bcd", "join", "--config", str(plane.config))


def usage(plane: Plane) -> Ran:
    return plane.machine().run("join", "--rol=node")


def positional(plane: Plane) -> Ran:
    return plane.machine().run("join", plane.token())


def no_argument(plane: Plane) -> Ran:
    return plane.machine().run("status", "now")


def no_command(plane: Plane) -> Ran:
    return commands.run("bcd", "jion")


def two_credentials(plane: Plane) -> Ran:
    token = plane.home / "two.token"
    token.write_text(plane.token())
    token.chmod(0o600)
    return plane.machine().run("join", "--token-file", str(token), env={"BCD_JOIN_TOKEN": plane.token()})


def token_malformed(plane: Plane) -> Ran:
    """B52."""
    return plane.machine().join("not a token, nor long")


def token_file(plane: Plane) -> Ran:
    token = plane.home / "loose.token"
    token.write_text(plane.token())
    token.chmod(0o644)
    return plane.machine().run("join", "--token-file", str(token))


def no_token(plane: Plane) -> Ran:
    return plane.machine().run("join", stdin=subprocess.DEVNULL)


def reset_needs_yes(plane: Plane) -> Ran:
    return joined(plane).run("join", "--reset")


def no_config(plane: Plane) -> Ran:
    return commands.run("bcd-fakehw", "status", "--config", str(plane.home / "none.toml"))


def config_syntax(plane: Plane) -> Ran:
    (plane.home / "broken.toml").write_text("data_dir = \n")
    return commands.run("bcd-fakehw", "status", "--config", str(plane.home / "broken.toml"))


def config_key(plane: Plane) -> Ran:
    return with_config(plane, "typo", serving_ca_spki_pin='"sha256:abc"').run("status")


def encryption_key(plane: Plane) -> Ran:
    machine = with_config(plane, "jwk")
    (machine.plane.config.parent / "join-encryption.jwk").write_text("{}")
    return machine.join(plane.token())


def encryption_pin(plane: Plane) -> Ran:
    return with_config(plane, "enc", join_encryption_key_pin=f'"{OTHER_PIN}"').join(plane.token())


def serving_pin(plane: Plane) -> Ran:
    """B55."""
    return with_config(plane, "serving", serving_ca_spki_pin=f'"{OTHER_PIN}"').join(plane.token())


def signing_pin(plane: Plane) -> Ran:
    return with_config(plane, "signing", join_signing_key_pin=f'"{OTHER_PIN}"').join(plane.token())


def with_journal_of(machine: Machine, node: str) -> None:
    with sqlite3.connect(machine.data / "journal.db") as journal:
        journal.execute("CREATE TABLE meta (node_id TEXT, journal_id TEXT, server_time TEXT)")
        journal.execute("INSERT INTO meta VALUES (?, 'j', NULL)", (node,))
    journal.close()
    (machine.data / "journal.db").chmod(0o600)


def foreign_journal(plane: Plane) -> Ran:
    machine = joined(plane)
    with_journal_of(machine, "n-another")
    return machine.run("status")


def join_refused(plane: Plane) -> Ran:
    token = plane.token()
    assert plane.machine().join(token).status == 0
    return plane.machine().join(token)


def other_node(plane: Plane) -> Ran:
    return joined(plane).run("join", "--node-id", "another")


def gave_up(plane: Plane) -> Ran:
    with scripted(plane, "busy", scripted_server.pushback("0")) as machine:
        return machine.join(plane.token())


def no_retry(plane: Plane) -> Ran:
    with scripted(plane, "enough", scripted_server.pushback("-1")) as machine:
        return machine.join(plane.token())


def bad_answer(plane: Plane) -> Ran:
    """A statement under the pinned key, about somebody else's request."""
    answer = scripted_server.pb.JoinReply()
    answer.issued.ParseFromString(pki.join_response())
    with scripted(plane, "wrong", lambda _request, _context: answer) as machine:
        config = machine.plane.config
        pin = f'join_signing_key_pin = "{pki.PINS}"'
        config.write_text(re.sub(r"(?m)^join_signing_key_pin = .*$", pin, config.read_text()))
        return machine.join(plane.token())


def challenge(plane: Plane) -> Ran:
    """One for a TPM, to a machine that came with a token."""
    answer = scripted_server.pb.JoinReply()
    answer.server_time.GetCurrentTime()
    asked = answer.challenge
    asked.id, asked.attestor, asked.tpm.nonce = "c-1", "tpm", bytes(32)
    asked.not_after.FromSeconds(answer.server_time.seconds + 60)
    with scripted(plane, "challenged", lambda _request, _context: answer) as machine:
        return machine.join(plane.token())


def pending_unreadable(plane: Plane) -> Ran:
    machine = plane.machine()
    machine.data.mkdir(mode=0o700)
    (machine.data / "join.pending").write_text("{")
    return machine.join(plane.token())


def _waiting(plane: Plane, machine: Machine) -> "subprocess.Popen[bytes]":
    """A join that waits for approval."""
    process = machine.start("join")
    assert process.stdin is not None
    process.stdin.write(plane.token("--require-approval").encode() + b"\n")
    process.stdin.close()
    assert process.stderr is not None
    assert b"waiting for approval" in process.stderr.readline()
    return process


def pending_other(plane: Plane) -> Ran:
    machine = plane.machine()
    process = _waiting(plane, machine)
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return machine.run("join", "--role", "site")


def interrupted(plane: Plane) -> Ran:
    process = _waiting(plane, plane.machine())
    process.send_signal(signal.SIGINT)
    status = process.wait(20)
    with process.stdout, process.stderr:
        return Ran(status, process.stdout.read().decode(), process.stderr.read().decode())


def _running(plane: Plane) -> "tuple[Machine, subprocess.Popen[bytes]]":
    machine = joined(plane)
    identity = machine.data / "identity.json"
    before = identity.read_bytes()
    process = machine.start("node")
    assert process.stderr is not None
    while b"session up" not in (line := process.stderr.readline()):
        assert line, "the node ended"
    until(lambda: identity.read_bytes() != before, "what the Welcome told to be stored", process)
    return machine, process


def _ended(process: "subprocess.Popen[bytes]") -> Ran:
    out, err = process.communicate(timeout=20)
    return Ran(process.returncode, out.decode(), err.decode())


def revoked(plane: Plane) -> Ran:
    machine, process = _running(plane)
    node = json.loads(machine.run("status", "--json").out)["nodeId"]
    plane.admin("nodes", "revoke", node, "--reason", "stolen")
    return _ended(process)


def another_leaf(plane: Plane) -> Ran:
    """Revoked for another disk's identity: the notice comes while this machine has joined anew already."""
    machine, process = _running(plane)
    node = json.loads(machine.run("status", "--json").out)["nodeId"]
    process.send_signal(signal.SIGSTOP)
    for path in ("identity.json", "node.key"):
        (machine.data / path).rename(machine.data / f"{path}.reset-by-hand")
    plane.admin("nodes", "revoke", node, "--reason", "moved on")
    process.send_signal(signal.SIGCONT)
    return _ended(process)


def second_node(plane: Plane) -> Ran:
    machine, process = _running(plane)
    done = machine.run("node")
    process.send_signal(signal.SIGTERM)
    assert _ended(process).status == 0
    return done


def internal(plane: Plane) -> Ran:
    """A part of bcd that cannot be imported."""
    folder = plane.home / "broken" / "cryptography"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('no such library')\n")
    return commands.run("bcd", "status", env={"PYTHONPATH": str(folder.parent)})


@dataclass(frozen=True)
class Provoked:
    """The exit status that goes with the message, and how to get it. `root`: only root can make the state."""

    exit: int
    act: Callable[[Plane], Ran]
    root: bool = False


PROVOKED = {
    Message.NOT_JOINED: Provoked(75, not_joined),
    Message.KEY_MISMATCH: Provoked(76, key_mismatch),
    Message.KEY_MISMATCH_TPM: Provoked(76, tpm.key_mismatch),
    Message.IDENTITY_UNREADABLE: Provoked(76, identity_unreadable),
    Message.EXPIRED: Provoked(0, expired),
    Message.REVOKED_BEFORE: Provoked(0, revoked_before),
    Message.KEY_UNAVAILABLE: Provoked(75, tpm.key_unavailable),
    Message.PERMISSION_DENIED: Provoked(77, permission_denied, root=True),
    Message.NOT_A_DIRECTORY: Provoked(78, not_a_directory),
    Message.DIRECTORY_LOOSE: Provoked(78, directory_loose),
    Message.DIRECTORY_OWNER: Provoked(78, directory_owner, root=True),
    Message.FILE_LOOSE: Provoked(78, file_loose),
    Message.FILE_OWNER: Provoked(78, file_owner, root=True),
    Message.NOT_A_FILE: Provoked(78, not_a_file),
    Message.NO_SPACE: Provoked(75, no_space, root=True),
    Message.READ_ONLY: Provoked(75, read_only, root=True),
    Message.FILE_SYSTEM: Provoked(75, file_system),
    Message.LOCKED: Provoked(75, locked),
    Message.RUN_AS_ROOT: Provoked(77, run_as_root, root=True),
    Message.USAGE: Provoked(2, usage),
    Message.POSITIONAL: Provoked(2, positional),
    Message.NO_ARGUMENT: Provoked(2, no_argument),
    Message.NO_COMMAND: Provoked(2, no_command),
    Message.TWO_CREDENTIALS: Provoked(2, two_credentials),
    Message.TOKEN_MALFORMED: Provoked(2, token_malformed),
    Message.TOKEN_FILE: Provoked(2, token_file),
    Message.NO_TOKEN: Provoked(2, no_token),
    Message.RESET_NEEDS_YES: Provoked(2, reset_needs_yes),
    Message.NO_CONFIG: Provoked(78, no_config),
    Message.CONFIG_SYNTAX: Provoked(78, config_syntax),
    Message.CONFIG_KEY: Provoked(78, config_key),
    Message.ENCRYPTION_KEY: Provoked(78, encryption_key),
    Message.ENCRYPTION_PIN: Provoked(78, encryption_pin),
    Message.SERVING_PIN: Provoked(78, serving_pin),
    Message.SIGNING_PIN: Provoked(78, signing_pin),
    Message.FOREIGN_JOURNAL: Provoked(78, foreign_journal),
    Message.JOIN_REFUSED: Provoked(77, join_refused),
    Message.TPM_JOIN_REFUSED: Provoked(77, attested.refused),
    Message.CHALLENGE: Provoked(75, challenge),
    Message.OTHER_NODE: Provoked(77, other_node),
    Message.GAVE_UP: Provoked(75, gave_up),
    Message.NO_RETRY: Provoked(75, no_retry),
    Message.BAD_ANSWER: Provoked(75, bad_answer),
    Message.PENDING_UNREADABLE: Provoked(76, pending_unreadable),
    Message.PENDING_OTHER: Provoked(78, pending_other),
    Message.INTERRUPTED: Provoked(75, interrupted),
    Message.REVOKED: Provoked(1, revoked),
    Message.ANOTHER_LEAF: Provoked(75, another_leaf),
    Message.SECOND_NODE: Provoked(75, second_node),
    Message.INTERNAL: Provoked(70, internal),
    Message.TPM_ABSENT: Provoked(75, tpm.absent),
    Message.TPM_NOT_ONE: Provoked(78, tpm.not_one),
    Message.TPM_OLD: Provoked(75, tpm.old),
    Message.TPM_OPEN: Provoked(75, tpm.forbidden, root=True),
    Message.TPM_BUSY: Provoked(75, tpm.busy),
    Message.TPM_NOT_STARTED: Provoked(75, tpm.not_started),
    Message.TPM_PASSWORD: Provoked(75, tpm.password),
    Message.TPM_HIERARCHY: Provoked(75, tpm.hierarchy_off),
    Message.TPM_LOCKOUT: Provoked(75, tpm.locked_out),
    Message.TPM_FULL: Provoked(75, tpm.full),
    Message.TPM_FAILED: Provoked(75, tpm.failed),
    Message.FAKEHW_TPM: Provoked(78, tpm.no_software_tpm),
}
# A node that says one of these goes on: they are in its log and in `bcd status`, and nothing exits with them.
LOGGED: dict[Message, Callable[[Plane], attested.Logged]] = {
    Message.RENEWAL_TPM_AWAY: attested.tpm_away,
    Message.RENEWAL_ANOTHER_AK: attested.another_ak,
    Message.RENEWAL_NO_NEXT_KEY: attested.no_next_key,
    Message.RENEWAL_NOT_CERTIFIED: attested.not_certified,
}


def pattern(message: Message) -> "re.Pattern[str]":
    """What the message looks like with its fields filled in."""
    words = re.split(r"\{\w+\}", message.value)
    return re.compile(".+?".join(re.escape(word) for word in words))


def test_every_message_has_its_provocation() -> None:
    assert set(PROVOKED) | set(LOGGED) == set(Message)
    assert not set(PROVOKED) & set(LOGGED)


@pytest.mark.parametrize("message", PROVOKED, ids=lambda message: message.name)
def test_message(message: Message, plane: Plane) -> None:
    """The last line on standard error is the documented message alone, and the exit status is its own."""
    provoked = PROVOKED[message]
    if provoked.root and os.geteuid() != 0:
        pytest.skip("needs root to bring the state about")
    done = provoked.act(plane)
    assert pattern(message).fullmatch(done.last_error), done.err
    assert done.status == provoked.exit
    assert "Traceback" not in done.err
    others = [other for other in PROVOKED if other is not message and pattern(other).fullmatch(done.last_error)]
    # "{path}: {key}: {why}" fits many a line; a message that says more must not be taken for another that does.
    assert all(len(other.value) < len(message.value) for other in others)


@pytest.mark.parametrize("message", LOGGED, ids=lambda message: message.name)
def test_logged_message(message: Message, plane: Plane) -> None:
    """It is all that the log line gives as the reason, `bcd status` says it too, and the node goes on."""
    logged = LOGGED[message](plane)
    assert pattern(message).fullmatch(logged.why)
    assert logged.told == logged.why
    [line] = [line for line in logged.shown if line.startswith("renewal failed: ")]
    assert line.endswith(f": {logged.why}")
    assert logged.lived
    others = [other for other in LOGGED if other is not message and pattern(other).fullmatch(logged.why)]
    assert others == []
