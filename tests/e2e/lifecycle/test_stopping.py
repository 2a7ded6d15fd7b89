"""SIGTERM in every state, a second node, and a reset under a node that runs."""

import signal
import subprocess
import threading

from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.lives import Running, ask_renewal, gate, identity_files, joined, judge, kinds_of, leaf_of
from tests.fakes.ending import seconds_to_end

WITHIN_S = 1.0


def test_an_end_that_is_put_off_is_seen() -> None:
    """The negative twin of all that ends within a second: only time in line for a processor is not counted."""
    dawdles = "trap 'sleep 1.1; exit' TERM; echo up; read line"
    with subprocess.Popen(["sh", "-c", dawdles], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert seconds_to_end(process, signal.SIGTERM) > WITHIN_S


@in_background
def test_sigterm_ends_a_node_within_a_second_whatever_it_does(stage: Stage) -> None:
    """Exit 0: connecting, with a session, waiting for a renewal's answer, waiting for the next attempt."""
    plane = stage.long()
    machine, node = joined(plane, "stopped")
    with gate(plane, stage.place("stopped-etc") / "etc") as (way, config):
        way.is_silent = True
        running = Running(machine, config=config)
        running.wait("identity loaded")
        assert way.came.wait(30)
        assert running.stop() < WITHIN_S, "connecting"

        way.shut()
        running = Running(machine, config=config)
        running.wait("no session")
        assert running.stop() < WITHIN_S, "waiting"

        way.open()
        running = Running(machine, config=config)
        running.wait("session up")
        assert running.stop() < WITHIN_S, "session up"

        running = Running(machine, config=config)
        running.wait("session up")
        way.drop()
        running.wait("session ended")
        assert running.stop() < WITHIN_S, "session lost"

        held, go_on = threading.Event(), threading.Event()

        def hold() -> bool:
            held.set()
            go_on.wait(30)
            return False

        running = Running(machine, config=config)
        running.wait("session up")
        way.on_answer = hold
        ask_renewal(plane, node)
        assert held.wait(30)
        assert running.stop() < WITHIN_S, "renewing"
        go_on.set()

        # What was asked for before the last stop has not been forgotten, and nobody is a copy.
        running = Running(machine, config=config)
        running.wait(" renewed ")
        running.wait("session up", times=2)
        running.stop()
    judge(plane, machine, node)


@in_background
def test_a_second_node_is_refused_and_the_first_goes_on(stage: Stage) -> None:
    """Decision 3: exit 75, naming the one that runs."""
    plane = stage.long()
    machine, node = joined(plane, "second")
    first = Running(machine)
    first.wait("session up")
    second = Running(machine)
    assert second.ends() == 75
    assert str(first.process.pid) in second.lines[-1], second.lines
    assert first.lives
    ask_renewal(plane, node)
    first.wait(" renewed ")
    first.wait("session up", times=2)
    first.stop()
    judge(plane, machine, node)


@in_background
def test_a_reset_under_a_node_that_runs(stage: Stage) -> None:
    """Decision 4: it writes nothing over the new identity, and goes on with that; without a new one it ends."""
    plane = stage.long()
    machine, node = joined(plane, "reset")
    running = Running(machine)
    running.wait("session up")
    begun = len(running.lines)
    done = machine.join(plane.token("--allow-reclaim"), "--reset", "--yes")
    assert done.status == 0, done.err
    new = identity_files(machine)["identity.json"]
    # The rejoin revoked what the node holds: it hears so, finds another leaf on disk, and is to be started again.
    status = running.ends() if "certificate revoked" in "".join(running.lines) else _status_or_goes_on(running, begun)
    assert status in {None, 75}, running.lines
    assert leaf_of(identity_files(machine)["identity.json"]) == leaf_of(new)
    if status is None:
        running.stop()
    again = Running(machine)
    again.wait("session up")
    ask_renewal(plane, node)
    again.wait(" renewed ")
    again.wait("session up", times=2)
    again.stop()
    judge(plane, machine, node)

    again = Running(machine)
    again.wait("session up")
    reset = machine.join("bcjt_0123456789_" + "x" * 43, "--reset", "--yes")
    assert reset.status == 77, reset.err
    assert again.ends() == 75
    assert identity_files(machine) == {}
    assert "node.cloned" not in kinds_of(plane, node)


def _status_or_goes_on(running: Running, since: int) -> int | None:
    """75 when it ended, None when it runs on with the new identity."""
    try:
        running.wait("session up", since=since)
    except AssertionError:
        return running.ends(1)
    return None
