"""bcd and its TPM client over /dev/tpmrm0 of a real kernel: one guest for all, and what `guest_checks` found in it."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from bcd.adapters.tpm.client import Key
from bcd.protocol.tpm2 import names, templates
from bcd.protocol.tpm2.structures import Handle
from tests.fakes import kernel, swtpm
from tests.fakes.plane import control_plane

pytestmark = pytest.mark.skipif(kernel.missing() != "", reason=kernel.missing())

# A tenth of it on a machine with nothing else to do.
BOUND_S = 400.0
OK, FULL = 0, 0x902
MANUFACTURED = ["0x01c00002", "0x01c00016"]


class Guest:
    """The lines of one run. `endorsement_keys` and `ak_name` are those that its TPM has outside, too."""

    def __init__(self, ran: kernel.Booted, endorsement_keys: dict[str, str], ak_name: str) -> None:
        self.booted = ran
        self.endorsement_keys = endorsement_keys
        self.ak_name = ak_name
        self._lines = {line["check"]: line for line in map(json.loads, ran.ran.out.splitlines())}

    def found(self, check: str) -> Any:
        assert check in self._lines, f"{self.booted.ran.err}\n{self.booted.console}"
        line = self._lines[check]
        assert "trouble" not in line, line["trouble"]
        return line["found"]


def by_tools(home: Path, state: Path) -> tuple[dict[str, str], str]:
    """The digests of the endorsement keys as tpm2-tools derive them, in a copy of the TPM that never boots, and the
    name of the attestation key there."""
    digests = {}
    with swtpm.running(home, state) as tpm:
        for kind, name in (("rsa", "rsa-2048"), ("ecc", "ecc-p256")):
            tpm.tool("tpm2_createek", "-c", "ek.ctx", "-G", kind, "-u", "ek.pem", "-f", "pem")
            tpm.tool("tpm2_flushcontext", "-t")
            public = load_pem_public_key((home / "ek.pem").read_bytes())
            der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            digests[name] = f"sha256:{hashlib.sha256(der).hexdigest()}"
        client = tpm.client()
        ak_name = names.name(client.load(Key(Handle.ENDORSEMENT, templates.AK)).public).hex()
        client.close()
    return digests, ak_name


def a_plane(home: Path, ek: str) -> Path:
    """A control plane that is ready to serve, and lets the TPM with this key in: the guest is slow at starting
    programs."""
    home.mkdir()
    with control_plane(home) as plane:
        plane.admin("ek", "allow", ek, "--site", "lab")
    return home


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        state = home / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        keys, ak_name = by_tools(home / "beside", state)
        words = ("python", "-m", "tests.e2e.tpm.guest_checks", str(a_plane(home / "plane", keys["rsa-2048"])))
        yield Guest(kernel.boot(home / "guest", state, words, bound_s=BOUND_S), keys, ak_name)


def test_the_guest_ran_every_check_and_went_off(guest: Guest) -> None:
    assert guest.booted.ran.status == 0, guest.booted.ran.err
    assert "reboot: Power down" in guest.booted.console


def test_bcd_identifies_the_tpm_by_the_device_of_its_default(guest: Guest) -> None:
    found = guest.found("the_program_identifies")
    assert (found["status"], found["err"]) == (0, "")
    report = json.loads(found["out"])
    assert report["device"] == "/dev/tpmrm0"
    assert {key["kind"]: key["publicKeySha256"] for key in report["endorsementKeys"]} == guest.endorsement_keys
    assert report["endorsementKeys"][0]["certificate"]["ofThisKey"] is True
    assert [one["nvIndex"] for one in report["otherCertificates"]] == MANUFACTURED[1:]
    assert report["nodeKeys"] == {"possible": True}


def test_identifying_leaves_nothing_loaded_and_changes_nothing_that_stays(guest: Guest) -> None:
    found = guest.found("the_program_identifies")
    assert found["after"] == found["before"]
    assert found["after"] | {"persistent": []} == {
        "transient": [],
        "persistent": [],
        "nv": MANUFACTURED,
        "loaded sessions": [],
        "active sessions": [],
    }
    assert "0x81010001" in found["after"]["persistent"]


def test_who_is_not_root_cannot_open_the_device(guest: Guest) -> None:
    found = guest.found("somebody_who_is_not_root")
    assert found["message"] == "TPM_OPEN"
    assert found["text"].startswith("cannot open the TPM /dev/tpmrm0: Permission denied: run it as root")


def test_nor_can_root_without_its_capabilities_when_the_device_is_another_users(guest: Guest) -> None:
    found = guest.found("root_without_its_capabilities")
    assert found["alone"]["message"] == "TPM_OPEN"
    assert found["in its group"]["message"] == "", "a unit's SupplementaryGroups is enough"


def test_a_handle_that_denotes_nothing_is_an_errno_and_the_documented_failure(guest: Guest) -> None:
    found = guest.found("a_handle_that_denotes_nothing")
    assert (found["at write, blocking"], found["at read, otherwise"]) == ("EINVAL", "EINVAL")
    assert found["code after"] == OK
    assert found["failure"]["message"] == "TPM_FAILED"
    assert "ReadPublic failed: Invalid argument: run it again" in found["failure"]["text"]
    assert found["loaded"]


def test_three_keys_fit_and_a_fourth_makes_room_by_our_own(guest: Guest) -> None:
    """B30."""
    found = guest.found("a_fourth_key")
    assert found["codes"] == [OK, OK, OK, FULL, FULL], "the fourth key, and reading the persistent one beside three"
    assert found["flushed"] == 1
    assert found["same"] is True
    assert found["opened"] == 1


def test_two_processes_have_three_keys_each_at_once(guest: Guest) -> None:
    first, second = guest.found("two_processes")
    assert max(first["began"], second["began"]) < min(first["ended"], second["ended"])
    for one in (first, second):
        assert one["derived"] == 3
        assert len(set(one["names"])) == 3
    assert not set(first["names"]) & set(second["names"])


def test_two_threads_of_one_client_take_turns(guest: Guest) -> None:
    found = guest.found("two_threads")
    assert found["without a lock"] == "EBUSY"
    assert found["same"] is True
    assert found["opened"] == 1


def test_a_command_that_takes_long_is_left_to_itself_and_its_reply_is_nobodys(guest: Guest) -> None:
    """B39. The driver's poll() does not: it returns when the TPM is done."""
    found = guest.found("a_late_reply")
    assert found["polled"] is True
    assert found["failure"]["message"] == "TPM_BUSY"
    assert found["busy"] > 0
    assert found["own"] is True
    assert (found["keys"], found["flushed"]) == (3, 0), "what was derived late takes nobody's room"


def test_nothing_stays_of_a_client_that_is_killed(guest: Guest) -> None:
    found = guest.found("a_client_that_is_killed")
    assert found["codes"] == [OK] * 4
    assert len(found["held"]) == 3
    assert len(found["alive"]["active sessions"]) == 1
    assert found["killed"] == found["alive"] | {"active sessions": []}


def test_after_tpm2_clear_the_descriptor_is_dead_and_the_client_opens_anew(guest: Guest) -> None:
    """The node key is another then, and the AK is not: which is the load rules' to see."""
    found = guest.found("a_tpm_that_is_cleared")
    # Linux 6.1 and 6.12, to a command that names nothing.
    assert found["dead"] in (["EFAULT"] * 3, ["EINVAL"] * 3)
    assert (found["same node key"], found["same AK"]) == (False, True)
    assert found["opened"] == [2, 2]
    assert found["digests"] == 1
    assert found["after"]["transient"] == found["after"]["persistent"] == []


def test_a_device_that_goes_is_absent_and_found_again_under_its_name(guest: Guest) -> None:
    found = guest.found("a_device_that_goes_and_comes_back")
    # At once: what is written to the descriptor of before (EPIPE) is sent again on one that is not to be had.
    assert found["held"] == found["gone"]
    assert found["gone"]["message"] == "TPM_ABSENT"
    assert found["gone"]["text"].startswith(f"no TPM 2.0: {found['path']}: No such file or directory: ")
    assert found["back"] == found["path"], "a descriptor kept open would have kept the number"
    assert found["same"] is True
    assert found["opened"] == 2


def test_a_machine_joins_by_its_tpm_and_leaves_it_as_it_was(guest: Guest) -> None:
    found = guest.found("a_machine_joins_by_its_tpm")
    assert found["status"] == 0, found["err"]
    assert (found["pair"]["where"], found["pair"]["ak"]) == ("TPM", guest.ak_name)
    assert found["after"] == found["before"]


def test_its_node_renews_twice_with_every_key_in_the_tpm_and_certified(guest: Guest) -> None:
    found = guest.found("its_node_renews_twice")
    pairs = [guest.found("a_machine_joins_by_its_tpm")["pair"], *found["pairs"]]
    assert [(pair["where"], pair["ak"]) for pair in pairs] == [("TPM", guest.ak_name)] * 3
    assert len({pair["key"] for pair in pairs}) == 3
    assert len({pair["leaf"] for pair in pairs}) == 3
    assert found["ends"] == [0, 0]
