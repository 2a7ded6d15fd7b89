"""Node keys in a software TPM that nobody here wrote, from the join on, as processes before a real control plane."""

import os
import re
import stat
from collections import Counter

import pytest

from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import ask_renewal, kinds_of, renewals_of
from tests.e2e.tpm.fitted import fitted, leaf_key
from tests.e2e.tpm.troubles import ENDS_WITHIN_S
from tests.fakes.plane import Machine

RENEWALS = 3


@in_background
def test_keys_are_in_the_tpm_from_the_join_over_three_renewals_to_another_start(stage: Stage) -> None:
    """Every leaf is for another key, no file holds one, and a handshake costs one command."""
    # A node that is stopped after its renewal starts again, and is not yet to renew, also on a busy machine.
    with fitted(stage.own("life-plane", "--leaf-lifetime", "30s"), stage.place("life")) as one:
        one.joined()
        assert one.counts() == {"CREATE_PRIMARY": 1, "SIGN": 1, "FLUSH_CONTEXT": 1}
        assert stat.S_IMODE((one.machine.data / "node.key").stat().st_mode) == 0o600
        seen = [one.files]
        running = one.up()
        # The reply to Hello came over a connection that the key in the TPM had opened.
        assert one.counts() == {"CREATE_PRIMARY": 1, "SIGN": 1}
        for number in range(1, RENEWALS + 1):
            running.wait(" renewed ", times=number)
            running.wait("session up", times=number + 1)
            seen.append(one.files)
            # The next key, its request, the proof by the one before, the new one's handshake; four keys are one more
            # than fit.
            expected = Counter(CREATE_PRIMARY=1, SIGN=3, FLUSH_CONTEXT=1 if number == RENEWALS else 0)
            assert one.counts() == +expected, number
            assert one.key_is_record
        assert running.count("session ended|no session|renewal failed|warning|error") == 0, running.lines
        assert len({leaf_key(files) for files in seen}) == len({files["node.key"] for files in seen}) == RENEWALS + 1
        assert running.stop() < ENDS_WITHIN_S
        # Those that still were there: the last two and the last but three are gone with the node.
        assert one.counts() == {"FLUSH_CONTEXT": 3}
        running = one.up()
        assert one.counts() == {"CREATE_PRIMARY": 1, "SIGN": 1}
        assert running.stop() < ENDS_WITHIN_S
        assert one.tpm.transient() == ""
        one.counts()
        assert one.status()["nodeKey"] == "tpm"
        assert "node key in the TPM" in one.run("status").out
        # Neither asks the TPM.
        assert one.counts() == {}
        assert "node.cloned" not in kinds_of(one.plane, one.id)
        # The one after the restart was not due yet.
        assert renewals_of(one.plane, one.id) in {RENEWALS, RENEWALS + 1}


@in_background
def test_a_key_in_a_file_moves_into_the_tpm_at_the_next_renewal(stage: Stage) -> None:
    with fitted(stage.long(), stage.place("moves")) as one:
        assert one.machine.join(one.plane.token()).status == 0
        assert one.files["node.key"].startswith(b"-----BEGIN PRIVATE KEY-----\n")
        assert one.doctor()["node key"] == ("warn", "a file, on a machine with a TPM")
        before = leaf_key(one.files)
        running = one.up()
        assert one.status()["nodeKey"] == "file"
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        running.wait("session up", times=2)
        assert one.key_is_record
        assert leaf_key(one.files) != before
        assert one.status()["nodeKey"] == "tpm"
        # Beside a node that has no renewal to make: without a resource manager the TPM has three places for all.
        found = one.doctor()
        assert found["node key"] == ("ok", "in the TPM")
        assert found["tpm"][0] == "ok"
        assert one.join().out.startswith("already joined"), "B62"
        assert running.stop() < ENDS_WITHIN_S
        one.up().stop()
        assert one.doctor()["node key"] == ("ok", "in the TPM")
        assert one.tpm.transient() == ""
        # A key that is there is used, also where new ones go elsewhere; and it is not left in the TPM.
        found = one.machine.run("doctor", "--json", env={**one.env, "BCD_FAKEHW_TPM_KEYS": "0"})
        assert '"in the TPM"' in found.out
        assert one.tpm.transient() == ""


@in_background
def test_a_copied_disk_is_no_copy_of_the_key(stage: Stage) -> None:
    """B48: before another TPM the record is worth nothing, and nothing is taken from the disk."""
    with (
        fitted(stage.long(), stage.place("original")) as one,
        fitted(stage.long(), stage.place("copied"), may_mismatch=True) as other,
    ):
        one.joined()
        copy = other.machine.data
        copy.mkdir(mode=0o700)
        for name, data in one.files.items():
            (copy / name).write_bytes(data)
            (copy / name).chmod(0o600)
        running = other.node()
        assert running.ends() == 76
        assert "the TPM derives another key from node.key (was the TPM cleared?)" in running.lines[-1]
        assert other.join().status == 76
        assert other.files == one.files
        # It asks no TPM, so it cannot know; doctor does.
        assert other.status()["nodeKey"] == "tpm"
        assert other.doctor()["identity"][0] == "fail"
        one.up().stop()
        assert "node.cloned" not in kinds_of(one.plane, one.id)


@in_background
def test_six_kills_and_power_cuts_lock_no_tpm(stage: Stage) -> None:
    """B27: three did where the key's attributes lacked noDA."""
    with fitted(stage.long(), stage.place("cuts")) as one:
        one.joined()
        before = one.pair
        for _ in range(6):
            one.up().kill()
            one.lose_power()
        state = one.tpm.tool("tpm2_getcap", "properties-variable")
        assert re.search(r"TPM2_PT_LOCKOUT_COUNTER: 0x0\n", state), state
        assert re.search(r"inLockout: +0\n", state), state
        one.up().stop()
        assert one.pair == before


@in_background
def test_keys_that_a_killed_node_left_in_a_tpm_without_a_resource_manager(stage: Stage) -> None:
    """B30: a software TPM keeps them. Three are all it has room for: the node says so, and who can help it."""
    with fitted(stage.long(), stage.place("left")) as one:
        one.joined()
        before = one.pair
        for _ in range(3):
            one.up().kill()
        running = one.node()
        assert running.ends() == 75
        assert "has no free object slots (others hold them)" in running.lines[-1]
        assert one.pair == before
        one.tpm.tool("tpm2_flushcontext", "-t")
        one.up().stop()


@in_background
def test_real_bcd_waits_for_the_device_its_configuration_names(stage: Stage) -> None:
    """B37: for a bounded time, and the other device's name is in the message."""
    if os.geteuid() != 0:
        pytest.skip("bcd join wants root")
    with fitted(stage.long(), stage.place("device"), wait_s=1.0) as one:
        one.joined()
        before = one.files
        config = one.config.read_text()
        one.config.write_text(config.replace("[tpm]\n", '[tpm]\ndevice = "/dev/tpmrm1"\n'))
        real = Machine(one.plane, one.machine.name, program="bcd")
        for command in ("join", "node"):
            done = real.run(command, "--config", str(one.config))
            assert done.status == 75
            assert done.last_error.startswith(
                "the node key is in the TPM, which is unavailable: no TPM 2.0: /dev/tpmrm1: No such file or directory"
            )
        assert one.files == before
