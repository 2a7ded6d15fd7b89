"""Every message of bcd-controlplane, printed by a real process from a real state.

A message counts when it is in this table, which is complete or the suite fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bcd.controlplane.adapters.grpc.messages import encode_request
from bcd.controlplane.adapters.sqlite.schema import VERSION
from bcd.controlplane.domain.joining import JoinRequest
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.trust import MAX_ROOTS
from bcd.protocol.pki import ecdsa
from tests.fakes import commands, manufacturer
from tests.fakes.commands import Ran
from tests.fakes.controlplane.machine import Machine, Site, new_key
from tests.fakes.forged import shown_in_software
from tests.fakes.plane import Plane

NOBODY = 65534
# The patience of a command, 10 s, goes by in a sixtieth of it.
HURRIED = ("faketime", "-f", "+0 x60")


@dataclass(frozen=True)
class Scene:
    """`served` is a control plane that runs; `still` one that does not, to be copied and spoiled."""

    served: Plane
    still: Path
    home: Path

    def copy(self, name: str) -> Path:
        where = self.home / name
        shutil.copytree(self.still, where)
        return where

    def new(self, name: str) -> Path:
        where = self.home / name
        where.mkdir(mode=0o700)
        return where


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("messages")
    served = Plane(home / "served")
    served.home.mkdir()
    served.init()
    still = home / "still"
    shutil.copytree(served.directory, still)
    served.serve()
    served.node_config()
    try:
        yield Scene(served, still, home)
    finally:
        served.stop()


def run(*words: str, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Ran:
    return commands.run("bcd-controlplane", *words, prefix=prefix, env=env)


def init(where: Path | str, prefix: tuple[str, ...] = ()) -> Ran:
    return run("init", "--dir", str(where), "--trust-domain", "example.test", prefix=prefix)


def tokens(where: Path, prefix: tuple[str, ...] = ()) -> Ran:
    return run("token", "list", "--dir", str(where), prefix=prefix)


@contextmanager
def locked(where: Path) -> Iterator[None]:
    holder = subprocess.Popen(["flock", str(where), "sh", "-c", "echo held; cat"], stdin=-1, stdout=-1)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        holder.communicate(b"")


# ---- how each comes about


def usage(scene: Scene) -> Ran:
    return run("serve", "--dir", str(scene.still), "--https", "127.0.0.1:0")


def no_command(scene: Scene) -> Ran:
    return run("nods", "list", "--dir", str(scene.still))


def no_directory(scene: Scene) -> Ran:
    return tokens(scene.home / "none")


def not_a_directory(scene: Scene) -> Ran:
    (scene.home / "file").write_text("")
    return tokens(scene.home / "file")


def not_initialized(scene: Scene) -> Ran:
    return tokens(scene.new("empty"))


def already_initialized(scene: Scene) -> Ran:
    return init(scene.still)


def not_a_control_plane(scene: Scene) -> Ran:
    """Open to all, too, as /tmp is."""
    (scene.new("home") / "thesis.tex").write_text("")
    (scene.home / "home").chmod(0o755)
    return tokens(scene.home / "home")


def not_empty(scene: Scene) -> Ran:
    (scene.new("full") / "thesis.tex").write_text("")
    return init(scene.home / "full")


def directory_loose(scene: Scene) -> Ran:
    scene.copy("loose").chmod(0o750)
    return tokens(scene.home / "loose")


def directory_owner(scene: Scene) -> Ran:
    """Another user's directory: one given away, or for others than root the root directory."""
    if os.geteuid() != 0:
        return tokens(Path("/"))
    os.chown(scene.copy("theirs"), NOBODY, NOBODY)
    return tokens(scene.home / "theirs")


def locked_out(scene: Scene) -> Ran:
    with locked(scene.copy("held")):
        return tokens(scene.home / "held", prefix=HURRIED)


def served_already(scene: Scene) -> Ran:
    return run("serve", "--dir", str(scene.served.directory))


def file_broken(scene: Scene) -> Ran:
    (scene.copy("nokey") / "issuing-ca.key").unlink()
    return run("serve", "--dir", str(scene.home / "nokey"), "--join", "127.0.0.1:0")


def store_broken(scene: Scene) -> Ran:
    (scene.copy("nostore") / "store.db").write_bytes(b"not a database" * 1000)
    return tokens(scene.home / "nostore")


def store_newer(scene: Scene) -> Ran:
    with closing(sqlite3.connect(scene.copy("newer") / "store.db")) as store:
        store.execute(f"PRAGMA user_version = {VERSION + 1}")
    return tokens(scene.home / "newer")


def config_key(scene: Scene) -> Ran:
    file = scene.copy("typo") / "controlplane.toml"
    file.write_text(file.read_text().replace("leaf_lifetime", "leaf_life"))
    return tokens(scene.home / "typo")


def permission_denied(scene: Scene) -> Ran:
    """Nobody may make a directory there, root included."""
    return init("/sys/bcd-controlplane")


def no_space(scene: Scene) -> Ran:
    where = scene.new("small")
    script = 'mount -t tmpfs -o size=4k,mode=700 tmpfs "$1" && shift && exec "$@"'
    return init(where, prefix=("unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(where)))


def file_system(scene: Scene) -> Ran:
    return init(scene.home / "none" / "below")


def cannot_listen(scene: Scene) -> Ran:
    """Another control plane has the port: the kernel would let the two share it."""
    endpoint = json.loads((scene.served.directory / "endpoints.json").read_text())["join"]
    return run("serve", "--dir", str(scene.copy("taken")), "--join", endpoint)


def no_endpoint(scene: Scene) -> Ran:
    return run("node-config", "--dir", str(scene.still), "--out", str(scene.home / "out"))


def store_unavailable(scene: Scene) -> Ran:
    where = scene.copy("busy")
    with closing(sqlite3.connect(where / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        return run("token", "create", "--dir", str(where), "--site", "lab")


def no_answer(scene: Scene) -> Ran:
    server = scene.served.server
    assert server is not None
    server.send_signal(signal.SIGSTOP)
    try:
        return tokens(scene.served.directory, prefix=HURRIED)
    finally:
        server.send_signal(signal.SIGCONT)


@contextmanager
def answering(where: Path, answer: object) -> Iterator[None]:
    """A server that answers one command so."""
    with locked(where), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{os.open(where, os.O_PATH)}/admin.sock")
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                assert lines.readline()
                connection.sendall(json.dumps(answer).encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(10)


def other_version(scene: Scene) -> Ran:
    """Its tokens have not all that a token has here."""
    where = scene.copy("other version")
    with answering(where, {"result": [{"id": "aaaaaaaaaa"}]}):
        return tokens(where)


def no_such_token(scene: Scene) -> Ran:
    return run("token", "revoke", "aaaaaaaaaa", "--dir", str(scene.served.directory))


def no_such_node(scene: Scene) -> Ran:
    return run("nodes", "show", "n-none", "--dir", str(scene.served.directory))


def node_is_revoked(scene: Scene) -> Ran:
    serial = Site(scene.served.config.parent).join(Machine(), scene.served.token("--node-id", "stolen-1"))
    assert serial.issued
    scene.served.admin("nodes", "revoke", "stolen-1", "--reason", "stolen")
    return run("nodes", "renew-now", "stolen-1", "--dir", str(scene.served.directory))


def no_such_refusal(scene: Scene) -> Ran:
    return run("refusals", "show", "00" * 16, "--dir", str(scene.served.directory))


def no_such_approval(scene: Scene) -> Ran:
    return run("approvals", "approve", "a-none", "--dir", str(scene.served.directory))


def question(scene: Scene) -> str:
    reply = Site(scene.served.config.parent).join(Machine(), scene.served.token("--require-approval"))
    assert reply.pending.id
    return reply.pending.id


def already_decided(scene: Scene) -> Ran:
    asked = question(scene)
    scene.served.admin("approvals", "deny", asked)
    return run("approvals", "approve", asked, "--dir", str(scene.served.directory))


def approval_wants_site(scene: Scene) -> Ran:
    """A machine whose TPM a manufacturer vouches for, and nobody here has spoken of."""
    maker = manufacturer.root()
    file = scene.home / "maker.der"
    file.write_bytes(maker.der)
    scene.served.admin("ek-roots", "import", str(file))
    ek, machine = new_key(), Machine()
    evidence = shown_in_software(ek, new_key(), maker.ek(ecdsa.spki_of(ek.public_key())))
    request = JoinRequest("tpm", machine.csr, None, "", "node", machine.claims, evidence=evidence)
    reply = Site(scene.served.config.parent).send(encode_request(request))
    return run("approvals", "approve", reply.pending.id, "--dir", str(scene.served.directory))


def approval_lapsed(scene: Scene) -> Ran:
    """A week later, when the server does not run."""
    asked = question(scene)
    where = scene.home / "later"
    scene.served.stop()
    shutil.copytree(scene.served.directory, where)
    scene.served.serve()
    return run("approvals", "approve", asked, "--dir", str(where), prefix=("faketime", "+8 days"))


def no_such_root(scene: Scene) -> Ran:
    return run("trust", "remove-root", f"sha256:{'0' * 64}", "--dir", str(scene.served.directory))


def no_such_approver(scene: Scene) -> Ran:
    return run("trust", "remove-approver", "Nobody", "--dir", str(scene.served.directory))


def public_key(scene: Scene, name: str) -> str:
    file = scene.home / f"{name}.der"
    file.write_bytes(Machine().spki)
    return str(file)


def approver_known(scene: Scene) -> Ran:
    key = public_key(scene, "anne")
    scene.served.admin("trust", "add-approver", "Anne", key)
    return run("trust", "add-approver", "Anna", key, "--dir", str(scene.served.directory))


def bundle_full(scene: Scene) -> Ran:
    for number in range(MAX_ROOTS):
        scene.served.admin("trust", "add-root", public_key(scene, f"root-{number}"))
    return run("trust", "add-root", public_key(scene, "one-more"), "--dir", str(scene.served.directory))


def not_a_public_key(scene: Scene) -> Ran:
    """The mistake that is dangerous: the private half."""
    private = str(scene.still / "issuing-ca.key")
    return run("trust", "add-root", private, "--dir", str(scene.served.directory))


def node_of_another_site(scene: Scene) -> Ran:
    Site(scene.served.config.parent).join(Machine(), scene.served.token("--node-id", "sited"))
    return run("token", "create", "--site", "barn", "--node-id", "sited", "--dir", str(scene.served.directory))


def no_such_ek_root(scene: Scene) -> Ran:
    return run("ek-roots", "remove", "0" * 64, "--dir", str(scene.served.directory))


def no_such_ek(scene: Scene) -> Ran:
    return run("ek", "remove", "0" * 64, "--dir", str(scene.served.directory))


def not_a_manufacturer_ca(scene: Scene) -> Ran:
    """The control plane's own leaf is nobody's manufacturer."""
    serving = str(scene.served.directory / "serving.pem")
    return run("ek-roots", "import", serving, "--dir", str(scene.served.directory))


def ek_file_line(scene: Scene) -> Ran:
    file = scene.home / "eks.csv"
    file.write_text(f"ek,site\n{'ab' * 32},lab\n{'ab' * 31},lab\n")
    return run("ek", "import", str(file), "--dir", str(scene.served.directory))


def internal(scene: Scene) -> Ran:
    """A library that does not work."""
    package = scene.new("broken") / "cryptography"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('of no use')\n")
    return run("token", "list", "--dir", str(scene.still), env={"PYTHONPATH": str(package.parent)})


@dataclass(frozen=True)
class Provoked:
    """The exit status that goes with the message, and how to get it."""

    exit: int
    act: Callable[[Scene], Ran]


PROVOKED = {
    Message.USAGE: Provoked(2, usage),
    Message.NO_COMMAND: Provoked(2, no_command),
    Message.NO_DIRECTORY: Provoked(78, no_directory),
    Message.NOT_A_DIRECTORY: Provoked(78, not_a_directory),
    Message.NOT_INITIALIZED: Provoked(78, not_initialized),
    Message.ALREADY_INITIALIZED: Provoked(77, already_initialized),
    Message.NOT_A_CONTROL_PLANE: Provoked(78, not_a_control_plane),
    Message.NOT_EMPTY: Provoked(78, not_empty),
    Message.DIRECTORY_LOOSE: Provoked(78, directory_loose),
    Message.DIRECTORY_OWNER: Provoked(77, directory_owner),
    Message.LOCKED: Provoked(75, locked_out),
    Message.SERVED_ALREADY: Provoked(77, served_already),
    Message.FILE_BROKEN: Provoked(78, file_broken),
    Message.STORE_BROKEN: Provoked(78, store_broken),
    Message.STORE_NEWER: Provoked(78, store_newer),
    Message.CONFIG_KEY: Provoked(78, config_key),
    Message.PERMISSION_DENIED: Provoked(77, permission_denied),
    Message.NO_SPACE: Provoked(75, no_space),
    Message.FILE_SYSTEM: Provoked(78, file_system),
    Message.CANNOT_LISTEN: Provoked(75, cannot_listen),
    Message.NO_ENDPOINT: Provoked(78, no_endpoint),
    Message.STORE_UNAVAILABLE: Provoked(75, store_unavailable),
    Message.NO_ANSWER: Provoked(75, no_answer),
    Message.OTHER_VERSION: Provoked(75, other_version),
    Message.NO_SUCH_TOKEN: Provoked(2, no_such_token),
    Message.NO_SUCH_NODE: Provoked(2, no_such_node),
    Message.NODE_IS_REVOKED: Provoked(77, node_is_revoked),
    Message.NO_SUCH_REFUSAL: Provoked(2, no_such_refusal),
    Message.NO_SUCH_APPROVAL: Provoked(2, no_such_approval),
    Message.ALREADY_DECIDED: Provoked(77, already_decided),
    Message.APPROVAL_LAPSED: Provoked(77, approval_lapsed),
    Message.APPROVAL_WANTS_SITE: Provoked(2, approval_wants_site),
    Message.NO_SUCH_ROOT: Provoked(2, no_such_root),
    Message.NO_SUCH_APPROVER: Provoked(2, no_such_approver),
    Message.APPROVER_KNOWN: Provoked(77, approver_known),
    Message.BUNDLE_FULL: Provoked(77, bundle_full),
    Message.NOT_A_PUBLIC_KEY: Provoked(2, not_a_public_key),
    Message.NODE_OF_ANOTHER_SITE: Provoked(77, node_of_another_site),
    Message.NO_SUCH_EK_ROOT: Provoked(2, no_such_ek_root),
    Message.NO_SUCH_EK: Provoked(2, no_such_ek),
    Message.NOT_A_MANUFACTURER_CA: Provoked(2, not_a_manufacturer_ca),
    Message.EK_FILE_LINE: Provoked(2, ek_file_line),
    Message.INTERNAL: Provoked(70, internal),
}


def pattern(message: Message) -> re.Pattern[str]:
    """What the message looks like with its fields filled in."""
    return re.compile(".+?".join(re.escape(word) for word in re.split(r"\{\w+\}", message.value)))


def test_every_message_has_its_provocation() -> None:
    assert set(PROVOKED) == set(Message)


@pytest.mark.parametrize("message", PROVOKED, ids=lambda message: message.name)
def test_message(message: Message, scene: Scene) -> None:
    """Standard error is the documented message alone, and the exit status is its own."""
    provoked = PROVOKED[message]
    done = provoked.act(scene)
    assert pattern(message).fullmatch(done.err.removesuffix("\n")), done.err
    assert done.err.count("\n") == 1
    assert done.status == provoked.exit
    assert done.out == ""
    others = [other for other in PROVOKED if other is not message and pattern(other).fullmatch(done.err.strip())]
    # "{path}: {what}: …" fits many a line; a message that says more must not be taken for another that does.
    assert all(len(other.value) < len(message.value) for other in others)


def test_a_server_that_cannot_read_the_command_is_of_another_version(scene: Scene) -> None:
    where = scene.copy("older server")
    failure = {"failure": "Internal", "message": "INTERNAL", "fields": {"what": "Malformed"}}
    with answering(where, failure):
        done = tokens(where)
    assert (done.status, done.out) == (75, "")
    assert pattern(Message.OTHER_VERSION).fullmatch(done.err.removesuffix("\n"))


def test_a_defect_of_the_server_is_not_taken_for_another_version(scene: Scene) -> None:
    where = scene.copy("defect")
    with answering(where, {"failure": "Internal", "message": "INTERNAL", "fields": {"what": "KeyError"}}):
        done = tokens(where)
    assert (done.status, done.err) == (
        70,
        "internal error (KeyError): please report it; what was acknowledged before is kept\n",
    )
