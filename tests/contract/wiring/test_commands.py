"""status and doctor with their real adapters, on a configuration and a data directory of the test's own."""

import json
import os
import stat
from pathlib import Path

import pytest

from bcd.cli.main import BCD, run
from bcd.domain.model.datadir import IDENTITY, KEY
from bcd.protocol.files import identity_json
from tests.fakes.memory_node import identity, record

Captured = pytest.CaptureFixture[str]


def machine(folder: Path, more: str = "", joined: bool = True) -> list[str]:
    """The options that name a machine below `folder`, joined or not."""
    (folder / "data").mkdir(0o700)
    (folder / "config.toml").write_text(f'data_dir = "{folder}/data"\n{more}')
    if joined:
        for name, data in ((IDENTITY, identity_json.encode(identity())), (KEY, record())):
            (folder / "data" / name).write_bytes(data)
            (folder / "data" / name).chmod(0o600)
    return ["--config", str(folder / "config.toml")]


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (stat.S_IMODE(path.stat().st_mode), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("joined", [True, False])
def test_status_in_json_says_what_its_exit_status_says(joined: bool, tmp_path: Path, capsys: Captured) -> None:
    options = machine(tmp_path, joined=joined)
    before = seen(tmp_path)
    status = run(BCD, ["status", "--json", *options])
    document = json.loads(capsys.readouterr().out)
    assert (status, document["exit"], document["joined"]) == ((0, 0, True) if joined else (75, 75, False))
    assert document.get("nodeId") == ("n-7" if joined else None)
    assert document["dataDir"] == f"{tmp_path}/data"
    assert seen(tmp_path) == before


def test_status_in_text_names_the_identity_and_where_its_key_is(tmp_path: Path, capsys: Captured) -> None:
    assert run(BCD, ["status", *machine(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "n-7 (site hall-2, role node), node key a file" in out
    assert "signed intent: 1 command roots (bundle v3)" in out
    assert "expired at 2026-09-27T11:55:00Z" in out
    assert err == ""


def findings(out: str) -> dict[str, dict[str, str]]:
    return {finding["check"]: finding for finding in json.loads(out)}


@pytest.mark.parametrize("user", ["nobody", "no-such-user"])
def test_doctor_finds_a_helper_that_is_no_user_and_does_not_end_with_it(
    user: str, tmp_path: Path, capsys: Captured
) -> None:
    options = machine(tmp_path, f'[helper]\nuser = "{user}"\n')
    assert run(BCD, ["doctor", "--json", *options]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    found = findings(out)
    assert ("there is no user" in found["config"]["message"]) is (user == "no-such-user")
    assert found["config"]["level"] == "fail"


def test_doctor_finds_no_configuration_and_says_the_way_back(tmp_path: Path, capsys: Captured) -> None:
    assert run(BCD, ["doctor", "--json", "--config", str(tmp_path / "absent.toml")]) == 1
    (finding,) = findings(capsys.readouterr().out).values()
    assert (finding["check"], finding["level"]) == ("config", "fail")
    assert finding["wayBack"].startswith("make one with bcd-controlplane node-config")


def test_doctor_says_the_same_in_text_and_changes_nothing(tmp_path: Path, capsys: Captured) -> None:
    options = machine(tmp_path)
    before = seen(tmp_path)
    run(BCD, ["doctor", "--json", *options])
    found = findings(capsys.readouterr().out)
    run(BCD, ["doctor", *options])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    for line, finding in zip(lines, found.values(), strict=True):
        assert line.startswith(f"{finding['level']:5} {finding['check']}")
        assert finding["message"] in line
    assert seen(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="root's files are to be handed over")
def test_b13_status_finds_files_that_are_not_the_helpers(tmp_path: Path, capsys: Captured) -> None:
    """Field report B13."""
    options = machine(tmp_path, '[helper]\nuser = "nobody"\n')
    assert run(BCD, ["status", *options]) == 78
    assert " belongs to root, want nobody: chown nobody " in capsys.readouterr().err
    os.chown(tmp_path / "data", 65534, 65534)
    assert run(BCD, ["status", *options]) == 78
    assert ": owner root, want nobody: chown nobody " in capsys.readouterr().err
    for name in (IDENTITY, KEY):
        os.chown(tmp_path / "data" / name, 65534, 65534)
    assert run(BCD, ["status", *options]) == 0
