"""`bcd tpm identify` as a process: both outputs, its exits, and which of the two programs looks where."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import commands, swtpm
from tests.fakes.commands import Ran
from tests.fakes.swtpm import SwTpm


@pytest.fixture(scope="module")
def certified() -> Iterator[SwTpm]:
    with tempfile.TemporaryDirectory() as home:
        state = Path(home) / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        with swtpm.running(Path(home) / "run", state) as tpm:
            yield tpm


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[tpm]\ndevice = "/dev/tpmrm7"\n')
    return path


def identify(config: Path, tpm: str | None, *words: str, program: str = "bcd-fakehw") -> Ran:
    env = {} if tpm is None else {"BCD_FAKEHW_TPM": tpm}
    return commands.run(program, "tpm", "identify", "--config", str(config), *words, env=env)


def test_the_report_as_a_document(certified: SwTpm, config: Path) -> None:
    done = identify(config, f"socket:{certified.path}", "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert set(found) == {"device", "endorsementKeys", "otherCertificates", "pcrBanks", "nodeKeys"}
    assert found["device"] == certified.path
    rsa, ecc = found["endorsementKeys"]
    assert set(rsa) == {"kind", "publicKeySha256", "certificate"}
    assert set(ecc) == {"kind", "publicKeySha256"}
    assert (rsa["kind"], ecc["kind"]) == ("rsa-2048", "ecc-p256")
    assert re.fullmatch("sha256:[0-9a-f]{64}", rsa["publicKeySha256"])
    assert set(rsa["certificate"]) == {"nvIndex", "bytes", "sha256", "ofThisKey"}
    assert rsa["certificate"]["nvIndex"] == "0x01c00002"
    assert rsa["certificate"]["ofThisKey"] is True
    assert [one["nvIndex"] for one in found["otherCertificates"]] == ["0x01c00016"]
    assert found["pcrBanks"] == ["sha256"]
    assert found["nodeKeys"] == {"possible": True}


def test_the_report_for_people_says_what_the_document_says(certified: SwTpm, config: Path) -> None:
    found = json.loads(identify(config, f"socket:{certified.path}", "--json").out)
    done = identify(config, f"socket:{certified.path}")
    assert (done.status, done.err) == (0, "")
    rsa, ecc = found["endorsementKeys"]
    [other] = found["otherCertificates"]
    assert done.out.splitlines() == [
        f"TPM           {certified.path}",
        f"EK rsa-2048   {rsa['publicKeySha256']} "
        f"(certificate at 0x01c00002, {rsa['certificate']['bytes']} bytes, of this key)",
        f"EK ecc-p256   {ecc['publicKeySha256']} (no certificate)",
        f"certificate   at 0x01c00016: {other['bytes']} bytes, {other['sha256']}",
        "PCR banks     sha256",
        "node keys     can live here",
    ]


def test_what_stops_node_keys_is_in_the_report_and_the_last_line(config: Path) -> None:
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home)) as tpm:
        tpm.tool("tpm2_changeauth", "-c", "owner", "secret")
        done = identify(config, f"socket:{tpm.path}", "--json")
        people = identify(config, f"socket:{tpm.path}")
    found = json.loads(done.out)
    assert done.status == people.status == 75
    assert found["nodeKeys"] == {"possible": False, "why": done.last_error}
    assert people.out.splitlines()[-1] == f"node keys     no: {done.last_error}"
    assert [set(key) for key in found["endorsementKeys"]] == [{"kind", "publicKeySha256"}] * 2


@pytest.mark.parametrize("hierarchy", ["owner", "endorsement"])
def test_the_way_back_from_a_password_is_the_command_that_takes_it_away(hierarchy: str, config: Path) -> None:
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home)) as tpm:
        tpm.tool("tpm2_changeauth", "-c", hierarchy, "secret")
        _, _, told = identify(config, f"socket:{tpm.path}").last_error.partition(": take it away with ")
        tpm.tool(*told.replace("PASSWORD", "secret").split())
        assert identify(config, f"socket:{tpm.path}").status == 0


def test_the_way_back_from_a_disabled_hierarchy_is_a_restart(config: Path) -> None:
    """Unless the firmware disables it each time: TPM2_Startup enables it (Part 3, 9.3)."""
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home)) as tpm:
        tpm.tool("tpm2_hierarchycontrol", "-C", "p", "shEnable", "clear")
        told = identify(config, f"socket:{tpm.path}").last_error
        assert told.endswith(": restart the machine; when it stays so, enable it in the firmware")
        words = ["swtpm_ioctl", "--unix", f"{tpm.path}.ctrl", "-i"]
        subprocess.run(words, check=True, capture_output=True, timeout=swtpm.READY_S)
        assert tpm.raw(swtpm.STARTUP)[6:10] == bytes(4)
        assert identify(config, f"socket:{tpm.path}").status == 0


def test_a_key_that_cannot_be_read_says_why(config: Path) -> None:
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home)) as tpm:
        tpm.tool("tpm2_changeauth", "-c", "endorsement", "secret")
        done = identify(config, f"socket:{tpm.path}", "--json")
        people = identify(config, f"socket:{tpm.path}")
    found = json.loads(done.out)
    assert done.status == 75
    assert found["nodeKeys"] == {"possible": True}
    assert [key["trouble"] for key in found["endorsementKeys"]] == [done.last_error] * 2
    assert f"EK rsa-2048   not read ({done.last_error})" in people.out


def test_a_certificate_of_another_key_that_cannot_be_read_is_in_both_reports_too(config: Path) -> None:
    """Else it would read as one that is not there."""
    with tempfile.TemporaryDirectory() as home, swtpm.running(Path(home)) as tpm:
        index = "0x01C00014"
        tpm.tool("tpm2_nvdefine", index, "-C", "o", "-s", "8", "-a", "ownerwrite|policyread|policywrite")
        (tpm.home / "content").write_bytes(bytes(8))
        tpm.tool("tpm2_nvwrite", index, "-C", "o", "-i", "content")
        done = identify(config, f"socket:{tpm.path}", "--json")
        people = identify(config, f"socket:{tpm.path}")
    assert done.status == people.status == 75
    assert "NV_Read failed: TPM_RC_NV_AUTHORIZATION" in done.last_error
    found = json.loads(done.out)
    assert (found["otherCertificates"], found["unread"]) == ([], done.last_error)
    assert f"certificate   not read: {done.last_error}" in people.out.splitlines()
    assert found["nodeKeys"] == {"possible": True}


@pytest.mark.parametrize("tpm", [None, "none"])
def test_bcd_fakehw_has_no_tpm_unless_it_is_told_of_one(tpm: str | None, config: Path) -> None:
    done = identify(config, tpm)
    assert (done.status, done.out) == (75, "")
    assert done.err.startswith("no TPM 2.0: ")


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("sim:", "want none, sim:FILE or socket:PATH"),
        ("socket:", "want none, sim:FILE or socket:PATH"),
        ("tpm0", "want none, sim:FILE or socket:PATH"),
    ],
)
def test_another_word_for_a_tpm_is_refused(word: str, why: str, config: Path) -> None:
    done = identify(config, word)
    assert (done.status, done.out) == (78, "")
    assert done.err == f"environment: BCD_FAKEHW_TPM: {why}\n"


def test_doctor_reports_it_instead(config: Path) -> None:
    words = ("bcd-fakehw", "doctor", "--config", str(config), "--json")
    done = commands.run(*words, env={"BCD_FAKEHW_TPM": "tpm0", "BCD_FAKEHW_TPM_KEYS": "1"})
    assert done.status == 1, done
    found = json.loads(done.out)[0]
    assert (found["check"], found["level"]) == ("config", "fail")
    assert found["message"] == "environment: BCD_FAKEHW_TPM: want none, sim:FILE or socket:PATH"


def test_a_socket_whose_path_is_too_long_is_no_defect(config: Path, tmp_path: Path) -> None:
    done = identify(config, f"socket:/{'x' * 200}")
    assert done.status == 78
    assert done.err.endswith(" is no TPM: AF_UNIX path too long: name the TPM with BCD_FAKEHW_TPM\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="bcd looks at the machine as root")
def test_bcd_looks_at_its_configurations_device_and_never_where_the_environment_says(
    certified: SwTpm, config: Path
) -> None:
    done = identify(config, f"socket:{certified.path}", program="bcd")
    assert (done.status, done.out) == (75, "")
    assert done.err.startswith("no TPM 2.0: /dev/tpmrm7: No such file or directory")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
def test_bcd_wants_root(config: Path) -> None:
    words = ("bcd", "tpm", "identify", "--config", str(config))
    done = commands.run(*words, prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    assert (done.status, done.err) == (77, "bcd tpm identify: run it as root\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="bcd looks at the machine as root")
def test_a_device_that_answers_nothing_readable_is_no_defect(config: Path) -> None:
    config.write_text('[tpm]\ndevice = "/dev/null"\n')
    done = identify(config, None, program="bcd")
    assert done.status == 75
    assert "PCR_Read failed: a malformed answer: ends after 0 bytes" in done.err


def test_there_is_no_other_tpm_command() -> None:
    done = commands.run("bcd-fakehw", "tpm", "quote")
    assert (done.status, done.err) == (2, "bcd-fakehw: no such command (see bcd-fakehw --help)\n")


def test_help_says_what_is_there_and_what_is_not() -> None:
    out = commands.run("bcd", "--help").out
    assert "\n  tpm identify  " in out
    assert "Not in this version: helper, ramdisk; --server." in out
    assert commands.run("bcd", "tpm", "identify", "--help").status == 0


def test_a_path_by_mistake_is_told_with_the_setting_that_has_it_and_not_written_over(
    config: Path, tmp_path: Path
) -> None:
    found = identify(config, f"sim:{config}")
    assert (found.status, found.out) == (78, "")
    assert found.last_error.startswith(f"{config} is no TPM: no software TPM: ")
    assert found.last_error.endswith(": name the TPM with BCD_FAKEHW_TPM (bcd-fakehw tpm manufacture makes one)")
    absent = identify(config, f"sim:{tmp_path}/none")
    assert absent.status == 75
    assert absent.last_error.endswith("or name another with BCD_FAKEHW_TPM (bcd-fakehw tpm manufacture makes one)")
    assert identify(config, "none").last_error.endswith("or name another with BCD_FAKEHW_TPM")


@pytest.mark.skipif(os.geteuid() != 0, reason="bcd tpm identify wants root")
def test_the_real_program_says_which_key_of_its_configuration_has_the_wrong_path(tmp_path: Path) -> None:
    config, other = tmp_path / "config.toml", tmp_path / "shadow"
    other.write_text("what was there")
    config.write_text(f'[tpm]\ndevice = "{other}"\n')
    done = identify(config, None, program="bcd")
    assert (done.status, done.out) == (78, "")
    why = "a file or a disk, not a TPM's device: name the TPM with device under [tpm] in config.toml"
    assert done.last_error == f"{other} is no TPM: {why}"
    assert other.read_text() == "what was there"
