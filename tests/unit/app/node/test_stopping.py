"""A running node is told to stop, and tells whoever watches it."""

import itertools
import threading
import time

import pytest

from bcd.app.inbox import Inbox
from bcd.app.worker import ThreadWorker
from bcd.domain.model.failures import Message, TryLater
from bcd.ports.gateway import Ended, Pair
from tests.fakes.memory_node import PATH
from tests.fakes.running_node import MemorySupervisor, World


def test_a_stop_ends_it_in_good_order() -> None:
    world = World().run(60)
    assert world.supervisor.lines[-1] == "STOPPING=1"
    assert world.journal.closed == 1
    assert all(connection.closed for connection in world.gateway.connections)


def test_a_stop_is_heard_while_both_workers_hang() -> None:
    world = World()
    world.held_up |= {"dial", "renewal", "look at the disk", "storing what the gateway told"}
    world.run(60)
    assert world.supervisor.lines[-1] == "STOPPING=1"


def test_a_stop_is_heard_within_a_second_while_real_threads_hang() -> None:
    world = World(make_worker=ThreadWorker)
    world.inbox = Inbox()
    dialling, let_go = threading.Event(), threading.Event()

    def hang(pair: Pair) -> Ended | None:
        dialling.set()
        let_go.wait(60)
        return None

    world.gateway.connects = hang
    stopped: list[float] = []

    def stop() -> None:
        dialling.wait(60)
        stopped.append(time.monotonic())
        world.inbox.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        world.start()
        assert time.monotonic() - stopped[0] < 1
    finally:
        let_go.set()
        thread.join()
    assert world.supervisor.lines[-1] == "STOPPING=1"
    # What came of the dial after that is closed, and says nothing to anybody.
    for one in threading.enumerate():
        if one.name.startswith("bcd-"):
            one.join(10)
    (connection,) = world.gateway.connections
    assert connection.closed
    assert world.gateway.used == []


def test_a_stop_is_heard_while_another_process_has_the_directory() -> None:
    world = World()
    disk = world.node.disk
    other = disk.open_directory(PATH)
    assert disk.try_lock(other)
    world.clock.on_wait = world.inbox.stop
    before = world.clock.boottime_s()
    world.start()
    assert world.clock.boottime_s() - before <= 1.1
    assert world.gateway.connections == []


def test_a_directory_that_stays_in_use_is_try_later_after_45_seconds() -> None:
    world = World()
    other = world.node.disk.open_directory(PATH)
    assert world.node.disk.try_lock(other)
    before = world.clock.boottime_s()
    with pytest.raises(TryLater) as later:
        world.start()
    assert later.value.message is Message.LOCKED
    assert 44 <= world.clock.boottime_s() - before <= 47


def test_the_supervisor_hears_that_it_is_ready_and_how_it_is() -> None:
    world = World()
    world.at(30, lambda: world.gateway.say(Ended("bye")))
    world.at(29, world.gateway.refuse)
    world.run(40)
    lines = world.supervisor.lines
    until = "certificate until 2026-09-27T09:36:00Z"
    assert lines.count("READY=1") == 1
    ready = lines.index("READY=1")
    assert f"STATUS=session up; {until}" in lines[ready:]
    assert lines[-2] == f"STATUS=no session; {until}"


def test_a_watchdog_hears_of_it_twice_as_often_as_it_asks() -> None:
    world = World(supervisor=MemorySupervisor(watchdog_s=10.0))
    times: list[float] = []
    tell = world.supervisor.tell

    def timed(*lines: str) -> None:
        if "WATCHDOG=1" in lines:
            times.append(world.clock.boottime_s())
        tell(*lines)

    world.supervisor.tell = timed  # type: ignore[method-assign]
    world.run(300)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) <= 5.0
    assert len(times) > 50


def test_without_a_watchdog_nobody_is_told() -> None:
    assert "WATCHDOG=1" not in World().run(300).supervisor.lines
