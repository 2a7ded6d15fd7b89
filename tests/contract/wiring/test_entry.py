"""The console scripts as real processes: however a command ends, one line and a documented status, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.commands import BIN, environment

REPOSITORY = Path(__file__).parents[3]


def run(
    *words: str, sabotage: dict[str, str] | None = None, folder: Path | None = None, shell: str = 'exec "$@"'
) -> "subprocess.CompletedProcess[str]":
    """A console script; `sabotage` are modules that stand before the real ones, `shell` changes its descriptors."""
    extra = {}
    if sabotage is not None and folder is not None:
        for name, code in sabotage.items():
            (folder / f"{name}.py").write_text(code)
        extra = {"PYTHONPATH": str(folder)}
    command = ["sh", "-c", shell, "sh", str(BIN / words[0]), *words[1:]]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(extra),
        check=False,
        timeout=60,
    )


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    line = done.stderr.removesuffix("\n")
    assert line.isprintable()
    return line


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose data directory is not there yet."""
    path = tmp_path / "config.toml"
    path.write_text(f'data_dir = "{tmp_path}/data"\n')
    return path


RAISED = {
    "ImportError": ("raise ImportError('no such thing\\nat all')", 70, "internal error (ImportError: no such thing"),
    "syntax": ("this is no Python", 70, "internal error (SyntaxError"),
    "RuntimeError": ("raise RuntimeError('s3cret')", 70, "internal error (RuntimeError"),
    "OSError": ("raise OSError(2, 's3cret')", 70, "internal error (FileNotFoundError"),
    "MemoryError": ("raise MemoryError", 70, "internal error (MemoryError"),
    "broken pipe": ("raise BrokenPipeError(32, 's3cret')", 70, "internal error (BrokenPipeError"),
    "GeneratorExit": ("raise GeneratorExit", 70, "internal error (GeneratorExit"),
    "exit 0": ("raise SystemExit(0)", 70, "internal error (SystemExit"),
    "exit 1": ("raise SystemExit(1)", 70, "internal error (SystemExit"),
    "exit with a text": ("raise SystemExit('s3cret')", 70, "internal error (SystemExit"),
    "exit with nothing": ("raise SystemExit", 70, "internal error (SystemExit"),
    "interrupt": ("raise KeyboardInterrupt", 75, "interrupted"),
}


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize("program", ["bcd", "bcd-fakehw"])
def test_whatever_a_module_raises_is_one_line_and_never_status_1(
    program: str, what: str, config: Path, tmp_path: Path
) -> None:
    """Decision 18: 1 means that an identity is dead, and the unit of the node is not started again after it."""
    code, status, line = RAISED[what]
    done = run(program, "status", "--config", str(config), sabotage={"cryptography": code}, folder=tmp_path)
    assert done.returncode == status
    assert done.stdout == ""
    assert one_line(done).startswith(f"{program}: {line}")
    assert "s3cret" not in done.stderr


def test_the_same_command_with_nothing_in_its_way_ends_as_documented(config: Path, tmp_path: Path) -> None:
    done = run("bcd", "status", "--config", str(config), sabotage={"unrelated": "raise SystemExit(1)"}, folder=tmp_path)
    assert done.returncode == 75
    assert one_line(done) == "this node has not joined (run bcd join)"


@pytest.mark.parametrize("module", ["loguru", "grpc", "dependency_injector", "pydantic_settings"])
def test_a_join_whose_packages_are_broken_says_which_and_leaves_no_file(
    module: str, config: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    sabotage = {module: "raise ImportError('broken in here')"}
    done = run("bcd-fakehw", "join", "--config", str(config), sabotage=sabotage, folder=tmp_path / "broken")
    assert done.returncode == 70
    assert "ImportError: broken in here" in one_line(done)
    assert not (tmp_path / "data").exists()


def test_the_control_planes_program_ends_as_the_nodes_do(tmp_path: Path) -> None:
    done = run("bcd-controlplane", "nodes", "list", sabotage={"argparse": "1 / 0"}, folder=tmp_path)
    assert done.returncode == 70
    assert one_line(done).startswith("bcd-controlplane: internal error (ZeroDivisionError")


def test_the_entry_module_imports_nothing_when_it_is_imported() -> None:
    code = "import sys; before = set(sys.modules); import bcd.entry; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.split() == ["bcd", "bcd.entry"]


CLOSED = {"in": "<&-", "out": ">&-", "err": "2>&-", "all": "<&- >&- 2>&-"}


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_standard_streams_change_no_status(closed: str, config: Path) -> None:
    shell = f'exec "$@" {CLOSED[closed]}'
    for words, status in (
        (("bcd", "status", "--config", str(config)), 75),
        (("bcd", "status", "--json", "--config", str(config)), 75),
        (("bcd", "--version"), 0),
        (("bcd", "join", "--help"), 0),
        (("bcd", "nonsense"), 2),
        (("bcd", "doctor", "--config", str(config)), 1),
        (("bcd-fakehw", "join", "--config", str(config)), 78),
    ):
        done = run(*words, shell=shell)
        assert done.returncode == status, (words, done)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr


def test_with_standard_error_closed_no_message_gets_into_a_file(config: Path) -> None:
    done = run("bcd-fakehw", "join", "--config", str(config), shell='exec "$@" 2>&-')
    assert (done.returncode, done.stdout, done.stderr) == (78, "", "")


@pytest.mark.parametrize("words", [("--version",), ("join", "--help"), ("--help",)])
def test_a_full_disk_behind_standard_output_is_no_success(words: tuple[str, ...]) -> None:
    done = run("bcd", *words, shell='exec "$@" > /dev/full')
    assert done.returncode == 75
    assert "cannot write the result" in one_line(done)
    assert run("bcd", *words).returncode == 0


def test_a_full_disk_behind_standard_output_changes_no_other_status(config: Path) -> None:
    done = run("bcd", "doctor", "--config", str(config), shell='exec "$@" > /dev/full')
    assert done.returncode == 1
    assert "cannot write the result" in one_line(done)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_that_lacks_a_character_is_no_defect(encoding: str) -> None:
    words = ("trust", "remove-root", "--help")
    done = run("bcd-controlplane", *words, shell=f'PYTHONIOENCODING={encoding} exec "$@"')
    assert (done.returncode, done.stderr) == (0, "")
    assert "sha256:…" in done.stdout
    assert done.stdout == run("bcd-controlplane", *words).stdout


def test_a_path_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/\xff.toml")
    Path(path).write_text(f'data_dir = "{tmp_path}/data"\n')
    done = run("bcd", "doctor", "--config", path)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"{tmp_path}/\\udcff.toml has no join" in done.stdout


@pytest.mark.parametrize("where", [">", "2>"])
def test_a_full_disk_behind_standard_error_changes_no_status(where: str, config: Path) -> None:
    done = run("bcd", "status", "--config", str(config), shell=f'exec "$@" {where} /dev/full')
    assert done.returncode == 75


@pytest.mark.parametrize(
    ("words", "status"),
    [(("status",), 75), (("status", "--json"), 75), (("doctor",), 1), (("doctor", "--json"), 1), (("--version",), 0)],
)
@pytest.mark.parametrize("which", ["out", "err", "both"])
def test_a_reader_that_has_gone_changes_no_status(
    which: str, words: tuple[str, ...], status: int, config: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    rest = ("--config", str(config)) if words[0] != "--version" else ()
    done = subprocess.run(
        [str(BIN / "bcd"), *words, *rest],
        stdin=subprocess.DEVNULL,
        stdout=writer if which in ("out", "both") else subprocess.PIPE,
        stderr=writer if which in ("err", "both") else subprocess.PIPE,
        env=environment(),
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert done.returncode == status
    assert b"Traceback" not in (done.stderr or b"") + (done.stdout or b"")
