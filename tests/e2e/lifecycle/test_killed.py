"""Processes that are killed: the node at random moments, the control plane in the middle of a renewal."""

import os
import random
import re
import signal
import subprocess
import threading
import time

from tests.crash import strace
from tests.e2e.lifecycle.background import ROOMY, Stage, in_background
from tests.e2e.lifecycle.lives import (
    Running,
    ask_renewal,
    gate,
    joined,
    judge,
    killed,
    kinds_of,
    renewals_of,
    serial_of,
    until_log,
)
from tests.fakes.plane import Machine, Plane

KILLS = 25


def _killed_nodes(stage: Stage, number: int) -> None:
    """Killed, started again at once, and told to renew each time: half of the kills fall into a renewal."""
    seed = int(os.environ.get("BCD_TEST_SEED", "") or random.SystemRandom().randrange(1 << 32)) + number
    print(f"BCD_TEST_SEED={seed - number}")
    chance = random.Random(seed)
    plane = stage.asked()
    machine, node = joined(plane, f"killed-{number}")
    moments = []
    for round_ in range(KILLS):
        ask_renewal(plane, node)
        running = Running(machine)
        # Anywhere in its start, or around the renewal that follows the session's beginning.
        if round_ % 5 == 4:
            # One in five lives to see its successor.
            running.wait(" renewed ")
            _pause(chance.uniform(0, 0.05))
        elif chance.random() < 0.4:
            _pause(chance.uniform(0, 0.7))
        else:
            running.wait("session up")
            _pause(chance.uniform(0, 0.15))
        running.kill()
        assert running.process.returncode == -signal.SIGKILL, (seed, running.lines)
        moments.append(re.sub(r"^\S+ ", "", running.lines[-1]) if running.lines else "nothing said")
    ask_renewal(plane, node)
    last = Running(machine)
    last.wait("session up")
    last.wait(" renewed ")
    last.wait("session up", times=2)
    assert last.stop() < 1.0
    judge(plane, machine, node)
    kinds = kinds_of(plane, node)
    assert kinds.count("node.joined") == 1, (seed, kinds)
    # Kills that never met a renewal would prove nothing.
    assert kinds.count("node.renewed") > 5, (seed, kinds)
    assert len(set(moments)) > 2, moments


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@in_background
def test_a_node_killed_at_random_moments_first_quarter(stage: Stage) -> None:
    """B01, B02, B03: a hundred kills in four tests; the seed is printed."""
    _killed_nodes(stage, 0)


@in_background
def test_a_node_killed_at_random_moments_second_quarter(stage: Stage) -> None:
    """B01, B02, B03."""
    _killed_nodes(stage, 1)


@in_background
def test_a_node_killed_at_random_moments_third_quarter(stage: Stage) -> None:
    """B01, B02, B03."""
    _killed_nodes(stage, 2)


@in_background
def test_a_node_killed_at_random_moments_fourth_quarter(stage: Stage) -> None:
    """B01, B02, B03."""
    _killed_nodes(stage, 3)


@in_background
def test_the_control_plane_is_killed_before_it_commits_a_renewal(stage: Stage) -> None:
    """B02: it forgets that it was asked; the node asks again, with the same key."""
    plane = stage.own("before-commit", *ROOMY)
    machine, node = joined(plane, "before-commit-node")
    running = Running(machine)
    running.wait("session up")
    until_log(plane, "session up")
    assert plane.server is not None
    log = plane.home / "strace.log"
    tracer = subprocess.Popen(
        [
            *strace.words(log, "-p", str(plane.server.pid), calls="pwrite64,fdatasync,fsync"),
            # The first thing written to the store from now on is what the renewal changes.
            *("-P", str(plane.directory / "store.db-journal"), "-P", str(plane.directory / "store.db-wal")),
            *("-P", str(plane.directory / "store.db"), "-e", "inject=pwrite64,fdatasync,fsync:signal=SIGKILL:when=1"),
        ],
        stderr=subprocess.PIPE,
    )
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    killed(plane)
    tracer.communicate(timeout=10)
    assert strace.killed_at(log)
    plane.serve()
    _renews_as_if_nothing_had_been(plane, machine, node, running)
    assert renewals_of(plane, node) == running.count(" renewed ") == 2


@in_background
def test_the_control_plane_is_killed_after_it_committed_a_renewal(stage: Stage) -> None:
    """B02: the certificate is issued and its answer lost; asked again it gives that one."""
    plane = stage.own("after-commit", *ROOMY)
    machine, node = joined(plane, "after-commit-node")
    with gate(plane, stage.place("after-commit-etc") / "etc") as (before, config):
        running = Running(machine, config=config)
        running.wait("session up")
        asked = threading.Event()

        def kill() -> bool:
            # First whoever asks for the renewal is to have his own answer.
            asked.wait(30)
            assert plane.server is not None
            plane.server.kill()
            return False

        before.on_answer = kill
        ask_renewal(plane, node)
        asked.set()
        killed(plane)
        plane.serve()
        assert renewals_of(plane, node) == 1
        running.wait("renewal failed")
        _renews_as_if_nothing_had_been(plane, machine, node, running)
    until_log(plane, "renewal answered again", within_s=1)


def _renews_as_if_nothing_had_been(plane: Plane, machine: Machine, node: str, running: Running) -> None:
    running.wait(" renewed ")
    running.wait("session up", times=2)
    ask_renewal(plane, node)
    running.wait(" renewed ", times=2)
    running.stop()
    judge(plane, machine, node)


@in_background
def test_an_answer_is_lost_and_the_next_one_comes_late(stage: Stage) -> None:
    """B02, B61: the same request again, the same certificate; a late answer is as good as any."""
    # Asked for early: a quarter of a minute, for the next session to come up, lies between one attempt and the next.
    plane = stage.own("lost", *ROOMY)
    machine, node = joined(plane, "lost-node")
    with gate(plane, stage.place("lost-etc") / "etc") as (way, config):
        running = Running(machine, config=config)
        running.wait("session up")
        held, go_on = threading.Event(), threading.Event()

        def hold() -> bool:
            held.set()
            return go_on.wait(30)

        way.on_answer = lambda: False
        ask_renewal(plane, node)
        running.wait("renewal failed")
        running.wait("session up", times=2)
        way.on_answer = hold
        assert held.wait(60)
        issued = plane.json("nodes", "show", node)
        assert renewals_of(plane, node) == 1
        assert running.count(" renewed ") == 0
        go_on.set()
        running.wait(" renewed ")
        running.wait("session up", times=3)
        assert serial_of(machine) in str(issued), "the certificate that was issued first"
        running.wait(" renewed ", times=2)
        running.stop()
    judge(plane, machine, node)
    assert renewals_of(plane, node) == 2


@in_background
def test_three_renewals_and_a_session_that_lives_on(stage: Stage) -> None:
    """B61, and what all the others do not do: nothing happens to this one."""
    plane = stage.short()
    machine, node = joined(plane, "undisturbed")
    running = Running(machine)
    begun = time.monotonic()
    running.wait(" renewed ", times=3)
    running.wait("session up", times=4)
    assert time.monotonic() - begun > 20, "at 60 % of 20 seconds, three times"
    assert running.count("session ended|no session|renewal failed|warning|error") == 0, running.lines
    assert running.stop() < 1.0
    judge(plane, machine, node)
    assert renewals_of(plane, node) == 3
