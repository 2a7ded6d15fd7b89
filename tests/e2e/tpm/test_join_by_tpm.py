"""`bcd join --attestor tpm` as processes, on a TPM that nobody here wrote: who gets in, and as what."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lifecycle.lives import leaf_of
from tests.fakes import commands, swtpm
from tests.fakes.commands import Ran
from tests.fakes.fitted_machine import FittedMachine, OnSwTpm, on_swtpm
from tests.fakes.node_process import until
from tests.fakes.plane import Plane, control_plane

# A token that is none: it would be refused, were it sent.
TOKEN = "bcjt_abcdefghij_" + "x" * 43

pytestmark = pytest.mark.usefixtures("ended")


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """The state of a TPM with a certificate by a manufacturer, whose CAs are in the directory beside it."""
    with tempfile.TemporaryDirectory() as home:
        state = Path(home) / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        yield state


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Plane]:
    """A control plane that knows no manufacturer and no TPM."""
    with control_plane(tmp_path) as serving:
        yield serving


def rows(plane: Plane, *words: str) -> Any:
    return plane.json(*words)


def done(process: "subprocess.Popen[bytes]") -> Ran:
    out, err = process.communicate(timeout=commands.TIMEOUT_S)
    return Ran(process.returncode, out.decode(), err.decode())


def statements(one: FittedMachine) -> list[str]:
    """Every text in the leaf that speaks of an attestation key, by openssl."""
    leaf = leaf_of((one.machine.data / "identity.json").read_bytes())
    words = ["openssl", "asn1parse", "-inform", "DER"]
    shown = subprocess.run(words, input=leaf, capture_output=True, check=True).stdout.decode()
    [extension] = re.findall(r"X509v3 Subject Alternative Name\n.*\[HEX DUMP\]:([0-9A-F]+)", shown)
    names_ = subprocess.run(words, input=bytes.fromhex(extension), capture_output=True, check=True).stdout.decode()
    found = re.findall(r"UTF8STRING +:(urn:bc:tpm-ak:.*)", names_)
    # An otherName of the kind "permanent identifier", and nothing else.
    assert names_.count("Permanent Identifier") == len(found)
    return found


# ---- who gets in


def test_a_tpm_of_an_unknown_maker_is_refused_of_a_known_one_waits_and_of_an_admitted_one_joins(
    own: Plane, made: Path
) -> None:
    with on_swtpm(own, made) as one:
        refused = one.fitted.join()
        assert refused.status == 77
        assert rows(own, "refusals", "list")[0]["reason"] == "ek-ca-unknown"
        assert rows(own, "ek-roots", "import", str(made.parent / "made-manufacturer"))["added"] == 2
        process = one.fitted.start_join()
        until(lambda: rows(own, "approvals", "list"), "nobody is asked")
        [asked] = rows(own, "approvals", "list")
        assert asked["ek"] == one.fitted.ek()
        own.admin("approvals", "approve", asked["id"], "--site", "barn")
        joined = done(process)
        assert joined.status == 0, joined.err
        row = one.fitted.row()
        assert (row["site"], row["nodeKey"], row["ek"]) == ("barn", "tpm", asked["ek"])
    own.admin("ek", "remove", asked["ek"])
    own.admin("nodes", "delete", row["id"])
    [root] = [row for row in rows(own, "ek-roots", "list") if row["subject"] == row["issuer"]]
    own.admin("ek-roots", "admit", root["fingerprint"], "--site", "shed", "--role", "node")
    with on_swtpm(own, made) as other:
        assert other.fitted.joined().row()["site"] == "shed"


def test_a_file_of_the_operators_says_who_gets_in_and_as_which_node(plane: Plane, one: OnSwTpm, tmp_path: Path) -> None:
    file = tmp_path / "eks.csv"
    file.write_text(f"ek,site,role,node_id,note\n{one.fitted.ek('ecc-p256')},lab,site,rack-7,by hand\n")
    plane.admin("ek", "import", str(file))
    refused = one.fitted.join()
    assert refused.status == 77
    row = one.fitted.joined("--role", "site").row()
    assert (row["id"], row["role"], row["nodeKey"]) == ("rack-7", "site", "tpm")


def test_b47_a_second_tpm_in_a_machine_that_says_the_same_is_never_the_first_ones_node(
    plane: Plane, one: OnSwTpm
) -> None:
    one.fitted.allowed().joined()
    with on_swtpm(plane, claims_of=one.fitted.machine) as other:
        assert other.fitted.machine.env == one.fitted.machine.env
        assert other.fitted.join().status == 77
        # Not by the operator's mistake, either.
        other.fitted.allowed("--node-id", one.fitted.id)
        assert other.fitted.join().status == 77
        assert rows(plane, "refusals", "list")[0]["reason"] == "ek-node-taken"
        other.fitted.allowed().joined()
        assert other.fitted.id != one.fitted.id
    assert one.fitted.row()["generation"] == 1


# ---- as what


def test_the_leaf_names_the_attestation_key_by_openssl_as_the_tpm_does(one: OnSwTpm) -> None:
    one.fitted.allowed().joined()
    assert statements(one.fitted) == [f"urn:bc:tpm-ak:{one.ak_name.hex()}"]
    row = one.fitted.row()
    assert (row["akName"], row["nodeKey"]) == (one.ak_name.hex(), "tpm")
    assert one.fitted.status()["nodeKey"] == "tpm"
    assert one.tpm.transient() == ""


def test_a_join_by_tpm_whose_key_is_a_file_is_unattested(plane: Plane) -> None:
    with on_swtpm(plane, keys_in_tpm=False) as one:
        one.fitted.allowed().joined()
        assert statements(one.fitted) == []
        assert (one.fitted.row()["nodeKey"], one.fitted.row()["akName"]) == ("unattested", "")
        assert one.fitted.status()["nodeKey"] == "file"
        assert one.proxy.counts["CERTIFY"] == 0


def test_b34_an_owner_password_makes_the_key_a_file_and_the_join_unattested(one: OnSwTpm) -> None:
    one.fitted.allowed()
    one.tpm.tool("tpm2_changeauth", "-c", "owner", "secret")
    joined = one.fitted.join()
    assert joined.status == 0, joined.err
    assert joined.err.count("the TPM's owner hierarchy has a password") == 1
    assert statements(one.fitted) == []
    assert one.fitted.row()["nodeKey"] == "unattested"


def test_a_join_by_token_is_unattested_wherever_its_key_is(plane: Plane, one: OnSwTpm) -> None:
    joined = one.fitted.run("join", stdin=f"{plane.token()}\n".encode())
    assert joined.status == 0, joined.err
    assert one.fitted.status()["nodeKey"] == "tpm"
    assert statements(one.fitted) == []
    assert one.fitted.row()["nodeKey"] == "unattested"
    assert set(one.proxy.counts) <= {"CREATE_PRIMARY", "SIGN", "FLUSH_CONTEXT"}


# ---- the command line


def test_a_token_is_taken_out_of_the_environment_and_none_is_read(own: Plane, made: Path) -> None:
    """B53."""
    own.admin("ek-roots", "import", str(made.parent / "made-manufacturer"))
    reading, writing = os.pipe()
    os.write(writing, f"{TOKEN}\n".encode())
    with on_swtpm(own, made) as one:
        machine = one.fitted.machine
        process = subprocess.Popen(
            commands.command(machine.words("join", "--attestor", "tpm")),
            env=commands.environment({**machine.env, **one.fitted.env, "BCD_JOIN_TOKEN": TOKEN}),
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            until(lambda: rows(own, "approvals", "list"), "nobody is asked")
            assert TOKEN.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes()
            # Dropped, and not handed on to itself in a descriptor, as for a join by token.
            assert b"--token-fd" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
            [asked] = rows(own, "approvals", "list")
            own.admin("approvals", "approve", asked["id"], "--site", "lab")
            joined = done(process)
        finally:
            process.kill()
            process.wait()
    assert joined.status == 0, joined.err
    os.close(writing)
    assert os.read(reading, 4096) == f"{TOKEN}\n".encode()
    os.close(reading)
    held = b"".join(path.read_bytes() for path in machine.data.iterdir())
    assert TOKEN.encode() not in held
    assert TOKEN not in joined.out + joined.err


def test_what_is_about_tokens_does_not_go_with_a_tpm(one: OnSwTpm, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    for words in (("--token-file", str(token)), ("--node-id", "rack-7")):
        wrong = one.fitted.join(*words)
        assert wrong.status == 2
        assert wrong.last_error == (f"bcd join: {words[0]} does not go with --attestor tpm (see bcd join --help)")
    assert token.read_text() == TOKEN
    assert one.proxy.sent == []
    assert not one.fitted.machine.data.exists()


# ---- another TPM, and this one changed


def test_a_disk_in_another_machine_is_no_identity_there(plane: Plane, one: OnSwTpm) -> None:
    one.fitted.allowed().joined()
    with ExitStack() as stack:
        moved = stack.enter_context(on_swtpm(plane)).disk_of(one).fitted
        before = moved.machine.files()
        for command in ("node", "join"):
            ended = moved.run(command)
            assert ended.status == 76
            assert "the TPM derives another key from node.key" in ended.last_error
        assert moved.machine.files() == before
    again = one.fitted.join()
    assert again.status == 0, again.err
    assert "already joined" in again.out


def test_a_cleared_tpm_comes_back_as_the_same_node(one: OnSwTpm) -> None:
    """The owner hierarchy's keys are others then, the endorsement key is not."""
    one.fitted.allowed().joined()
    node, ak = one.fitted.id, one.ak_name
    one.tpm.tool("tpm2_clear")
    ended = one.fitted.run("node")
    assert ended.status == 76
    assert "was the TPM cleared?" in ended.last_error
    one.fitted.joined("--reset", "--yes")
    row = one.fitted.row()
    assert (row["id"], row["generation"], row["akName"]) == (node, 2, ak.hex())
