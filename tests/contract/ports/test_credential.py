"""The port `CredentialSource`: one contract over every source, and what each of them alone may meet."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.adapters.credential.sources import InheritedDescriptor, StandardInput, Taken, TokenFile
from bcd.domain.model.failures import Message, Usage
from bcd.domain.model.tokens import JoinToken
from bcd.ports.credential import CredentialSource
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.joining import Credential, Recorded

REPOSITORY = Path(__file__).parents[3]
TOKEN = b"bcjt_0123456789_" + b"canary-" * 5
LONGEST = TOKEN.ljust(4096, b"x")
BOM = b"\xef\xbb\xbf"

Build = Callable[[bytes], CredentialSource]


def refusal(source: CredentialSource) -> Usage:
    with pytest.raises(Usage) as caught:
        source.take()
    return caught.value


class CredentialContract:
    """`build` makes the source that holds these bytes."""

    @staticmethod
    def b52_the_token_comes_as_it_is(build: Build) -> None:
        for token in (TOKEN, b"A" * 16, LONGEST[:4095], b"azAZ09._~+/=-" * 3):
            assert build(token).take().reveal() == token

    @staticmethod
    def b52_one_line_end_after_it_is_taken_away(build: Build) -> None:
        for end in (b"\n", b"\r\n"):
            assert build(TOKEN + end).take().reveal() == TOKEN

    @staticmethod
    def b52_anything_else_around_it_is_a_usage_error_that_shows_none_of_it(build: Build) -> None:
        for raw in (
            TOKEN + b"\r",
            TOKEN + b"\r\r\n",
            TOKEN + b" ",
            TOKEN + b" \n",
            b" " + TOKEN,
            b"\t" + TOKEN,
            BOM + TOKEN,
            TOKEN + b"\0",
            b"\0" + TOKEN,
            TOKEN + b"\0\n",
            TOKEN[:20] + b"\xff" + TOKEN[20:],
            b"'" + TOKEN + b"'",
            TOKEN[:15],
            TOKEN + b"\x1b[0m",
        ):
            failure = refusal(build(raw))
            assert failure.message is Message.TOKEN_MALFORMED, raw
            shows_nothing(failure, raw)

    @staticmethod
    def nothing_is_not_a_token(build: Build) -> None:
        for raw in (b"", b"\n", b"\r\n"):
            assert refusal(build(raw)).message in (Message.TOKEN_MALFORMED, Message.NO_TOKEN)

    @staticmethod
    def b52_4096_bytes_are_a_token_and_4097_are_not(build: Build) -> None:
        assert build(LONGEST).take().reveal() == LONGEST
        failure = refusal(build(LONGEST + b"x"))
        assert "4096" in failure.text
        shows_nothing(failure, LONGEST)
        shows_nothing(refusal(build(LONGEST * 3)), LONGEST)

    @staticmethod
    def spending_what_was_taken_is_silent(build: Build) -> None:
        source = build(TOKEN)
        source.take()
        source.spent()

    @staticmethod
    def spending_what_was_never_taken_is_silent_too(build: Build) -> None:
        build(TOKEN).spent()


def shows_nothing(failure: Usage, raw: bytes) -> None:
    shown = failure.text + repr(failure) + repr(failure.fields) + repr(failure.__cause__)
    assert "canary" not in shown
    assert "bcjt" not in shown
    assert failure.text.isprintable()
    assert len(failure.text) < 400


@contextmanager
def pipe_with(data: bytes) -> Iterator[int]:
    """The reading end of a pipe that holds `data` and whose writing end is closed."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    try:
        yield reader
    finally:
        try:
            os.close(reader)
        except OSError:
            pass


@contextmanager
def standard_input(folder: Path) -> Iterator[Build]:
    kept: list[int] = []

    def build(raw: bytes) -> CredentialSource:
        reader, writer = os.pipe()
        os.write(writer, raw)
        os.close(writer)
        kept.append(reader)
        return StandardInput(reader)

    yield build
    for descriptor in kept:
        os.close(descriptor)


@contextmanager
def inherited(folder: Path) -> Iterator[Build]:
    kept: list[int] = []

    def build(raw: bytes) -> CredentialSource:
        reader, writer = os.pipe()
        os.write(writer, raw)
        os.close(writer)
        kept.append(reader)
        return InheritedDescriptor(reader)

    yield build
    for descriptor in kept:
        # The source closes what it has read.
        try:
            os.close(descriptor)
        except OSError:
            pass


def token_file(path: Path, raw: bytes = TOKEN, mode: int = 0o600) -> Path:
    path.write_bytes(raw)
    path.chmod(mode)
    return path


@contextmanager
def files(folder: Path) -> Iterator[Build]:
    def build(raw: bytes) -> CredentialSource:
        path = token_file(folder / f"token-{len(list(folder.iterdir()))}", raw)
        return TokenFile(str(path), str(folder / "data"), Recorded())

    yield build


@contextmanager
def taken(folder: Path) -> Iterator[Build]:
    """What a reset hands on: a source that was read already."""
    with files(folder) as build:

        def again(raw: bytes) -> CredentialSource:
            return _TakenNow(build(raw))

        yield again


class _TakenNow:
    def __init__(self, source: CredentialSource) -> None:
        self._source = source

    def take(self) -> JoinToken:
        return Taken(self._source.take(), self._source).take()

    def spent(self) -> None:
        self._source.spent()


SOURCES = [standard_input, inherited, files, taken]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("check", checks_of(CredentialContract).values(), ids=checks_of(CredentialContract))
def test_every_source_meets_the_contract(check: Callable[[Build], None], source: object, tmp_path: Path) -> None:
    with source(tmp_path) as build:  # type: ignore[operator]
        check(build)


def test_the_fake_gives_what_it_holds_and_refuses_when_it_holds_nothing() -> None:
    CredentialContract.b52_the_token_comes_as_it_is(Credential)
    CredentialContract.spending_what_was_taken_is_silent(Credential)
    assert refusal(Credential(None)).message is Message.NO_TOKEN


class Wrong:
    """Takes `change` of what it holds for a token."""

    def __init__(self, change: Callable[[bytes], bytes], raw: bytes) -> None:
        self._change = change
        self._raw = raw

    def take(self) -> JoinToken:
        return JoinToken(self._change(self._raw))

    def spent(self) -> None:
        """Nothing."""


def _telling(raw: bytes) -> bytes:
    raise Usage(Message.TOKEN_MALFORMED, source="somewhere", why=f"is {raw!r}")


@pytest.mark.parametrize(
    ("change", "caught_by"),
    [
        (lambda raw: raw, "b52_one_line_end_after_it_is_taken_away"),
        (lambda raw: raw, "nothing_is_not_a_token"),
        (bytes.strip, "b52_anything_else_around_it_is_a_usage_error_that_shows_none_of_it"),
        (lambda raw: raw[:4096], "b52_4096_bytes_are_a_token_and_4097_are_not"),
        (bytes.upper, "b52_the_token_comes_as_it_is"),
        (_telling, "b52_anything_else_around_it_is_a_usage_error_that_shows_none_of_it"),
    ],
)
def test_a_wrong_implementation_fails_the_contract(change: Callable[[bytes], bytes], caught_by: str) -> None:
    assert caught_by in failed_checks(CredentialContract, lambda: lambda raw: Wrong(change, raw))


@pytest.mark.parametrize("method", ["take", "spent"])
def test_a_source_that_crashes_fails_the_contract(method: str) -> None:
    class Crashing(Credential):
        def __getattribute__(self, name: str) -> object:
            if name == method:
                raise OSError(9, "Bad file descriptor")
            return super().__getattribute__(name)

    failed = failed_checks(CredentialContract, lambda: Crashing)
    assert ("spending_what_was_never_taken_is_silent_too" in failed) is (method == "spent")
    assert "spending_what_was_taken_is_silent" in failed


# --- A second line: where only the first counts it is left alone, elsewhere it makes no token


@pytest.mark.parametrize("source", [inherited, files])
def test_b52_a_second_line_makes_no_token_of_a_file_or_of_the_environment(source: object, tmp_path: Path) -> None:
    with source(tmp_path) as build:  # type: ignore[operator]
        for raw in (TOKEN + b"\n\n", TOKEN + b"\n" + TOKEN, b"\n" + TOKEN):
            failure = refusal(build(raw))
            assert failure.message is Message.TOKEN_MALFORMED
            shows_nothing(failure, raw)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_b52_of_standard_input_one_line_is_read_and_not_a_byte_more(end: bytes) -> None:
    with pipe_with(TOKEN + end + b"the rest\nis others'") as reader:
        assert StandardInput(reader).take().reveal() == TOKEN
        assert os.read(reader, 100) == b"the rest\nis others'"


def test_standard_input_without_a_line_end_is_read_to_its_end() -> None:
    with pipe_with(TOKEN) as reader:
        assert StandardInput(reader).take().reveal() == TOKEN
        assert os.read(reader, 1) == b""


def test_standard_input_that_is_endless_is_given_up_soon() -> None:
    with open("/dev/zero", "rb") as endless:
        failure = refusal(StandardInput(endless.fileno()))
        assert failure.message is Message.TOKEN_MALFORMED
        assert endless.tell() == 0


@pytest.mark.parametrize("what", ["closed", "directory", "empty"])
def test_standard_input_that_holds_nothing_is_no_token(what: str, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path if what == "directory" else os.devnull, os.O_RDONLY)
    if what == "closed":
        os.close(descriptor)
    assert refusal(StandardInput(descriptor)).message is Message.NO_TOKEN
    if what != "closed":
        os.close(descriptor)


@pytest.mark.parametrize("descriptor", [-1, 1 << 20])
def test_an_inherited_descriptor_that_is_none_is_a_usage_error(descriptor: int) -> None:
    assert refusal(InheritedDescriptor(descriptor)).message is Message.TOKEN_MALFORMED


def test_an_inherited_descriptor_is_closed_once_it_was_read() -> None:
    with pipe_with(TOKEN) as reader:
        assert InheritedDescriptor(reader).take().reveal() == TOKEN
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(reader)


def test_on_a_terminal_the_token_is_asked_for_and_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    import termios

    def echoes(descriptor: int) -> bool:
        return bool(termios.tcgetattr(descriptor)[3] & termios.ECHO)

    leader, follower = os.openpty()
    seen: list[bool] = []

    class Typed(StandardInput):
        """Somebody types when the line is waited for."""

        def _line(self) -> bytes:
            seen.append(echoes(follower))
            os.write(leader, TOKEN + b"\n")
            return super()._line()

    assert echoes(follower)
    assert Typed(follower).take().reveal() == TOKEN
    assert seen == [False]
    assert echoes(follower)
    assert "waiting for the join token" in capfd.readouterr().err
    os.close(leader)
    os.close(follower)


# --- Files


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_the_right_mode_is_read_and_is_gone_once_it_is_spent(mode: int, tmp_path: Path) -> None:
    path = token_file(tmp_path / "token", mode=mode)
    events = Recorded()
    source = TokenFile(str(path), str(tmp_path / "data"), events)
    assert source.take().reveal() == TOKEN
    assert path.exists()
    source.spent()
    assert not path.exists()
    source.spent()
    assert events.lines == []


def test_b62_a_file_is_gone_once_it_is_spent_also_when_nobody_read_it(tmp_path: Path) -> None:
    """Field report B62."""
    path = token_file(tmp_path / "token")
    TokenFile(str(path), str(tmp_path / "data"), Recorded()).spent()
    assert not path.exists()


def _mode(mode: int) -> Callable[[Path], object]:
    return lambda path: token_file(path, mode=mode)


def _link(path: Path) -> None:
    path.symlink_to(token_file(path.with_name("real")))


BREAKS_THE_RULES: dict[str, tuple[Callable[[Path], object], str]] = {
    "0644": (_mode(0o644), "mode 0644, want 0600 or 0400: chmod 0600"),
    "0640": (_mode(0o640), "mode 0640, want 0600 or 0400: chmod 0600"),
    "0700": (_mode(0o700), "mode 0700"),
    "0200": (_mode(0o200), "mode 0200"),
    "4600": (_mode(0o4600), "mode 4600"),
    "4097 bytes": (lambda path: token_file(path, LONGEST + b"\n"), "is 4097 bytes, want at most 4096"),
    "link": (_link, "is a symbolic link"),
    "pipe": (lambda path: os.mkfifo(path, 0o600), "is not a regular file"),
    "directory": (lambda path: path.mkdir(0o600), "is not a regular file"),
    "dangling link": (lambda path: path.symlink_to("absent"), "is a symbolic link"),
}


@pytest.mark.parametrize("what", BREAKS_THE_RULES)
def test_a_file_that_breaks_a_rule_is_refused_by_name_and_never_deleted(what: str, tmp_path: Path) -> None:
    make, why = BREAKS_THE_RULES[what]
    path = tmp_path / "token"
    make(path)
    events = Recorded()
    source = TokenFile(str(path), str(tmp_path / "data"), events)
    failure = refusal(source)
    assert failure.message is Message.TOKEN_FILE
    assert str(path) in failure.text
    assert why in failure.text
    shows_nothing(failure, TOKEN)
    source.spent()
    assert os.path.lexists(path)
    assert [level for level, _, _ in events.lines] == ["warning"]


def test_a_file_of_4096_bytes_is_small_enough(tmp_path: Path) -> None:
    path = token_file(tmp_path / "token", LONGEST)
    assert TokenFile(str(path), str(tmp_path / "data"), Recorded()).take().reveal() == LONGEST


def test_a_file_that_is_not_there_is_refused_and_spending_it_is_silent(tmp_path: Path) -> None:
    events = Recorded()
    source = TokenFile(str(tmp_path / "absent"), str(tmp_path / "data"), events)
    assert "no such file or directory" in refusal(source).text
    source.spent()
    assert events.lines == []


@pytest.mark.parametrize("below", ["data", "data/../data", "link"])
def test_a_file_in_the_data_directory_is_refused_and_stays(below: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    path = token_file(tmp_path / "data" / "node.key")
    source = TokenFile(str(tmp_path / below / "node.key"), str(tmp_path / "data"), Recorded())
    assert "lies in the data directory" in refusal(source).text
    source.spent()
    assert path.exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_file_beside_the_data_directory_is_no_worse_when_that_is_not_there_yet(there: bool, tmp_path: Path) -> None:
    if there:
        (tmp_path / "data").mkdir()
    path = token_file(tmp_path / "token")
    assert TokenFile(str(path), str(tmp_path / "data"), Recorded()).take().reveal() == TOKEN


READ_ONLY = """
import sys
from bcd.adapters.credential.sources import TokenFile
from tests.fakes.joining import Recorded
events = Recorded()
source = TokenFile(sys.argv[1], "/nowhere", events)
print(source.take().reveal().decode())
source.spent()
print(events.lines)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("how", ["ro", "rw"])
def test_b10_a_file_on_a_read_only_mount_is_a_warning_and_no_failure(how: str, tmp_path: Path) -> None:
    """Field report B10, in a mount namespace of its own."""
    path = token_file(tmp_path / "token")
    mount = f'mount --bind "{tmp_path}" "{tmp_path}" && mount -o remount,bind,{how} "{tmp_path}" && exec "$@"'
    words = ["unshare", "-m", "sh", "-ec", mount, "sh", sys.executable, "-c", READ_ONLY, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    token, told = done.stdout.splitlines()
    assert token.encode() == TOKEN
    assert path.exists() is (how == "ro")
    assert ("'warning'" in told) is (how == "ro")
    assert ("read-only file system" in told) is (how == "ro")


def test_a_name_that_is_itself_a_token_is_not_shown(tmp_path: Path) -> None:
    """Typed as `--token-file TOKEN`: the token would stand in every log that keeps standard error."""
    failure = refusal(TokenFile(TOKEN.decode(), str(tmp_path), Recorded()))
    assert failure.message is Message.TOKEN_FILE
    shows_nothing(failure, TOKEN)


def test_a_spent_file_is_deleted_by_its_own_name_not_by_that_of_a_link_put_there_since(tmp_path: Path) -> None:
    path = token_file(tmp_path / "token")
    source = TokenFile(str(path), str(tmp_path / "data"), Recorded())
    source.take()
    other = token_file(tmp_path / "other")
    path.unlink()
    path.symlink_to(other)
    source.spent()
    assert other.exists()
    assert stat.S_ISLNK(path.lstat().st_mode)
