"""What befalls the TPM that holds a node's key: told by its message, and nothing is lost by it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bcd.adapters.tpm.client import Key
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import Handle
from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import Running, ask_renewal
from tests.e2e.messages.tpm import FAILURE, OLD, WRONG_PASSWORDS
from tests.e2e.tpm.fitted import FILE_KEY, Fitted, fitted
from tests.fakes.tpm_proxy import Answer, Delay, Lose, between, refuse

UNAVAILABLE = "the node key is in the TPM, which is unavailable: "
BOUND_S = 30.0
# SIGTERM to a node with a TPM that does not answer.
ENDS_WITHIN_S = 2.0
AGAIN, LOCKED_OUT = 0x922, 0x921


@dataclass(frozen=True)
class Trouble:
    """`begin` brings it about, `end` takes it away; `text` is in the message."""

    text: str
    begin: Callable[[Fitted], object]
    end: Callable[[Fitted], object] = lambda one: one.proxy.clear()

    @contextmanager
    def on(self, one: Fitted) -> Iterator[None]:
        self.begin(one)
        try:
            yield
        finally:
            self.end(one)


def answers(text: str, answer: Answer) -> Trouble:
    return Trouble(text, lambda one: one.proxy.on(None, answer))


def fill(one: Fitted, count: int = 3) -> None:
    """With somebody else's objects."""
    client = one.tpm.client()
    for number in range(count):
        client.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
    client._link.close()


def hierarchy(one: Fitted, to: str) -> None:
    one.tpm.tool("tpm2_hierarchycontrol", "-C", "p", "shEnable", to)


def lock_out(one: Fitted) -> None:
    """By wrong passwords for an index that counts them, which is gone afterwards."""
    index = "0x01C00002"
    one.tpm.tool("tpm2_nvdefine", index, "-C", "o", "-s", "8", "-a", "ownerwrite|authread|authwrite", "-p", "secret")
    (one.tpm.home / "content").write_bytes(bytes(8))
    one.tpm.tool("tpm2_nvwrite", index, "-C", "o", "-i", "content")
    for _ in range(WRONG_PASSWORDS):
        one.tpm.tool("tpm2_nvread", index, "-C", index, "-P", "wrong", check=False)
    assert "inLockout:                 1" in one.tpm.tool("tpm2_getcap", "properties-variable")
    one.tpm.tool("tpm2_nvundefine", index, "-C", "o")


PASSWORD = Trouble(
    "the TPM's owner hierarchy has a password",
    lambda one: one.tpm.tool("tpm2_changeauth", "-c", "owner", "secret"),
    lambda one: one.tpm.tool("tpm2_changeauth", "-c", "owner", "-p", "secret"),
)
HIERARCHY_OFF = Trouble(
    "the TPM's owner hierarchy is disabled", lambda one: hierarchy(one, "clear"), lambda one: hierarchy(one, "set")
)
NOT_STARTED = Trouble(
    "is not started (0x100; did a resume fail?)", lambda one: one.lose_power(started=False), Fitted.start_tpm
)
FULL = Trouble("has no free object slots (others hold them)", fill, lambda one: one.tpm.tool("tpm2_flushcontext", "-t"))
LOCKOUT = answers("is locked out after failed authorizations (0x921)", refuse(LOCKED_OUT))
BUSY = answers("is busy: ", refuse(AGAIN))
TPM_1_2 = answers("answers as a TPM 1.2", Answer(OLD))
BROKEN = answers("CreatePrimary failed: ", Answer(FAILURE))
TROUBLES = (PASSWORD, HIERARCHY_OFF, NOT_STARTED, FULL, LOCKOUT, BUSY, TPM_1_2, BROKEN)


# ---- at the start


@in_background
def test_a_node_that_cannot_ask_its_tpm_tells_why_and_changes_nothing(stage: Stage) -> None:
    """B29, B30, B34, B36, B40: exit 75, told at once, and doctor says the same."""
    with fitted(stage.long(), stage.place("starts")) as one:
        one.joined()
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
        one.up().stop()


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
    with fitted(stage.long(), stage.place("late"), wait_s=3.0) as one:
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
            assert running.stop() < 1.0
        before = one.files
        running = one.node()
        running.wait("waiting for the TPM")
        assert running.stop() < 1.0, "while it waits"
        began = time.monotonic()
        running = one.node()
        running.wait("waiting for the TPM")
        waited = time.monotonic()
        assert running.ends() == 75
        assert time.monotonic() - began > 2.0
        assert time.monotonic() - waited < 3.0 + 2.0
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


# ---- under a session


@in_background
def test_a_renewal_that_needs_the_tpm_waits_for_it_and_the_session_goes_on(stage: Stage) -> None:
    """B29, B39, B40: told with its reason, with no command in between, and made up for without a restart."""
    troubles = (HIERARCHY_OFF, NOT_STARTED, LOCKOUT, BUSY, BROKEN)
    with ExitStack() as stack:
        nodes: list[tuple[Fitted, Running, Trouble, tuple[bytes, bytes]]] = []
        for number, trouble in enumerate(troubles):
            one = stack.enter_context(fitted(stage.long(), stage.place(f"renewal-{number}")))
            one.joined()
            nodes.append((one, one.up(), trouble, one.pair))
        for one, _, trouble, _ in nodes:
            trouble.begin(one)
            ask_renewal(one.plane, one.id)
        for one, running, trouble, before in nodes:
            failed = running.wait("renewal failed")
            # Where making a key fails first, the reason it gives is the first one.
            assert trouble.text.replace("CreatePrimary", "Sign") in failed, failed
            assert one.pair == before
            assert running.count("session ended|no session") == 0
            one.counts()
        threading.Event().wait(2.0)
        for one, running, trouble, before in nodes:
            assert one.counts() == {}, "no loop"
            assert running.count("renewal failed") == 1
            assert running.count(FILE_KEY) == 1, "warned once"
            assert one.pair == before
            trouble.end(one)
        for one, running, _, before in nodes:
            running.wait(" renewed ")
            running.wait("session up", times=2)
            assert running.count("session ended") == 0
            assert one.key_is_record
            assert one.pair[0] != before[0]
            assert one.pair[1] != before[1]
            assert running.stop() < ENDS_WITHIN_S


@in_background
def test_a_password_under_a_running_node_costs_the_next_key_its_place(stage: Stage) -> None:
    """B34: the loaded key still signs; what cannot be made there is a file, with one warning, and moves in later."""
    with fitted(stage.long(), stage.place("password")) as one:
        one.joined()
        running = one.up()
        with PASSWORD.on(one):
            ask_renewal(one.plane, one.id)
            running.wait(" renewed ")
            running.wait("session up", times=2)
            assert running.count(FILE_KEY) == 1
            assert running.count(PASSWORD.text) == 1
            assert not one.key_is_record
            assert running.stop() < ENDS_WITHIN_S
        running = one.up()
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        assert one.key_is_record
        running.stop()


@in_background
def test_a_renewal_makes_room_of_its_own_keys_when_others_have_the_rest(stage: Stage) -> None:
    """B30: one flush and one more try for each command that finds no room, and none of the others' objects is gone."""
    with fitted(stage.long(), stage.place("room")) as one:
        one.joined()
        fill(one, 2)
        others = one.tpm.transient()
        running = one.up()
        one.counts()
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        running.wait("session up", times=2)
        assert one.key_is_record
        assert running.count(FILE_KEY) == 0
        # The next key, the one in use for the proof, the next one again for its handshake.
        assert one.counts() == {"CREATE_PRIMARY": 6, "FLUSH_CONTEXT": 3, "SIGN": 3}
        assert running.stop() < ENDS_WITHIN_S
        assert one.tpm.transient() == others
        one.tpm.tool("tpm2_flushcontext", "-t")


@in_background
def test_a_tpm_that_was_locked_out_signs_for_a_node(stage: Stage) -> None:
    """B27: a real lockout is none of a key's with noDA."""
    with fitted(stage.long(), stage.place("lockout")) as one:
        one.joined()
        lock_out(one)
        running = one.up()
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        assert one.key_is_record
        running.stop()


@in_background
def test_a_cleared_tpm_ends_no_session_and_signs_nothing_that_is_sent(stage: Stage) -> None:
    with fitted(stage.long(), stage.place("cleared-under"), may_mismatch=True) as one:
        one.joined()
        running = one.up()
        before = one.pair
        one.tpm.tool("tpm2_clear")
        ask_renewal(one.plane, one.id)
        assert "was the TPM cleared?" in running.wait("renewal failed")
        assert running.count("session ended|no session") == 0
        assert running.stop() < ENDS_WITHIN_S
        assert one.pair == before
        assert one.node().ends() == 76
        assert one.pair == before


# ---- slow, and silent


@in_background
def test_an_answer_within_the_bound_is_waited_for(stage: Stage) -> None:
    """B39: 29 seconds."""
    with fitted(stage.long(), stage.place("slow")) as one:
        one.joined()
        running = one.up()
        one.proxy.on(CommandCode.CREATE_PRIMARY, Delay(29.0), times=1)
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        assert one.key_is_record
        assert running.count("session ended|no session|renewal failed") == 0
        running.stop()


@in_background
def test_an_answer_after_the_bound_is_not(stage: Stage) -> None:
    """B39: after 31 seconds, and never. The session stays up, and the renewal is tried again."""
    with (
        fitted(stage.long(), stage.place("slower")) as slower,
        fitted(stage.long(), stage.place("silent")) as silent,
    ):
        running = [one.joined().up() for one in (slower, silent)]
        before = silent.pair
        slower.proxy.on(CommandCode.CREATE_PRIMARY, Delay(BOUND_S + 1), times=1)
        # The next key's request is signed; the proof by the key in use is not.
        silent.proxy.on(CommandCode.SIGN, Delay(0.0), times=1)
        silent.proxy.on(CommandCode.SIGN, Lose())
        for one in (slower, silent):
            ask_renewal(one.plane, one.id)
        began = time.monotonic()
        assert BUSY.text in running[0].wait(FILE_KEY)
        assert BOUND_S - 1 < time.monotonic() - began < BOUND_S + 5
        running[0].wait(" renewed ")
        assert "is busy: no answer to Sign" in running[1].wait("renewal failed")
        assert silent.pair == before
        for node in running:
            assert node.count("session ended|no session") == 0
        assert running[1].stop() < ENDS_WITHIN_S
        silent.proxy.clear()
        silent.up().stop()
        running[0].stop()
        # What the late command loaded, nobody knows of.
        slower.tpm.tool("tpm2_flushcontext", "-t")


@in_background
def test_sigterm_ends_a_node_whose_tpm_answers_nothing(stage: Stage) -> None:
    """B39: at its start, in the middle of a renewal, and when there is nothing more to do than to give the keys
    back."""
    with fitted(stage.long(), stage.place("term")) as one:
        one.joined()
        before = one.files
        one.proxy.on(CommandCode.CREATE_PRIMARY, Lose())
        one.counts()
        running = one.node()
        while not one.proxy.counts["CREATE_PRIMARY"]:
            threading.Event().wait(0.05)
        assert running.stop() < ENDS_WITHIN_S, "loading"
        assert one.files == before
        one.proxy.clear()
        one.tpm.tool("tpm2_flushcontext", "-t")
        running = one.up()
        one.proxy.on(CommandCode.SIGN, Lose())
        ask_renewal(one.plane, one.id)
        one.counts()
        while not one.proxy.counts["SIGN"]:
            threading.Event().wait(0.05)
        assert running.stop() < ENDS_WITHIN_S, "renewing"
        for act in (Lose(), refuse(AGAIN)):
            one.proxy.clear()
            one.tpm.tool("tpm2_flushcontext", "-t")
            running = one.up()
            one.proxy.on(CommandCode.FLUSH_CONTEXT, act)
            assert running.stop() < ENDS_WITHIN_S, act
        one.proxy.clear()
        one.tpm.tool("tpm2_flushcontext", "-t")
