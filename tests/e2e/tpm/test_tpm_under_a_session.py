"""A TPM in trouble while a node runs: told by its message, and neither session nor key is lost by it."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

from bcd.protocol.tpm2.commands import CommandCode
from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import Running, ask_renewal, kinds_of
from tests.e2e.tpm.fitted import FILE_KEY, Fitted, fitted
from tests.e2e.tpm.troubles import (
    AGAIN,
    BOUND_S,
    BROKEN,
    BUSY,
    ENDS_WITHIN_S,
    HIERARCHY_OFF,
    LOCKOUT,
    NOT_STARTED,
    PASSWORD,
    Trouble,
    fill,
    lock_out,
)
from tests.fakes.node_process import until
from tests.fakes.tpm_proxy import Before, Delay, Lose, between, refuse


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
        # One right after the other: a quarter of a minute later the first of them tries again.
        for one, _, _, _ in nodes:
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


@in_background
def test_a_tpm_that_is_cleared_while_the_server_is_asked_takes_no_key_in_a_file_along(stage: Stage) -> None:
    plane = stage.own("moves-in")
    with fitted(plane, stage.place("cleared-move")) as one:
        assert one.machine.join(plane.token()).status == 0
        running = one.up()
        before = one.pair
        with ExitStack() as held:
            # The next key's request is signed, and goes to a server that takes its time.
            one.proxy.on(CommandCode.SIGN, Before(lambda: held.enter_context(plane.held())), times=1)
            one.counts()
            ask_renewal(plane, one.id)
            until((one.machine.data / "node.key.next").exists, "no next key")
            one.tpm.tool("tpm2_clear")
        failed = running.wait("renewal failed")
        assert "renewal: the next node key in the TPM: the TPM derives another key from its record" in failed
        assert one.pair == before
        running.wait(" renewed ")
        running.wait("session up", times=2)
        assert one.key_is_record
        assert running.stop() < ENDS_WITHIN_S
        one.up().stop()
        assert "node.cloned" not in kinds_of(plane, one.id)


@in_background
def test_a_tpm_that_was_away_while_nobody_asked_costs_no_key_its_place(stage: Stage) -> None:
    """Its process was started anew: the connection of before is dead, and the first to notice is the next key."""
    with fitted(stage.long(), stage.place("again-there")) as one:
        one.device = f"{one.proxy.path}.own"
        with between(one.tpm.path, Path(one.device)) as before:
            one.joined()
            running = one.up()
            first = one.pair
            before.forget()
        with between(one.tpm.path, Path(one.device)):
            ask_renewal(one.plane, one.id)
            running.wait(" renewed ")
            running.wait("session up", times=2)
            assert one.key_is_record
            assert one.pair[1] != first[1]
            assert running.count(f"{FILE_KEY}|renewal failed|no session") == 0, running.lines
            assert running.stop() < ENDS_WITHIN_S
        one.tpm.tool("tpm2_flushcontext", "-t")


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
        began = time.monotonic()
        for one in (slower, silent):
            ask_renewal(one.plane, one.id)
        assert BUSY.text in running[0].wait(FILE_KEY)
        assert BOUND_S < time.monotonic() - began < 2 * BOUND_S
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
        until(lambda: one.proxy.counts["CREATE_PRIMARY"], "the TPM is not asked")
        assert running.stop() < ENDS_WITHIN_S, "loading"
        assert one.files == before
        one.proxy.clear()
        one.tpm.tool("tpm2_flushcontext", "-t")
        running = one.up()
        one.proxy.on(CommandCode.SIGN, Lose())
        one.counts()
        ask_renewal(one.plane, one.id)
        until(lambda: one.proxy.counts["SIGN"], "the TPM is not asked")
        assert running.stop() < ENDS_WITHIN_S, "renewing"
        for act in (Lose(), refuse(AGAIN)):
            one.proxy.clear()
            one.tpm.tool("tpm2_flushcontext", "-t")
            running = one.up()
            one.proxy.on(CommandCode.FLUSH_CONTEXT, act)
            assert running.stop() < ENDS_WITHIN_S, act
        one.proxy.clear()
        one.tpm.tool("tpm2_flushcontext", "-t")


@in_background
def test_a_session_hears_what_the_gateway_says_while_the_next_ones_handshake_waits_for_the_tpm(stage: Stage) -> None:
    """B39: that the certificate is revoked, here. The next dial that the TPM signs for ends the node, with the one exit
    of 1 that there is."""
    with fitted(stage.long(), stage.place("heard"), may_die=True) as one:
        one.joined()
        running = one.up()
        # The next key's request and the proof are signed; the handshake with the new pair is not.
        one.proxy.on(CommandCode.SIGN, Delay(0.0), times=2)
        one.proxy.on(CommandCode.SIGN, Lose())
        one.counts()
        ask_renewal(one.plane, one.id)
        running.wait(" renewed ")
        until(lambda: one.proxy.counts["SIGN"] == 3, "the TPM is not asked for the handshake")
        began = time.monotonic()
        one.plane.admin("nodes", "revoke", one.id, "--reason", "stolen")
        assert "was revoked: operator: stolen" in running.wait("session ended")
        assert time.monotonic() - began < BOUND_S / 3, running.lines
        one.proxy.clear()
        assert running.ends() == 1
        one.tpm.tool("tpm2_flushcontext", "-t")
