"""The command line: what is taken, and that nothing typed is ever said again."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.cli import fakehw_tpm, join, options
from bcd.cli.build import Build
from bcd.cli.fakehw import BCD_FAKEHW
from bcd.cli.main import BCD, run
from bcd.domain.model.failures import Exit, Failure, Message, Usage
from bcd.domain.model.names import Role
from bcd.protocol.files.config import DEFAULT_PATH
from bcd.wiring.config_file import checked_flags
from tests.fakes.properties import few

CANARY = "c4n4ry"


@cache
def parser(command: str) -> options.Parser:
    if command == "join":
        return join._parser(BCD)
    made = options.Parser("bcd", command, "summary")
    options.add_config(made)
    options.add_json(made)
    return made


def usage(command: str, *argv: str) -> Usage:
    with pytest.raises(Usage) as caught:
        parser(command).read(argv)
    return caught.value


@pytest.mark.parametrize("command", ["join", "status"])
def test_without_options_the_configuration_is_the_one_in_etc(command: str) -> None:
    given = parser(command).read([])
    assert given.config == DEFAULT_PATH
    assert options.config_flags(given) == {}


def test_flags_carry_the_keys_they_stand_for() -> None:
    given = parser("join").read(["--data-dir", "/d", "--log-level=debug", "--log-format", "json", "--config", "c"])
    assert given.config == "c"
    assert options.config_flags(given) == {"data_dir": "/d", "log.level": "debug", "log.format": "json"}


@pytest.mark.parametrize("argv", [["word"], ["--", "word"], ["--"], ["--role", "node", "word"], ["--yes", ""]])
def test_a_positional_argument_is_refused_before_anything_else(argv: list[str]) -> None:
    assert usage("join", *argv).message is Message.POSITIONAL
    assert usage("join", *argv, "--nonsense").message is Message.POSITIONAL
    assert parser("join").read([word for word in argv if (word.startswith("--") and word != "--") or word == "node"])


def test_a_command_without_a_token_says_so_without_naming_the_ways_of_one() -> None:
    assert usage("status", "word").message is Message.NO_ARGUMENT


@pytest.mark.parametrize(
    ("typed", "meant"), [("--dat-dir", "--data-dir"), ("--tokenfile=x", "--token-file"), ("--nodeid", "--node-id")]
)
def test_an_option_that_is_nearly_one_is_answered_with_the_one_that_is_meant(typed: str, meant: str) -> None:
    assert f"did you mean {meant}?" in usage("join", typed).text


def test_the_value_of_a_misspelt_option_does_not_hide_that_it_is_misspelt() -> None:
    assert "did you mean --config?" in usage("join", "--conf", "etc/config.toml").text
    assert "did you mean --node-id?" in usage("join", "--nodeid", CANARY).text
    assert usage("join", "--xyzzy", "word").message is Message.POSITIONAL


def test_a_token_typed_after_an_option_for_it_is_answered_with_the_ways_of_a_token() -> None:
    for option in ("--token", "--tokens"):
        assert usage("join", option, CANARY).message is Message.POSITIONAL


def test_an_option_that_is_like_none_gets_no_hint_nor_does_a_hidden_one() -> None:
    assert usage("join", "--xyzzy").text == "bcd join: unknown option (see bcd join --help)"
    assert "--token-fd" not in usage("join", "--token-fdd").text


def test_an_option_is_never_guessed_from_its_beginning() -> None:
    for command, typed in (("join", "--token=x"), ("join", "--rese"), ("status", "--js"), ("status", "--conf=c")):
        assert "unknown option" in usage(command, typed).text


@pytest.mark.parametrize("option", ["--config", "--role", "--node-id", "--token-file"])
def test_an_option_without_its_value_is_named(option: str) -> None:
    assert usage("join", option).text == f"bcd join: {option}: expected one argument (see bcd join --help)"


@pytest.mark.parametrize("option", ["--config", "--token-file", "--data-dir", "--xyzzy"])
def test_a_join_token_typed_as_a_value_is_refused_as_one_typed_alone(option: str) -> None:
    token = "bcjt_abcdefghij_c4n4ry"
    for words in ([option, token], [f"{option}={token}"]):
        assert usage("join", *words).message is Message.POSITIONAL
        assert CANARY not in usage("join", *words).text
    assert parser("join").read(["--config", "bcjt.toml"]).config == "bcjt.toml"


@pytest.mark.parametrize("role", list(Role))
def test_each_role_is_a_role(role: Role) -> None:
    assert options.wanted_role(parser("join"), role.value) is role


@pytest.mark.parametrize("typed", ["Node", "", "nodes", CANARY])
def test_another_word_is_no_role_and_is_not_said_again(typed: str) -> None:
    with pytest.raises(Usage) as caught:
        options.wanted_role(parser("join"), typed)
    assert caught.value.text == "bcd join: --role: want node, site or ramdisk (see bcd join --help)"


def test_a_node_id_is_one_or_none_at_all() -> None:
    assert options.wanted_node(parser("join"), None) is None
    assert options.wanted_node(parser("join"), "n-7.a_B") == "n-7.a_B"
    for typed in ("", ".", "..", "a/b", "a b", f"bcjt_{CANARY}", "x" * 64, f"{CANARY}\n"):
        with pytest.raises(Usage) as caught:
            options.wanted_node(parser("join"), typed)
        assert "--node-id" in caught.value.text
        assert CANARY not in caught.value.text


# Around the canary: quotes of both kinds, line ends, equals signs, dashes, whatever may follow a dash.
CANARIES = st.builds(
    "{}{}{}".format,
    st.text("'\"-= \n\\{}%bcjt_x", max_size=6),
    st.just(CANARY),
    st.text("'\"-= \n\\{}%x", max_size=6),
)
OPTIONS = ["--config", "--data-dir", "--role", "--node-id", "--token-file", "--attestor", "--log-level", "--log-format"]
SWITCHES = ["--yes", "--reset", "--json", "-h", "--help", "--token-fd", "--xyzzy", "-x", "-", "--"]


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Any options, and the canary as a value, glued to an option or alone."""
    words = draw(st.lists(st.sampled_from([*OPTIONS, *SWITCHES, "word"]), max_size=4))
    canary = draw(CANARIES)
    before = draw(st.sampled_from([*OPTIONS, *SWITCHES, ""]))
    shape = draw(st.sampled_from(["{before} {canary}", "{before}={canary}", "{before}{canary}"]))
    glued = shape.format(before=before, canary=canary)
    there = [before, canary] if shape.startswith("{before} ") and before else [glued]
    return [*words, *there, *draw(st.lists(st.sampled_from([*SWITCHES, "word"]), max_size=2))]


@settings(few, max_examples=300)
@given(argv=command_lines())
@pytest.mark.parametrize("command", ["join", "status"])
def test_whatever_is_typed_no_usage_message_says_it_again(command: str, argv: list[str]) -> None:
    made = parser(command)
    try:
        given = made.read(argv)
        checked_flags(options.config_flags(given))
        if command == "join":
            options.wanted_role(made, given.role)
            options.wanted_node(made, given.node_id)
    except Failure as failure:
        assert CANARY not in failure.text
        assert CANARY not in repr(failure)
        assert failure.text.isprintable()
    except options.HelpShown:
        assert {"-h", "--help"} & set(argv) or any(word.startswith("-h") for word in argv)


@pytest.mark.parametrize("quote", ["'", '"', "'\"", "\"'"])
def test_a_quote_in_what_is_typed_does_not_bring_it_to_light(quote: str) -> None:
    for command, switch in (("join", "--yes"), ("status", "--json"), ("status", "-h")):
        for typed in (f"{switch}={CANARY}{quote}", f"{switch}={quote}{CANARY}"):
            failure = usage(command, typed)
            assert CANARY not in failure.text
    assert usage("join", "--yes=x").text == "bcd join: --yes: ignored explicit argument (see bcd join --help)"


# --- Which command


@pytest.mark.parametrize(
    "argv", [[CANARY], ["--config", CANARY], [f"--{CANARY}"], ["join", CANARY], ["doctor", CANARY]]
)
def test_what_is_no_command_and_no_option_is_not_said_again(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(BCD, argv) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert CANARY not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("build", "argv", "meant"),
    [
        (BCD, ["stauts"], "status"),
        (BCD, ["tmp"], "tpm"),
        (BCD, ["tpm", "identfy", "--json"], "tpm identify"),
        (BCD_FAKEHW, ["tpm", "manufactur"], "tpm manufacture"),
    ],
)
def test_a_command_that_is_nearly_one_is_answered_with_the_one_that_is_meant(
    build: Build, argv: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(build, argv) == Exit.USAGE
    program = build.program
    assert capsys.readouterr().err == f"{program}: no such command (did you mean {meant}?) (see {program} --help)\n"


def test_bcd_does_not_name_what_bcd_fakehw_alone_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BCD, ["tpm", "manufactur"]) == Exit.USAGE
    assert capsys.readouterr().err == "bcd: no such command (see bcd --help)\n"


@pytest.mark.parametrize(
    ("argv", "status"), [(["tpm"], 2), (["tpm", "--help"], 0), (["tpm", "-h"], 0), (["tpm", "help"], 0)]
)
def test_tpm_alone_shows_its_commands(argv: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    for build, has_others in ((BCD, False), (BCD_FAKEHW, True)):
        assert run(build, argv) == status
        out, err = capsys.readouterr()
        assert err == ""
        assert f"{build.program} tpm COMMAND" in out
        assert "tpm identify" in out
        assert ("manufacture" in out) is has_others


@pytest.mark.parametrize(("argv", "status"), [([], 2), (["--help"], 0), (["help"], 0), (["--version"], 0)])
def test_help_and_version_are_results(argv: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BCD, argv) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert "bcd" in out


@pytest.mark.parametrize("command", ["join", "status", "doctor"])
def test_the_help_of_a_command_is_a_result_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BCD, [command, "--help"]) == Exit.OK
    out, err = capsys.readouterr()
    assert out.startswith(f"usage: bcd {command}")
    assert "--token-fd" not in out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--yes"], "--yes"),
        (["--attestor=x509pop"], "--attestor"),
        (["--attestor", "tpm", "--token-file", "/t"], "--token-file"),
        (["--attestor", "tpm", "--node-id", "n-7"], "--node-id"),
    ],
)
def test_what_join_cannot_do_is_a_usage_error(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BCD, ["join", *words]) == Exit.USAGE
    assert named in capsys.readouterr().err


def test_a_failure_is_one_line_whatever_its_fields_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BCD, ["status", "--config", "/absent/a\nb\x1b[31m\u2028"]) == Exit.CONFIGURATION
    err = capsys.readouterr().err
    assert err.endswith("\n")
    assert err[:-1].isprintable()


PAGES = [
    *([command] for command in ("join", "node", "status", "doctor")),
    ["tpm", "identify"],
    ["tpm"],
    [],
    *(["tpm", name] for name in fakehw_tpm.COMMANDS),
]


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_a_page_of_help_fits_a_terminal_of_80_columns(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(BCD_FAKEHW, [*words, "--help"]) == Exit.OK
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_bcd_fakehw_names_every_tpm_command_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(BCD_FAKEHW.own_tpm) == set(fakehw_tpm.COMMANDS)
    assert run(BCD_FAKEHW, ["--help"]) == Exit.OK
    out = capsys.readouterr().out
    assert all(name in out for name in fakehw_tpm.COMMANDS)
