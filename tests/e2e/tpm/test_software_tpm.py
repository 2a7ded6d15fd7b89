"""`bcd-fakehw tpm …` and `BCD_FAKEHW_TPM=sim:FILE`, as processes."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.fakes import commands
from tests.fakes.commands import Ran


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made")
    done = tpm("manufacture", home / "tpm.state", "--ca", str(home / "ca"))
    assert (done.status, done.err) == (0, "")
    return home


@pytest.fixture
def state(made: Path, tmp_path: Path) -> Path:
    """A TPM of the test's own, and its manufacturer's directory beside it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tpm.state"


def tpm(command: str, state: Path, *words: str, program: str = "bcd-fakehw") -> Ran:
    return commands.run(program, "tpm", command, "--state", str(state), *words)


def identify(state: Path) -> tuple[Ran, dict[str, Any]]:
    config = state.parent / "config.toml"
    config.write_text('data_dir = "/nowhere"\n')
    env = {"BCD_FAKEHW_TPM": f"sim:{state}"}
    done = commands.run("bcd-fakehw", "tpm", "identify", "--json", "--config", str(config), env=env)
    return done, json.loads(done.out) if done.out else {}


def changed(state: Path, command: str, *words: str) -> tuple[Ran, dict[str, Any]]:
    done = tpm(command, state, *words)
    assert (done.status, done.err, done.out) == (0, "", "")
    return identify(state)


def test_manufacture_prints_where_things_are(tmp_path: Path) -> None:
    state, directory = tmp_path / "tpm.state", tmp_path / "ca"
    done = tpm("manufacture", state, "--ca", str(directory), "--banks", "sha384,sha256")
    assert done.out.splitlines() == [
        f"TPM               {state} (BCD_FAKEHW_TPM=sim:{state})",
        f"manufacturer CA   {directory}/root.pem",
        f"issuing CA        {directory}/issuing.pem",
        "certificate       EK rsa-2048 at 0x01c00002",
        "certificate       EK ecc-p256 at 0x01c0000a",
    ]
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    keys = [directory / name for name in ("root.key", "issuing.key")]
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600, 0o600]
    root, issuing = (x509.load_pem_x509_certificate((directory / f"{n}.pem").read_bytes()) for n in ("root", "issuing"))
    root.verify_directly_issued_by(root)
    issuing.verify_directly_issued_by(root)
    assert identify(state)[1]["pcrBanks"] == ["sha256", "sha384"]


def test_manufacture_overwrites_no_state_and_makes_a_manufacturer_once(state: Path) -> None:
    before, directory = state.read_bytes(), state.parent / "ca"
    root = (directory / "root.pem").read_bytes()
    again = tpm("manufacture", state, "--ca", str(directory))
    assert (again.status, again.out) == (78, "")
    assert again.last_error.startswith(f"bcd-fakehw tpm manufacture: {state}: File exists")
    other = state.parent / "other.state"
    assert tpm("manufacture", other, "--ca", str(directory)).status == 0
    assert state.read_bytes() == before
    assert (directory / "root.pem").read_bytes() == root
    keys = [identify(one)[1]["endorsementKeys"][0]["publicKeySha256"] for one in (state, other)]
    assert len(set(keys)) == 2


def test_a_manufactured_tpm_is_reported_with_its_certificates(state: Path) -> None:
    done, found = identify(state)
    assert (done.status, done.err) == (0, "")
    assert found["device"] == str(state)
    assert [key["kind"] for key in found["endorsementKeys"]] == ["rsa-2048", "ecc-p256"]
    assert [key["certificate"]["ofThisKey"] for key in found["endorsementKeys"]] == [True, True]
    assert [key["certificate"]["nvIndex"] for key in found["endorsementKeys"]] == ["0x01c00002", "0x01c0000a"]
    assert found["pcrBanks"] == ["sha256"]
    assert found["nodeKeys"] == {"possible": True}
    assert identify(state)[1] == found


TROUBLES = [
    (("password", "--hierarchy", "owner", "--password", "x"), "the TPM's owner hierarchy has a password"),
    (("password", "--hierarchy", "endorsement", "--password", "x"), "the TPM's endorsement hierarchy has a password"),
    (("hierarchy", "--hierarchy", "owner", "--off"), "the TPM's owner hierarchy is disabled"),
    (("hierarchy", "--hierarchy", "endorsement", "--off"), "the TPM's endorsement hierarchy is disabled"),
    (("profile", "--family", "1.2"), "no TPM 2.0: "),
    (("profile", "--started", "no"), "is not started (0x100"),
    (("profile", "--retry", "all"), "is busy: TPM_RC_RETRY"),
    (("profile", "--busy", "1"), "is busy: Device or resource busy"),
    (("profile", "--late", "1"), "is busy: no answer to PCR_Read"),
    (("profile", "--held", "3"), "has no free object slots"),
]


@pytest.mark.parametrize(("words", "why"), TROUBLES, ids=[" ".join(words) for words, _ in TROUBLES])
def test_each_trouble_is_met_and_can_be_taken_away(words: tuple[str, ...], why: str, state: Path) -> None:
    done, _ = changed(state, *words)
    assert done.status == 75
    assert why in done.last_error
    if words[0] == "profile":
        back = ("profile", "--family", "2.0", "--started", "yes", "--retry", "0", "--busy", "0", "--held", "0")
    else:
        back = (words[0], "--hierarchy", words[2])
    done, found = changed(state, *back)
    assert (done.status, found["nodeKeys"]) == (0, {"possible": True})


def test_what_is_met_n_times_is_met_n_times(state: Path) -> None:
    """B29: fewer than the client is patient for are not seen at all."""
    assert changed(state, "profile", "--retry", "3")[0].status == 0


def test_a_late_tpm_answers_the_next_time(state: Path) -> None:
    assert changed(state, "profile", "--late", "1")[0].status == 75
    assert identify(state)[0].status == 0


def test_a_clear_leaves_the_endorsement_keys_and_a_new_seed_does_not(state: Path) -> None:
    before = identify(state)[1]
    assert changed(state, "clear")[1]["endorsementKeys"] == before["endorsementKeys"]
    done, after = changed(state, "endorsement-seed")
    assert [key["certificate"]["ofThisKey"] for key in after["endorsementKeys"]] == [False, False]
    assert after["endorsementKeys"][0]["publicKeySha256"] != before["endorsementKeys"][0]["publicKeySha256"]
    assert done.status == 0


def test_a_tpm_of_one_bank_and_without_certificates(state: Path) -> None:
    """B42, B46."""
    done, found = changed(state, "profile", "--banks", "sha384", "--no-certificates")
    assert done.status == 0
    assert found["pcrBanks"] == ["sha384"]
    assert [set(key) for key in found["endorsementKeys"]] == [{"kind", "publicKeySha256"}] * 2


@pytest.mark.parametrize("command", ["power-cycle", "lockout"])
def test_what_does_not_touch_node_keys_leaves_the_report_as_it_is(command: str, state: Path) -> None:
    before = identify(state)[1]
    assert changed(state, command)[1] == before
    assert changed(state, command, "--loss" if command == "power-cycle" else "--off")[1] == before


def test_a_power_cycle_enables_a_hierarchy_again(state: Path) -> None:
    assert changed(state, "hierarchy", "--hierarchy", "owner", "--off")[0].status == 75
    assert changed(state, "power-cycle")[0].status == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file or directory"), (b"", "no software TPM"), (b"bcdT" * 99, "no software TPM")],
)
def test_a_file_that_is_no_tpm(content: bytes | None, why: str, tmp_path: Path) -> None:
    state = tmp_path / "file"
    if content is not None:
        state.write_bytes(content)
    done = tpm("clear", state)
    assert done.status == 78
    assert why in done.last_error
    # One that is not there yet may be there soon; one that is something else is a setting to mend.
    assert identify(state)[0].status == (75 if content is None else 78)
    assert content is None or state.read_bytes() == content


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in tpm("clear", tmp_path / "fifo").last_error
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    assert tpm("clear", tmp_path / "link").status == 78


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("password", "--hierarchy", "platform"), "--hierarchy: want owner or endorsement"),
        (("password", "--hierarchy", "owner", "--password", "x" * 33), "--password: at most 32 bytes"),
        (("profile", "--banks", "sha3"), "--banks: want some of sha1,sha256,sha384,sha512"),
        (("profile", "--retry", "-1"), "--retry: want a number, or all"),
        (("profile", "--held", "4"), "--held: want a number, or all"),
        (("profile", "--family", "3"), "--family: invalid choice"),
        (("clear", "--loss"), "unknown option"),
        (("clear", "now"), "takes no argument"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_wrong_options_change_nothing(words: tuple[str, ...], what: str, state: Path) -> None:
    before = state.read_bytes()
    done = tpm(words[0], state, *words[1:])
    assert done.status == 2
    assert done.last_error == f"bcd-fakehw tpm {words[0]}: {what} (see bcd-fakehw tpm {words[0]} --help)"
    assert state.read_bytes() == before


def test_bcd_has_none_of_these_commands(state: Path) -> None:
    before = state.read_bytes()
    for command in ("manufacture", "clear", "profile", "lockout"):
        done = tpm(command, state, program="bcd")
        assert (done.status, done.err) == (2, "bcd: no such command (see bcd --help)\n")
    assert "manufacture" not in commands.run("bcd", "--help").out
    assert "manufacture" in commands.run("bcd-fakehw", "--help").out
    assert state.read_bytes() == before
