"""Two readers of one configuration: the one that starts fast, and pydantic's. They agree on every file and flag."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bcd.domain.model.failures import Failure, FixConfiguration, Message, Usage
from bcd.domain.model.pins import Pin
from bcd.protocol.files.config import KEYS, Config
from bcd.wiring import config_file, settings
from tests.fakes.commands import environment

REPOSITORY = Path(__file__).parents[3]
A, B = str(Pin.of(b"a")), str(Pin.of(b"b"))
PINS = ["serving_ca_spki_pin", "join_encryption_key_pin", "join_signing_key_pin", "command_root_sha256"]

GOOD = {
    "nothing": "",
    "a comment": "# nothing\n",
    "data_dir": 'data_dir = "/srv/bcd"',
    "data_dir with a slash too many": 'data_dir = "/srv//bcd/"',
    "join": 'join = "join.example:8443"',
    "join by IPv4": 'join = "192.0.2.1:8443"',
    "join by IPv6": 'join = "[2001:db8::1]:8443"',
    "gateway": 'gateway = "gw.example:1"',
    "highest port": 'gateway = "gw.example:65535"',
    **{f"{pin} as one": f'{pin} = "{A}"' for pin in PINS},
    **{f"{pin} as a list": f'{pin} = ["{A}", "{B}"]' for pin in PINS},
    "tpm": '[tpm]\ndevice = "/dev/tpmrm1"\nwait_s = 5',
    "no wait for the tpm": "[tpm]\nwait_s = 0",
    "a wait in fractions": "[tpm]\nwait_s = 0.25",
    "helper": '[helper]\nuser = "bcd"',
    "all of the helper": '[helper]\nuser = "_bcd.x-1"\nsocket = "/run/x.sock"\nrecord_dir = "/var/lib/x"',
    "log": '[log]\nlevel = "debug"\nformat = "json"',
    "empty tables": "[tpm]\n[helper]\n[log]",
    "dotted": 'log.level = "error"',
    "everything": f'data_dir="/d"\njoin="j:1"\ngateway="g:2"\nserving_ca_spki_pin="{A}"\n[log]\nlevel="warning"',
}
BAD = {
    "no TOML": "data_dir =",
    "a byte that is no UTF-8": b"data_dir = '\xff'",
    "a byte-order mark": b"\xef\xbb\xbfdata_dir = '/d'",
    "twice": 'data_dir = "/a"\ndata_dir = "/b"',
    "unknown key": 'datadir = "/srv"',
    "misspelled pin": f'serving_ca_spki_pins = "{A}"',
    "key in capitals": 'DATA_DIR = "/srv"',
    "unknown key in a table": '[log]\nlevels = "debug"',
    "unknown table": '[node]\nx = "y"',
    "a table that is none": 'log = "debug"',
    "a key that is a table": '[join]\nhost = "x"',
    "a list of tables": '[[log]]\nlevel = "debug"',
    "relative data_dir": 'data_dir = "bcd"',
    "empty data_dir": 'data_dir = ""',
    "number for data_dir": "data_dir = 7",
    "data_dir in two lines": 'data_dir = "/a\\nb"',
    "join without a port": 'join = "example"',
    "join with port 0": 'join = "example:0"',
    "join with port 65536": 'join = "example:65536"',
    "join as a URL": 'join = "https://example:443"',
    "bare IPv6": 'join = "::1:443"',
    "join as a number": "join = 443",
    **{f"{pin} too short": f'{pin} = "sha256:00"' for pin in PINS},
    "pin in capitals": f'serving_ca_spki_pin = "{A.upper()}"',
    "pin without its algorithm": f'serving_ca_spki_pin = "{A[7:]}"',
    "no pins": "serving_ca_spki_pin = []",
    "one bad pin of two": f'serving_ca_spki_pin = ["{A}", "x"]',
    "pin that is a number": "join_signing_key_pin = 7",
    "list of a number": "join_signing_key_pin = [7]",
    "wait that is true": "[tpm]\nwait_s = true",
    "wait in words": '[tpm]\nwait_s = "5"',
    "negative wait": "[tpm]\nwait_s = -1",
    "wait of a day": "[tpm]\nwait_s = 86400",
    "wait that is none": "[tpm]\nwait_s = nan",
    "helper without its user": '[helper]\nsocket = "/run/x"',
    "user that is a path": '[helper]\nuser = "../x"',
    "level that is none": '[log]\nlevel = "trace"',
    "level that is a list": '[log]\nlevel = ["debug"]',
    "format that is none": '[log]\nformat = "xml"',
    "too large": "#" * (1 << 16) + "\n",
}


def outcome(read: object, path: str, flags: Mapping[str, str]) -> Config | tuple[type[Failure], Message, str]:
    try:
        return read(path, flags)  # type: ignore[operator, no-any-return]
    except Failure as failure:
        return type(failure), failure.message, failure.text


def both(path: Path, flags: Mapping[str, str] | None = None) -> Config | tuple[type[Failure], Message, str]:
    """What both readers make of it, which is the same."""
    lean, full = (outcome(read, str(path), flags or {}) for read in (config_file.read, settings.read))
    assert lean == full
    return lean


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("what", GOOD)
def test_a_good_configuration_is_the_same_to_both(what: str, tmp_path: Path) -> None:
    found = both(written(tmp_path, GOOD[what]))
    assert isinstance(found, Config)
    assert found.path == str(tmp_path / "config.toml")
    assert (found == Config(found.path)) is (what in ("nothing", "a comment", "empty tables"))


@pytest.mark.parametrize("what", BAD)
def test_a_bad_configuration_fails_the_same_for_both_and_shows_no_value(what: str, tmp_path: Path) -> None:
    found = both(written(tmp_path, BAD[what]))
    assert not isinstance(found, Config)
    kind, message, text = found
    assert kind is FixConfiguration
    assert message in (Message.CONFIG_KEY, Message.CONFIG_SYNTAX)
    assert text.startswith(f"{tmp_path}/config.toml: ")
    assert text.isprintable()


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("value", ['"sha256:00"', "[]", f'["{A}", "x"]', "7"])
def test_a_malformed_pin_is_named_by_its_key(pin: str, value: str, tmp_path: Path) -> None:
    found = both(written(tmp_path, f"{pin} = {value}"))
    assert isinstance(found, tuple)
    assert f": {pin}: " in found[2]


def test_an_unknown_key_is_refused_and_answered_with_those_that_are_known(tmp_path: Path) -> None:
    found = both(written(tmp_path, f'serving_ca_pin = "{A}"'))
    assert isinstance(found, tuple)
    assert "serving_ca_pin: unknown key (did you mean serving_ca_spki_pin?)" in found[2]
    assert all(key in found[2] for key in KEYS)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("[log]\nlevle = 1", "log.level"), ('[tmp]\ndevice = "/x"', "tpm"), ("gatway = 1", "gateway"), ("xyzzy = 1", "")],
)
def test_a_misspelt_key_or_table_is_answered_with_the_one_that_is_meant(text: str, meant: str, tmp_path: Path) -> None:
    found = both(written(tmp_path, text))
    assert isinstance(found, tuple)
    assert ("unknown key (known: " in found[2]) is (meant == "")
    assert meant == "" or f"unknown key (did you mean {meant}?) (known: " in found[2]


@pytest.mark.parametrize(
    ("flags", "key", "value"),
    [
        ({"data_dir": "/flag"}, "data_dir", "/flag"),
        ({"log.level": "error"}, "log_level", "error"),
        ({"log.format": "json"}, "log_format", "json"),
    ],
)
def test_a_flag_goes_over_the_file_and_over_nothing_else(
    flags: dict[str, str], key: str, value: str, tmp_path: Path
) -> None:
    path = written(tmp_path, 'data_dir = "/file"\n[log]\nlevel = "debug"\nformat = "text"')
    plain, over = both(path), both(path, flags)
    assert isinstance(plain, Config)
    assert isinstance(over, Config)
    assert getattr(over, key) == value
    changed = {name for name in vars(plain) if getattr(plain, name) != getattr(over, name)}
    assert changed == {key}


@pytest.mark.parametrize("flags", [{"data_dir": "flag"}, {"data_dir": ""}, {"log.level": "x"}, {"log.format": "x"}])
def test_a_bad_flag_is_named_as_a_flag(flags: dict[str, str], tmp_path: Path) -> None:
    found = both(written(tmp_path, ""), flags)
    assert isinstance(found, tuple)
    ((key, value),) = flags.items()
    flag = {"data_dir": "--data-dir", "log.level": "--log-level", "log.format": "--log-format"}[key]
    assert found[0] is Usage
    assert found[2].startswith(f"command line: {flag}: ")
    assert f": {value}" not in found[2].removeprefix("command line: ") or not value


def test_a_file_that_is_not_there_may_not_be_read_or_is_a_directory_is_said_to_be_that(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "absent.toml", Message.NO_CONFIG),
        (tmp_path / "absent" / "config.toml", Message.NO_CONFIG),
        (tmp_path, Message.CONFIG_SYNTAX),
    ):
        found = both(path)
        assert isinstance(found, tuple)
        assert found[1] is message
        assert str(path) in found[2]


# --- Nothing of the environment counts

FULL = (
    f'data_dir = "/file"\njoin = "file:1"\nserving_ca_spki_pin = "{A}"\n[log]\nlevel = "debug"\n[helper]\nuser = "bcd"'
)
READ = """
import sys
from bcd.wiring import config_file, settings
print(config_file.read(sys.argv[1], {}))
print(settings.read(sys.argv[1], {}))
"""


def read_with(path: Path, extra: Mapping[str, str], folder: Path) -> str:
    words = [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv.pop())\n" + READ, str(path)]
    done = subprocess.run(
        [*words, str(REPOSITORY)], env=environment(extra), cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_no_variable_of_any_name_and_no_dotenv_file_changes_a_setting(tmp_path: Path) -> None:
    """A pin from the environment would be an attack (decision 21)."""
    values = {
        "data_dir": "/env",
        "join": "env:1",
        "gateway": "env:2",
        "tpm_wait_s": "1",
        "log_level": "error",
        "log_format": "json",
        "helper_user": "env",
    } | dict.fromkeys(PINS, B)
    extra = {}
    for key in KEYS:
        name = key.replace(".", "_")
        spellings = (name, key.replace(".", "__"), f"bcd_{name}", f"bcd__{name}", f"settings_{name}", f"app_{name}")
        for spelling in spellings:
            for cased in (spelling, spelling.upper()):
                extra[cased] = values.get(name, "/env")
    for table in ("log", "LOG", "helper", "HELPER", "tpm", "TPM"):
        extra[table] = '{"level": "error", "user": "env", "device": "/env"}'
    extra |= {"CONFIG": "/env", "BCD_CONFIG": "/env", "SECRETS_DIR": str(tmp_path)}
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in extra.items()))
    (tmp_path / "data_dir").write_text("/secret")
    path = written(tmp_path, FULL)
    plain = read_with(path, {}, REPOSITORY)
    assert "/file" in plain
    assert len(set(plain.splitlines())) == 1
    assert read_with(path, extra, tmp_path) == plain


# --- What is imported by what

HEAVY = ("grpc", "pydantic", "pydantic_settings", "dependency_injector", "loguru", "google.protobuf", "sqlite3")


def imported_by(code: str, *words: str) -> set[str]:
    """The modules a process has imported when `code` is done."""
    last = "\nimport sys\nprint('MODULES', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code + last, *words], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    return set(done.stdout.split("MODULES")[1].split())


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("--version",), ("--help",)])
def test_a_status_imports_nothing_it_does_not_need(words: tuple[str, ...], tmp_path: Path) -> None:
    path = written(tmp_path, f'data_dir = "{tmp_path}/data"')
    code = "import sys\nfrom bcd.cli.main import main\nmain(sys.argv[1:])"
    config = ("--config", str(path)) if words[0] == "status" else ()
    found = imported_by(code, *words, *config)
    assert not found & set(HEAVY)
    assert "bcd.cli.main" in found


def test_a_join_imports_all_of_them_but_the_journals(tmp_path: Path) -> None:
    path = written(tmp_path, f'data_dir = "{tmp_path}/data"')
    code = "import sys\nfrom bcd.cli.fakehw import main\nassert main(sys.argv[1:]) == 78"
    found = imported_by(code, "join", "--config", str(path))
    assert set(HEAVY) - found == {"sqlite3"}


def test_bcd_never_imports_the_fake_hardware_and_bcd_fakehw_does() -> None:
    fake = {"bcd.wiring.fakehw", "bcd.adapters.hardware.machine_file", "bcd.cli.fakehw"}
    real = imported_by("from bcd.cli import main, join, status, doctor\nmain.BCD.container()")
    assert not real & fake
    assert not [name for name in real if name.startswith("bcd.adapters.tpmsim")]
    assert "bcd.wiring.container" in real
    build = "from bcd.cli import fakehw\nfrom bcd.cli.fakehw import _container\n_container()"
    assert fake <= imported_by(build)
