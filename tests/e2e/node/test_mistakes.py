"""A person who gets it wrong: one line that says what, where and the way back; the documented exit; no traceback."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.outside import AS_NOBODY, NOBODY, closed_port, ended, line_with, openssl, tree
from tests.fakes.plane import Machine, Plane

TOKEN = "bcjt_abcdefghij_" + "A" * 43
PIN = re.compile(r'^(\w+_pin) = "(.*)"$', re.MULTILINE)
REGAIN = "get it again with bcd-controlplane node-config, and put it beside config.toml"


def edit(pattern: str, new: str) -> Callable[[Path], None]:
    def change(etc: Path) -> None:
        config = etc / "config.toml"
        text, times = re.subn(pattern, new, config.read_text(), flags=re.MULTILINE)
        assert times
        config.write_text(text)

    return change


def swap(one: str, other: str) -> Callable[[Path], None]:
    def change(etc: Path) -> None:
        config = etc / "config.toml"
        pins = dict(PIN.findall(config.read_text()))
        mixed = pins | {one: pins[other], other: pins[one]}
        config.write_text(PIN.sub(lambda found: f'{found[1]} = "{mixed[found[1]]}"', config.read_text()))

    return change


def jwk(how: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda etc: how(etc / "join-encryption.jwk")


def _private(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"d": "A" * 43}))


def _other_key(path: Path) -> None:
    der = openssl("pkey", "-pubout", "-outform", "DER", stdin=openssl("genpkey", "-algorithm", "EC", "-pkeyopt", _P256))
    value = json.loads(path.read_text())
    for name, part in (("x", der[-64:-32]), ("y", der[-32:])):
        value[name] = openssl("base64", "-A", stdin=part).decode().translate({43: "-", 47: "_"}).rstrip("=")
    value.pop("kid", None)
    path.write_text(json.dumps(value))


_P256 = "ec_paramgen_curve:P-256"


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


WANT_PIN = "malformed pin: want sha256: and 64 lower-case hexadecimal digits"
# What is done to a good configuration, and the line; `{etc}` is its directory, `{p}` any pin.
CONFIGURATIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (
        lambda etc: (etc / "config.toml").unlink(),
        "{etc}/config.toml: no such file: make one with bcd-controlplane node-config, or name it with --config",
    ),
    "directory": (
        lambda etc: _directory(etc / "config.toml"),
        "{etc}/config.toml: not a configuration: is a directory: name the file in it with --config",
    ),
    "not TOML": (
        edit("^join = .*", "join = 127.0.0.1"),
        "{etc}/config.toml: not a configuration: not TOML: Expected newline or end of document after a statement "
        "(at line 8, column 13)",
    ),
    "not text": (
        lambda etc: (etc / "config.toml").write_bytes(b"\xff\xfe"),
        "{etc}/config.toml: not a configuration: not UTF-8",
    ),
    "a misspelt key": (
        edit("^serving_ca_spki_pin", "serving_ca_pin"),
        "{etc}/config.toml: serving_ca_pin: unknown key (did you mean serving_ca_spki_pin?) (known: data_dir, "
        "join, gateway, serving_ca_spki_pin, "
        "join_encryption_key_pin, join_signing_key_pin, command_root_sha256, tpm.device, tpm.wait_s, helper.user, "
        "helper.socket, helper.record_dir, log.level, log.format)",
    ),
    "a missing pin": (
        edit("^join_signing_key_pin.*", ""),
        "{etc}/config.toml: join_signing_key_pin: missing: bcd-controlplane node-config writes it",
    ),
    "no join port": (
        edit("^join = .*", ""),
        "{etc}/config.toml: join: missing: bcd-controlplane node-config writes it",
    ),
    "no port in it": (
        edit("^join = .*", 'join = "127.0.0.1"'),
        "{etc}/config.toml: join: want HOST:PORT, an IPv6 address in brackets",
    ),
    "a short serving pin": (
        edit('(serving_ca_spki_pin = "sha256:..)..', r"\1"),
        "{etc}/config.toml: serving_ca_spki_pin: " + WANT_PIN,
    ),
    "an upper-case pin": (
        edit('join_encryption_key_pin = "sha256:..', 'join_encryption_key_pin = "sha256:AB'),
        "{etc}/config.toml: join_encryption_key_pin: " + WANT_PIN,
    ),
    "another hash": (
        edit('join_signing_key_pin = "sha256', 'join_signing_key_pin = "sha512'),
        "{etc}/config.toml: join_signing_key_pin: " + WANT_PIN,
    ),
    "serving and signing pin swapped": (
        swap("serving_ca_spki_pin", "join_signing_key_pin"),
        "serving CA pin mismatch: have {p}, presented {p}; get the new pin from bcd-controlplane node-config "
        "and put it in {etc}/config.toml as serving_ca_spki_pin",
    ),
    "encryption and signing pin swapped": (
        swap("join_encryption_key_pin", "join_signing_key_pin"),
        "join encryption key pin mismatch: have {p}, join-encryption.jwk holds {p}; "
        "get both again with bcd-controlplane node-config",
    ),
    "no key to seal to": (
        jwk(Path.unlink),
        f"{{etc}}/join-encryption.jwk: no such file or directory: {REGAIN}",
    ),
    "garbage to seal to": (
        jwk(lambda path: path.write_text("-----BEGIN PUBLIC KEY-----")),
        f"{{etc}}/join-encryption.jwk: is not JSON: {REGAIN}",
    ),
    "a directory to seal to": (jwk(_directory), f"{{etc}}/join-encryption.jwk: is a directory: {REGAIN}"),
    "a private key to seal to": (jwk(_private), f"{{etc}}/join-encryption.jwk: holds a private key: {REGAIN}"),
    "another key to seal to": (
        jwk(_other_key),
        "join encryption key pin mismatch: have {p}, join-encryption.jwk holds {p}; "
        "get both again with bcd-controlplane node-config",
    ),
    "a user there is not": (
        edit(r"\Z", '\n[helper]\nuser = "no-such-user"\n'),
        "{etc}/config.toml: helper.user: there is no user no-such-user: useradd --system no-such-user",
    ),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_wrong_configuration_is_one_line(case: str, plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """Issue 2: "bad input of any kind: one line that says what, where and the way back"; decision 18: 78."""
    shutil.copytree(plane.config.parent, etc := tmp_path / "etc")
    change, line = CONFIGURATIONS[case]
    change(etc)
    done = machine.join(TOKEN, "--config", str(etc / "config.toml"))
    said = re.sub(r"sha256:[0-9a-f]{64}", "{p}", done.err)
    assert (done.status, done.out, said) == (78, "", line.replace("{etc}", str(etc)) + "\n")
    assert "identity.json" not in machine.files()


def test_a_signing_pin_that_is_another_names_both_and_the_same_join_goes_on(
    plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """Protocol, check order: the answer is not taken; decision 8: nor is it lost with the token used up."""
    shutil.copytree(plane.config.parent, etc := tmp_path / "etc")
    edit('join_signing_key_pin = ".*"', f'join_signing_key_pin = "sha256:{"0" * 64}"')(etc)
    done = machine.join(plane.token(), "--config", str(etc / "config.toml"))
    found = dict(PIN.findall(plane.config.read_text()))
    line = (
        f"join signing key pin mismatch: have sha256:{'0' * 64}, presented {found['join_signing_key_pin']}; "
        "get the new pin from bcd-controlplane node-config and put it in config.toml as join_signing_key_pin\n"
    )
    assert (done.status, done.out, done.err) == (78, "", line)
    assert list(machine.files()) == ["join.pending"]
    assert machine.join().status == 0


@pytest.mark.parametrize("name", ["config.toml", "join-encryption.jwk"])
def test_what_may_not_be_read_is_named(name: str, plane: Plane) -> None:
    """Decision 18: 77."""
    machine = plane.machine()
    shutil.copytree(plane.config.parent, etc := plane.home / f"etc-{name}")
    (etc / name).chmod(0o600)
    machine.data.mkdir(mode=0o700)
    os.chown(machine.data, NOBODY, NOBODY)
    done = machine.run("join", "--config", str(etc / "config.toml"), stdin=TOKEN.encode(), prefix=AS_NOBODY)
    assert (done.status, done.out, done.err) == (77, "", f"permission denied: {etc / name}: run it as root\n")


# ---- the data directory


def _not_a_directory(path: str) -> str:
    return (
        f"not a directory: {path} (a file, or a symbolic link): "
        "name the directory itself in config.toml, or move this out of the way"
    )


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "below a file"])
def test_a_data_directory_that_is_none(kind: str, plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """Decision 12: never through a link, whose target another could choose."""
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    path = tmp_path / "given"
    if kind in ("link", "dangling"):
        path.symlink_to(real if kind == "link" else tmp_path / "nowhere")
    else:
        path.write_text("")
    given = path / "data" if kind == "below a file" else path
    done = machine.join(TOKEN, "--data-dir", str(given))
    assert (done.status, done.out, done.err) == (78, "", _not_a_directory(str(given)) + "\n")
    assert list(real.iterdir()) == []
    status = machine.run("status", "--data-dir", str(given))
    assert (status.status, status.err) == (78, _not_a_directory(str(given)) + "\n")


@pytest.mark.parametrize(
    ("mode", "owner", "says"),
    [
        (0o755, 0, "has mode 0755, want 0700: chmod 0700 {path}"),
        (0o770, 0, "has mode 0770, want 0700: chmod 0700 {path}"),
        (0o701, 0, "has mode 0701, want 0700: chmod 0700 {path}"),
        (0o700, NOBODY, "belongs to nobody, want root: chown root {path}"),
    ],
)
def test_no_key_is_born_where_others_get_in(
    mode: int, owner: int, says: str, plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """Decision 11: 78 with the chmod to run, before the token is used; the twin is the same join after it."""
    machine.data.mkdir()
    machine.data.chmod(mode)
    os.chown(machine.data, owner, -1)
    token = plane.token()
    line = f"the data directory {machine.data} {says.format(path=machine.data)}\n"
    done = machine.join(token)
    assert (done.status, done.out, done.err) == (78, "", line)
    assert machine.files() == {}
    doctor = machine.run("doctor")
    message, _, command = line.strip().rpartition(": ")
    assert f"fail  data directory       {message} ({command})\n" in doctor.out
    subprocess.run(command.split(), check=True)
    assert machine.join(token).status == 0


def test_a_joined_machine_whose_directory_was_opened_says_so_at_start(joined: Machine, machine: Machine) -> None:
    """Decision 11: 78 where the node would start; `bcd join` still knows who it is (a join unit runs on every boot)."""
    shutil.copytree(joined.data, machine.data)
    machine.data.chmod(0o755)
    before = tree(machine.data)
    line = f"the data directory {machine.data} has mode 0755, want 0700: chmod 0700 {machine.data}\n"
    status = machine.run("status")
    assert (status.status, status.err) == (78, line)
    assert machine.join().status == 0
    (machine.data / "node.key").chmod(0o640)
    machine.data.chmod(0o700)
    line = f"{machine.data}/node.key has mode 0640, want 0600: chmod 0600 {machine.data}/node.key\n"
    assert machine.run("status").err == line
    (machine.data / "node.key").chmod(0o600)
    assert (machine.run("status").status, tree(machine.data)) == (0, before)


# ---- the network


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:{closed}", "127.0.0.1:{closed}: connection refused"),
        ("nowhere.invalid:443", "nowhere.invalid:443: the host name does not resolve"),
        ("localhost:{join}", "localhost:{join}: the server's certificate is for another host name"),
        ("127.0.0.1:{plain}", "127.0.0.1:{plain}: no TLS there: is that the join port?"),
    ],
    ids=["closed port", "no such host", "another host name", "no TLS"],
)
def test_an_address_that_is_wrong_is_said_at_every_attempt(
    address: str, why: str, plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """Protocol, "What is final and what is retried": retried, and each line says what is the matter; nothing else on
    standard error, of gRPC's least of all."""
    shutil.copytree(plane.config.parent, etc := tmp_path / "etc")
    found = re.search(r'^join = "127.0.0.1:(\d+)"', plane.config.read_text(), re.MULTILINE)
    assert found is not None
    with socket.create_server(("127.0.0.1", 0)) as plain, closed_port() as closed:
        answers = threading.Thread(target=_speak_http, args=(plain,), daemon=True)
        answers.start()
        ports = {"closed": closed, "join": found[1], "plain": plain.getsockname()[1]}
        edit('^join = ".*"', f'join = "{address.format(**ports)}"')(etc)
        process = machine.start_join(TOKEN, "--config", str(etc / "config.toml"))
        line = line_with("", process)
        process.send_signal(signal.SIGINT)
        status, out, err = ended(process)
    said = f'warning join attempt failed attempt=1 why="{why.format(**ports)}" next_in_s='
    assert said in line
    assert (status, out, err) == (75, "", "interrupted; run bcd join again: it goes on where it stopped\n")


def _speak_http(server: socket.socket) -> None:
    try:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    except OSError:
        return


@pytest.mark.parametrize("command", ["join", "status", "doctor"])
def test_a_command_that_is_mistyped_shows_nothing_of_it(command: str, joined: Machine) -> None:
    """Decision 17: no output repeats what was typed."""
    for words in ((TOKEN,), ("--no-such-thing",), ("--config",)):
        done = joined.run(command, *words)
        assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert done.err.startswith(f"bcd {command}: ")
        assert TOKEN not in done.err
