"""Where a join token may come from, as the specification's table "Joining" and decisions 16 and 17 have it."""

import errno
import os
import pty
import re
import subprocess
import termios
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.commands import Ran
from tests.fakes.outside import AS_NOBODY, calls_in, ended, left_in, line_with, strace, tree
from tests.fakes.plane import Machine, Plane

# Looks like a token, and is one that no control plane made.
TOKEN = b"bcjt_abcdefghij_" + b"CanaryCanary-CanaryCanary_CanaryCanary12345"
FITS = b"x" * 4096
SOURCES = ("environment", "standard input", "file")


def join_with(raw: bytes, source: str, machine: Machine, folder: Path, *words: str) -> Ran:
    """`bcd-fakehw join` with exactly these bytes as its credential."""
    if source == "standard input":
        return machine.run("join", *words, stdin=raw)
    if source == "environment":
        return commands.run(*machine.words("join", *words), env=machine.env | {"BCD_JOIN_TOKEN": os.fsdecode(raw)})
    file = folder / "token"
    file.write_bytes(raw)
    file.chmod(0o600)
    return machine.run("join", "--token-file", str(file), *words)


def pipe_with(data: bytes) -> int:
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    return reader


# ---- B52


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=["bare", "LF", "CRLF"])
@pytest.mark.parametrize("source", SOURCES)
def test_one_line_end_is_taken_off(source: str, end: bytes, plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """B52, decision 17."""
    done = join_with(plane.token().encode() + end, source, machine, tmp_path)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("joined as n-")


ALPHABET = "holds a character that no token has (letters, digits and . _ ~ + / = - only)"
# What is wrong, where it can come from, and what is said of it. Of standard input the first line alone is read, and
# an environment holds no NUL.
BAD = {
    "CR": (TOKEN + b"\r", SOURCES, ALPHABET),
    "space behind": (TOKEN + b" ", SOURCES[1:2], ALPHABET),
    "space before": (b" " + TOKEN, SOURCES[:1], ALPHABET),
    "BOM": (b"\xef\xbb\xbf" + TOKEN, SOURCES, "begins with a byte-order mark"),
    "NUL": (TOKEN + b"\0", SOURCES[1:], ALPHABET),
    "two line ends": (TOKEN + b"\n\n", SOURCES[2:], ALPHABET),
    "second line": (TOKEN + b"\nsecond", SOURCES[::2], ALPHABET),
    "4097 bytes": (FITS + b"x", SOURCES, "is longer than 4096 bytes"),
    "only a line end": (b"\n", SOURCES[1:], "is empty"),
    "nothing": (b"", SOURCES[::2], "is empty"),
    "not UTF-8": (TOKEN + b"\xff", SOURCES[:1], ALPHABET),
    "15 characters": (b"x" * 15, SOURCES[1:2], "is shorter than 16 characters"),
}


@pytest.mark.parametrize(("case", "source"), [(case, source) for case in BAD for source in BAD[case][1]])
def test_anything_else_is_refused_here_and_not_shown(
    case: str, source: str, machine: Machine, unroutable: Path, tmp_path: Path
) -> None:
    """B52, decision 17: a local usage error before the network, the token not printed."""
    raw, _, why = BAD[case]
    done = join_with(raw, source, machine, tmp_path, "--config", str(unroutable))
    file = tmp_path / "token"
    said = {"environment": "in BCD_JOIN_TOKEN", "standard input": "on standard input", "file": f"in {file}"}[source]
    line = f"bcd join: the join token {said} {why}: get one with bcd-controlplane token create\n"
    if (case, source) == ("4097 bytes", "file"):
        line = f"bcd join: --token-file {file}: is 4097 bytes, want at most 4096\n"
    assert (done.status, done.out, done.err) == (2, "", line)
    assert "join.pending" not in machine.files()
    assert source != "file" or file.read_bytes() == raw, "the file is kept for whoever mends it"


@pytest.mark.parametrize("source", SOURCES)
def test_4096_bytes_fit_from_every_source(source: str, machine: Machine, tmp_path: Path) -> None:
    """B52: the limit itself is a token (the control plane knows none such)."""
    assert join_with(FITS, source, machine, tmp_path).status == 77


def test_of_standard_input_the_first_line_alone_is_read(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """B52 "second line", decision 17: the rest is somebody else's."""
    token = plane.token().encode()
    (tmp_path / "input").write_bytes(token + b"\nfor the next command\n")
    descriptor = os.open(tmp_path / "input", os.O_RDONLY)
    done = machine.run("join", stdin=descriptor)
    rest = os.read(descriptor, 100)
    os.close(descriptor)
    assert (done.status, rest) == (0, b"for the next command\n")


# ---- which source


def test_two_credentials_are_both_named_and_neither_is_used(machine: Machine, unroutable: Path, tmp_path: Path) -> None:
    """Decision 17."""
    file = tmp_path / "token"
    file.write_bytes(TOKEN)
    file.chmod(0o600)
    words = machine.words("join", "--config", str(unroutable), "--token-file", str(file))
    done = commands.run(*words, env=machine.env | {"BCD_JOIN_TOKEN": TOKEN.decode()})
    line = "bcd join: two join tokens, BCD_JOIN_TOKEN and --token-file: give one of them\n"
    assert (done.status, done.out, done.err) == (2, "", line)
    assert file.exists()


def test_the_environment_goes_before_standard_input(plane: Plane, machine: Machine) -> None:
    """Specification, "Joining": `BCD_JOIN_TOKEN`, else standard input, of which nothing is read then."""
    reader = pipe_with(b"not for bcd\n")
    done = machine.run("join", stdin=reader, env={"BCD_JOIN_TOKEN": plane.token()})
    assert (done.status, left_in(reader)) == (0, b"not for bcd\n")
    os.close(reader)


POSITIONAL = "bcd join: takes no argument; a token comes in BCD_JOIN_TOKEN, on standard input or by --token-file\n"


@pytest.mark.parametrize(
    "words",
    [
        ("{}",),
        ("--", "{}"),
        ("--frobnicate", "{}"),
        ("--token", "{}"),
        ("--token={}",),
        ("--config", "{}"),
        ("--config={}",),
        ("--data-dir", "{}"),
        ("--data-dir", "/{}"),
        ("--token-file", "{}"),
        ("--token-file=/run/{}",),
        ("--token-fd", "{}"),
        ("--role", "{}"),
        ("--node-id", "{}"),
        ("--attestor", "{}"),
        ("--log-level", "{}"),
        ("--log-format={}",),
        ("--yes={}",),
        ("--reset={}",),
        ("-{}",),
        ("--{}",),
        ("--role", "none such", "{}", "--yes"),
    ],
    ids=" ".join,
)
def test_a_token_on_the_command_line_is_refused_and_not_shown(words: tuple[str, ...]) -> None:
    """Specification, "Joining": refused without being echoed, wherever it was put; decision 17: before anything else.

    Nothing is configured here: that is not looked at any more."""
    reader = pipe_with(b"untouched\n")
    done = commands.run("bcd", "join", *(word.format(TOKEN.decode()) for word in words), stdin=reader)
    assert (done.status, done.out, done.err) == (2, "", POSITIONAL)
    assert left_in(reader) == b"untouched\n"
    os.close(reader)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("now",), POSITIONAL),
        (("--tokenfile", "x"), POSITIONAL),
        (("--tokenfile=x",), "bcd join: unknown option (did you mean --token-file?) (see bcd join --help)\n"),
        (("--token-f=x",), "bcd join: unknown option (did you mean --token-file?) (see bcd join --help)\n"),
        (("--token-file",), "bcd join: --token-file: expected one argument (see bcd join --help)\n"),
        (("--yes",), "bcd join: --yes goes with --reset (see bcd join --help)\n"),
        (("--role", "king"), "bcd join: --role: want node, site or ramdisk (see bcd join --help)\n"),
        (("--node-id", ""), "bcd join: --node-id: want 1 to 63 of letters, digits and . _ - (see bcd join --help)\n"),
        (("--attestor", "x509pop"), "bcd join: --attestor: want join-token or tpm (see bcd join --help)\n"),
        (
            ("--attestor", "tpm", "--node-id", "n-7"),
            "bcd join: --node-id does not go with --attestor tpm (see bcd join --help)\n",
        ),
        (
            ("--attestor", "tpm", "--token-file", "/t"),
            "bcd join: --token-file does not go with --attestor tpm (see bcd join --help)\n",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_mistyped_command_line_is_one_line_with_what_was_wanted(words: tuple[str, ...], line: str) -> None:
    """Decisions 17 and 18; what was typed is not shown, it might be a token."""
    done = commands.run("bcd", "join", *words)
    assert (done.status, done.out, done.err) == (2, "", line)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "/dev/null"])
def test_no_token_at_all_says_where_one_may_come_from(closed: bool, machine: Machine, unroutable: Path) -> None:
    """Decision 17."""
    prefix = ("sh", "-c", 'exec "$@" <&-', "sh") if closed else ()
    done = machine.run("join", "--config", str(unroutable), stdin=subprocess.DEVNULL, prefix=prefix)
    line = "bcd join: no join token: pipe one on standard input, or set BCD_JOIN_TOKEN, or name a file with "
    assert (done.status, done.out, done.err) == (2, "", f"{line}--token-file\n")
    assert machine.files() == {}


def test_closed_streams_neither_break_a_join_nor_get_into_its_files(plane: Plane, machine: Machine) -> None:
    """Decision 18: no exit 70 for what a supervisor left closed, and nothing printed lands in a file."""
    token = plane.token()
    prefix = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert machine.run("join", env={"BCD_JOIN_TOKEN": token}, prefix=prefix).status == 0
    assert machine.run("status").status == 0
    assert machine.run("join", prefix=prefix).status == 0
    assert b"joined" not in b"".join(machine.files().values())


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_a_result_that_cannot_be_written_is_said_and_is_no_defect(joined: Machine, unbuffered: str) -> None:
    """Decisions 18 and 19."""
    prefix = ("sh", "-c", 'exec "$@" >/dev/full', "sh")
    done = joined.run("join", env={"PYTHONUNBUFFERED": unbuffered}, prefix=prefix)
    line = "bcd-fakehw: cannot write the result to standard output: No space left on device\n"
    assert (done.status, done.err) == (75, line)


def test_a_terminal_is_told_what_is_waited_for_and_shows_nothing(plane: Plane, machine: Machine) -> None:
    """Decision 17. The negative twin is the terminal itself, which shows what is typed before and after."""
    token = plane.token().encode()
    ours, theirs = pty.openpty()
    assert _echoes(theirs)
    words = commands.command(machine.words("join"))
    process = subprocess.Popen(
        words,
        env=commands.environment(machine.env),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    line = line_with("waiting", process)
    assert line == "bcd join: waiting for the join token on this terminal (it is not shown)\n"
    assert not _echoes(theirs), "from the moment it is asked for"
    os.write(ours, token + b"\n")
    status, out, err = ended(process)
    assert (status, out.split(" (")[0][:12], err) == (0, "joined as n-", "")
    assert _echoes(theirs), "the terminal is left as it was"
    os.set_blocking(ours, False)
    try:
        shown = os.read(ours, 4096)
    except BlockingIOError:
        shown = b""
    assert token not in shown
    os.close(ours)
    os.close(theirs)


def _echoes(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


# ---- --token-file


def token_file(folder: Path, token: str, mode: int = 0o600) -> Path:
    file = folder / "join-token.txt"
    file.write_text(token + "\n")
    file.chmod(mode)
    return file


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_token_file_is_deleted_once_the_machine_has_joined(
    mode: int, plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """Specification, "Joining"."""
    file = token_file(tmp_path, plane.token(), mode)
    done = machine.run("join", "--token-file", str(file))
    assert (done.status, done.err, file.exists()) == (0, "", False)
    again = token_file(tmp_path, "never read", mode)
    done = machine.run("join", "--token-file", str(again))
    assert (done.status, done.out[:14], again.exists()) == (0, "already joined", False)


def test_a_refused_join_keeps_the_token_file(machine: Machine, tmp_path: Path) -> None:
    """Specification, "Joining": deleted once the join succeeds, and not before."""
    file = token_file(tmp_path, TOKEN.decode())
    assert machine.run("join", "--token-file", str(file)).status == 77
    assert file.read_bytes() == TOKEN + b"\n"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o700, 0o4600, 0o000])
def test_a_token_file_others_could_read_is_refused_with_the_chmod(
    mode: int, machine: Machine, unroutable: Path, tmp_path: Path
) -> None:
    """Specification, "Joining": 0600 or 0400."""
    file = token_file(tmp_path, TOKEN.decode(), mode)
    done = machine.run("join", "--config", str(unroutable), "--token-file", str(file))
    why = f"has mode {mode:04o}, want 0600 or 0400: chmod 0600 {file}"
    assert (done.status, done.out, done.err) == (2, "", f"bcd join: --token-file {file}: {why}\n")
    assert file.exists()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("missing", "no such file or directory"),
        ("directory", "is not a regular file"),
        ("link", "is a symbolic link, want a file"),
        ("dangling", "is a symbolic link, want a file"),
        ("fifo", "is not a regular file"),
        ("device", "is not a regular file"),
        ("large", "is 4097 bytes, want at most 4096"),
        ("below a file", "not a directory"),
    ],
)
def test_what_is_no_token_file_is_told_and_left_alone(
    kind: str, why: str, machine: Machine, unroutable: Path, tmp_path: Path
) -> None:
    """Specification, "Joining": a regular file. A FIFO nobody writes to must not hang it."""
    real = token_file(tmp_path, TOKEN.decode())
    path = tmp_path / "given"
    if kind == "directory":
        path.mkdir(mode=0o600)
    elif kind in ("link", "dangling"):
        path.symlink_to(real if kind == "link" else tmp_path / "nowhere")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "large":
        path.write_bytes(b"x" * 4097)
        path.chmod(0o600)
    elif kind == "below a file":
        path = real / "token"
    done = machine.run("join", "--config", str(unroutable), "--token-file", str(path))
    assert (done.status, done.out, done.err) == (2, "", f"bcd join: --token-file {path}: {why}\n")
    assert real.exists()
    assert kind in ("missing", "below a file") or os.path.lexists(path)


def test_a_file_of_the_identity_is_never_taken_for_a_token(joined: Machine) -> None:
    """Specification, "Joining": "deleted … or the machine had already joined": not node.key, which is 0600 too."""
    before = tree(joined.data)
    done = joined.run("join", "--token-file", str(joined.data / "node.key"))
    assert (done.status, done.out[:14]) == (0, "already joined")
    assert "lies in the data directory" in done.err
    assert tree(joined.data) == before


def test_a_read_only_mount_keeps_the_file_with_a_warning(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """Specification, "Joining": "a read-only mount logs a warning instead", and the join has succeeded."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    file = token_file(folder, plane.token(), 0o400)
    mount = f'mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", mount, "sh")
    for said in ("joined as ", "already joined as "):
        done = machine.run("join", "--token-file", str(file), prefix=prefix)
        assert (done.status, done.out.startswith(said)) == (0, True), done.err
        (line,) = done.err.splitlines()
        assert f'warning the token file could not be deleted path={file} why="read-only file system"' in line
        assert file.exists()


# ---- nothing is read that need not be


def test_a_machine_that_has_joined_opens_no_credential(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """B62; specification: "reads no credential". The negative twin is the join before it, under the same eyes."""
    log = tmp_path / "trace"
    for first in (True, False):
        file = token_file(tmp_path, plane.token())
        reader = pipe_with(b"unread\n")
        eyes = strace(log, "open", "openat", "openat2")
        done = machine.run("join", "--token-file", str(file), stdin=reader, prefix=eyes)
        assert done.status == 0, done.err
        opened = [call for call in calls_in(log) if str(file) in call]
        assert bool(opened) == first
        assert left_in(reader) == b"unread\n"
        os.close(reader)


def test_standard_input_is_left_to_others_once_joined(plane: Plane, machine: Machine) -> None:
    """B62."""
    for first in (True, False):
        token = plane.token().encode() + b"\n"
        reader = pipe_with(token)
        assert machine.run("join", stdin=reader).status == 0
        assert left_in(reader) == (b"" if first else token)
        os.close(reader)


def test_a_join_unit_runs_at_every_boot_whatever_became_of_the_token(plane: Plane, machine: Machine) -> None:
    """B62: join by token, delete token, restart 3 times."""
    token = plane.token("--uses", "3")
    assert machine.join(token).status == 0
    before = tree(machine.data)
    plane.admin("token", "revoke", token.split("_")[1])
    for env in ({}, {"BCD_JOIN_TOKEN": token}, {"BCD_JOIN_TOKEN": "garbage that is no token"}):
        done = machine.run("join", env=env)
        assert (done.status, done.out[:18], done.err) == (0, "already joined as ", "")
    assert tree(machine.data) == before
    other = plane.machine()
    assert other.join(token).status == 77, "the token is dead indeed"


def test_another_node_id_is_refused_on_a_machine_that_has_joined(joined: Machine) -> None:
    """Specification, "What the join does": "a different `--node-id` is refused"."""
    node = joined.run("status", "--json").out.split('"nodeId": "')[1].split('"')[0]
    assert joined.run("join", "--node-id", node).status == 0
    done = joined.run("join", "--node-id", "elsewhere")
    line = (
        f"this machine is already joined as {node}, not elsewhere; to give that up: "
        "bcd join --reset --yes, then bcd join --node-id elsewhere\n"
    )
    assert (done.status, done.out, done.err) == (77, "", line)


# ---- bcd itself


@pytest.mark.parametrize(("words", "line"), [((), "bcd join"), (("--reset",), "bcd join --reset")])
def test_bcd_joins_as_root_alone_and_looks_at_nothing_before(
    words: tuple[str, ...], line: str, plane: Plane, tmp_path: Path
) -> None:
    """Specification, "Joining" and "--reset", "Root only": before a configuration, a token or a directory."""
    reader = pipe_with(b"unread\n")
    given = ("--config", str(tmp_path / "none"), "--token-file", str(tmp_path / "none"))
    done = commands.run("bcd", "join", *words, *given, stdin=reader, prefix=AS_NOBODY)
    assert (done.status, done.out, done.err) == (77, "", f"{line}: run it as root\n")
    assert left_in(reader) == b"unread\n"
    os.close(reader)


def test_bcd_joins_as_root(plane: Plane) -> None:
    """The positive twin: the production command on this machine, and again."""
    machine = plane.machine(program="bcd")
    token = plane.token("--allow-reclaim")
    done = machine.join(token)
    assert (done.status, done.out[:12]) == (0, "joined as n-")
    # Where the machine that runs the tests has no TPM, that is said, and nothing else.
    assert re.fullmatch(r"(\S+ info the node key is a file: this machine has no TPM 2\.0 why=.*\n)?", done.err)
    assert {name: mode for name, (mode, _, _) in tree(machine.data).items()} == {
        "identity.json": "0600",
        "node.key": "0600",
    }
    assert machine.join().out.startswith("already joined as n-")


def test_a_fakehw_machine_needs_no_root_and_bcd_is_never_one(plane: Plane) -> None:
    """Decision 22: nothing turns `bcd` into bcd-fakehw; and bcd-fakehw runs as anybody."""
    machine = plane.machine()
    machine.data.mkdir(mode=0o700)
    os.chown(machine.data, 65534, 65534)
    done = machine.run("join", stdin=f"{plane.token()}\n".encode(), prefix=AS_NOBODY)
    assert done.status == 0, done.err
    assert {uid for _, uid, _ in tree(machine.data).values()} == {65534}
    words = ("bcd", "join", "--config", str(plane.config), "--data-dir", str(machine.data))
    done = commands.run(*words, env=machine.env, prefix=AS_NOBODY)
    assert (done.status, os.strerror(errno.EACCES) in done.err) == (77, False)
