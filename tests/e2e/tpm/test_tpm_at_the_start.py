"""A TPM in trouble as a machine joins and as a node starts: told by its message, and nothing is lost by it."""

import threading
import time
from pathlib import Path

from bcd.protocol.files.node_key import TpmRecord, encode_tpm_record
from bcd.protocol.tpm2.commands import CommandCode
from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import leaf_of
from tests.e2e.tpm.fitted import FILE_KEY, Fitted, fitted
from tests.e2e.tpm.troubles import (
    AGAIN,
    BOUND_S,
    BUSY,
    ENDS_WITHIN_S,
    LOCKED_OUT,
    LOCKOUT,
    TROUBLES,
    UNAVAILABLE,
)
from tests.fakes.tpm_proxy import between, refuse


def add_next_key(one: Fitted) -> None:
    """As a renewal leaves one that was cut off before it stored the certificate."""
    path = one.machine.data / "node.key.next"
    path.write_bytes(encode_tpm_record(TpmRecord(bytes(range(32)))))
    path.chmod(0o600)


@in_background
def test_a_node_that_cannot_ask_its_tpm_tells_why_and_changes_nothing(stage: Stage) -> None:
    """B29, B30, B34, B36, B37, B40: exit 75, told at once, doctor says the same, and what a renewal left stays too."""
    with fitted(stage.long(), stage.place("starts")) as one:
        one.joined()
        add_next_key(one)
        before = one.files
        for trouble in TROUBLES:
            with trouble.on(one):
                began = time.monotonic()
                running = one.node()
                assert running.ends() == 75, trouble.text
                assert time.monotonic() - began < BOUND_S / 2, f"{trouble.text}: only an absent one is waited for"
                assert UNAVAILABLE in running.lines[-1]
                assert trouble.text in running.lines[-1], running.lines
                assert "; nothing was changed; if that TPM is gone for good: " in running.lines[-1]
            assert one.files == before, trouble.text
        with LOCKOUT.on(one):
            level, message = one.doctor()["identity"]
            assert (level, message.startswith(UNAVAILABLE)) == ("fail", True)
            assert one.doctor()["tpm"][0] == "warn"
            assert one.status()["nodeKey"] == "tpm"
            again = one.join()
            assert (again.status, LOCKOUT.text in again.last_error) == (75, True)
        assert one.files == before
        # Now it is known to be superfluous; and one in its place is known to be the key.
        one.up().stop()
        assert one.files["node.key"] == before["node.key"]
        assert "node.key.next" not in one.files
        (one.machine.data / "node.key").rename(one.machine.data / "node.key.next")
        assert one.status()["nodeKey"] == "tpm"
        one.up().stop()
        assert one.pair == (leaf_of(before["identity.json"]), before["node.key"])
        assert "node.key.next" not in one.files


@in_background
def test_a_join_on_a_tpm_that_takes_no_key_makes_a_file_and_warns_once(stage: Stage) -> None:
    """B30, B34, B36, B40."""
    with fitted(stage.long(), stage.place("joins")) as one:
        for trouble in TROUBLES:
            with trouble.on(one):
                done = one.join_anew()
                assert done.status == 0, done.err
                assert done.err.count(FILE_KEY) == 1, done.err
                assert done.err.count(trouble.text) == 1, done.err
                assert done.err.count(" warning ") == 1, done.err
            assert one.files["node.key"].startswith(b"-----BEGIN PRIVATE KEY-----\n")
        # No warning where there is nothing wrong.
        assert one.join_anew().status == 0
        assert one.key_is_record


@in_background
def test_a_tpm_that_shows_up_late_is_waited_for_and_one_that_does_not_is_not_for_ever(stage: Stage) -> None:
    """B37."""
    with fitted(stage.long(), stage.place("late")) as one:
        one.joined()
        before = one.files
        late = one.device = f"{one.proxy.path}.late"
        running = one.node()
        running.wait("waiting for the TPM")
        threading.Event().wait(1.0)
        assert running.count("waiting for the TPM") == 1, "once"
        assert one.files == before
        with between(one.tpm.path, Path(late)):
            running.wait("session up")
            assert running.stop() < ENDS_WITHIN_S
        before = one.files
        running = one.node()
        running.wait("waiting for the TPM")
        assert running.stop() < ENDS_WITHIN_S, "while it waits"
        config = one.config.read_text()
        one.config.write_text(config.replace("wait_s = 30.0", "wait_s = 3.0"))
        began = time.monotonic()
        running = one.node()
        running.wait("waiting for the TPM")
        assert running.ends() == 75
        # As long as it was told, and not as long as it was told before.
        assert 3.0 < time.monotonic() - began < 20.0
        assert UNAVAILABLE + f"no TPM 2.0: {late}: No such file or directory" in running.lines[-1]
        assert one.files == before


@in_background
def test_a_tpm_that_was_cleared_ends_the_identity_and_a_reset_brings_the_node_back(stage: Stage) -> None:
    with fitted(stage.long(), stage.place("cleared"), may_mismatch=True) as one:
        one.joined()
        node, before = one.id, one.files
        one.tpm.tool("tpm2_clear")
        for _ in range(2):
            running = one.node()
            assert running.ends() == 76
            assert "the TPM derives another key from node.key (was the TPM cleared?)" in running.lines[-1]
        again = one.join()
        assert (again.status, again.last_error) == (76, running.lines[-1])
        assert one.files == before
        assert one.join_anew().status == 0
        assert one.id == node
        assert one.key_is_record
        one.up().stop()


@in_background
def test_a_handshake_that_the_tpm_refuses_is_told_and_tried_again(stage: Stage) -> None:
    """B29: asked for the same bytes again it waits, once or five times; what lasts is in the log."""
    with fitted(stage.long(), stage.place("handshake")) as one:
        one.joined()
        for times in (1, 5):
            one.proxy.on(CommandCode.SIGN, refuse(AGAIN), times)
            one.counts()
            running = one.up()
            assert one.counts()["SIGN"] == times + 1
            assert not running.count("no session")
            running.stop()
        before = one.files
        one.proxy.on(CommandCode.SIGN, refuse(LOCKED_OUT))
        running = one.node()
        assert LOCKOUT.text in running.wait("no session")
        assert one.files == before
        one.proxy.clear()
        running.wait("session up")
        running.stop()


@in_background
def test_a_join_sends_the_same_bytes_again_when_it_is_asked_to(stage: Stage) -> None:
    """B29, at each command of a join."""
    with fitted(stage.long(), stage.place("again")) as one:
        for command in (CommandCode.CREATE_PRIMARY, CommandCode.SIGN, CommandCode.FLUSH_CONTEXT):
            for times in (1, 5):
                one.proxy.on(command, refuse(AGAIN), times)
                one.counts()
                done = one.join_anew()
                assert (done.status, one.key_is_record) == (0, True), done.err
                sent = [data for data in one.proxy.sent if int.from_bytes(data[6:10]) == command]
                assert (len(sent), len(set(sent))) == (times + 1, 1), command
                assert FILE_KEY not in done.err
                assert one.tpm.transient() == ""
        one.proxy.on(CommandCode.SIGN, refuse(AGAIN))
        done = one.join_anew()
        assert (done.status, done.err.count(BUSY.text), one.key_is_record) == (0, 1, False), done.err
        one.proxy.clear()
        one.proxy.on(CommandCode.FLUSH_CONTEXT, refuse(AGAIN))
        done = one.join_anew()
        assert (done.status, one.key_is_record) == (0, True), done.err
        one.proxy.clear()
        one.tpm.tool("tpm2_flushcontext", "-t")
