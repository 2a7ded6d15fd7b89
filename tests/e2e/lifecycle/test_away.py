"""A control plane that cannot be reached, or not yet, or not by that name; and a clock that is wrong."""

import re
from contextlib import contextmanager

from tests.e2e.lifecycle.background import Stage, in_background
from tests.e2e.lifecycle.conftest import HOSTS
from tests.e2e.lifecycle.lives import (
    Running,
    ask_renewal,
    change_settings,
    gate,
    identity_files,
    joined,
    judge,
    until_stored,
)
from tests.fakes.outside import clock_of
from tests.fakes.plane import Plane


@in_background
def test_a_revocation_while_the_node_is_disconnected_ends_it_when_it_is_back(stage: Stage) -> None:
    """B61: exit 1 once, with the documented line; not a byte is changed, and it does not dial again."""
    plane = stage.long()
    machine, node = joined(plane, "revoked")
    with gate(plane, stage.place("revoked-etc") / "etc") as (way, config):
        before = identity_files(machine)
        running = Running(machine, config=config)
        running.wait("session up")
        until_stored(machine, before)
        way.shut()
        running.wait("session ended")
        before = identity_files(machine)
        plane.admin("nodes", "revoke", node, "--reason", "stolen from the rack")
        running.wait("no session")
        assert running.lives
        way.open()
        assert running.ends() == 1
        assert running.lines[-1] == "agent: this node's certificate was revoked"
        assert running.count('certificate revoked.*reason="[^"]*stolen from the rack"') == 1
        assert identity_files(machine) == before
        again = Running(machine, config=config)
        assert again.ends() == 1
    judge(plane, machine, node)


@in_background
def test_a_serving_certificate_for_another_host_is_waited_out(stage: Stage) -> None:
    """B61: it looks like UNAUTHENTICATED, and must never end a node."""
    plane = stage.own("host")
    machine, node = joined(plane, "host-node")
    running = Running(machine)
    running.wait("session up")
    # The name it was made for first, and then again.
    with _stopped(plane):
        change_settings(plane, "hosts", '["other.example.test"]')
    told = running.wait("no session.*another host name")
    assert "bcd join --reset" not in told or "if this lasts" in told
    with _stopped(plane):
        change_settings(plane, "hosts", '["127.0.0.1"]')
    running.wait("session up", times=2)
    ask_renewal(plane, node)
    running.wait(" renewed ")
    running.wait("session up", times=3)
    running.stop()
    judge(plane, machine, node)


@in_background
def test_a_name_that_resolves_late_is_waited_for(stage: Stage) -> None:
    """A machine whose DNS comes after bcd.service."""
    plane = stage.own("late-name", host="late.example.test", serve=False)
    _serve_at(plane, "127.0.0.1")
    # It joined while the name was there.
    with _known(stage, "late.example.test", "127.0.0.1"):
        machine, node = joined(plane, "late-node")
    running = Running(machine)
    told = running.wait("no session")
    assert re.search("late.example.test.*does not resolve|late.example.test.*(resolution|resolve)", told), told
    with _known(stage, "late.example.test", "127.0.0.1"):
        running.wait("session up")
        ask_renewal(plane, node)
        running.wait(" renewed ")
        running.wait("session up", times=2)
    running.stop()
    judge(plane, machine, node)


@in_background
def test_a_control_plane_with_ipv6_alone(stage: Stage) -> None:
    """Joined, renewed and with a session, by address."""
    plane = stage.own("ipv6", host="::1", serve=False)
    _serve_at(plane, "[::1]")
    assert 'gateway = "[::1]:' in plane.config.read_text()
    machine, node = joined(plane, "ipv6-node")
    running = Running(machine)
    running.wait("session up")
    ask_renewal(plane, node)
    running.wait(" renewed ")
    running.wait("session up", times=2)
    running.stop()
    judge(plane, machine, node)


@in_background
def test_a_clock_a_year_ahead_at_start_and_right_again(stage: Stage) -> None:
    """B21: expired or the clock is wrong, it says, with the mark; and it works again without a restart."""
    plane = stage.long()
    machine, node = joined(plane, "ahead")
    steered = stage.place("ahead-clock") / "offset"
    steered.write_text("+365d\n")
    env = {key: value for key, value in clock_of("2030-01-01 00:00:00").items() if key == "LD_PRELOAD"}
    env |= {"FAKETIME_TIMESTAMP_FILE": str(steered), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    running = Running(machine, env=env)
    told = running.wait("the certificate expired, or the clock is wrong")
    assert re.search(r"serverTimeMark=20\d\d-", told), told
    assert "bcd join --reset --yes" in told
    assert running.lives
    steered.write_text("+0d\n")
    running.wait("session up")
    ask_renewal(plane, node)
    running.wait(" renewed ")
    running.wait("session up", times=2)
    running.stop()
    judge(plane, machine, node)


@contextmanager
def _stopped(plane: Plane):  # type: ignore[no-untyped-def]
    plane.stop()
    yield
    plane.serve()


def _serve_at(plane: Plane, host: str) -> None:
    plane.serve_words = ("--join", f"{host}:0", "--gateway", f"{host}:0")
    plane.serve()
    plane.node_config()


@contextmanager
def _known(stage: Stage, name: str, address: str):  # type: ignore[no-untyped-def]
    """The machine's resolver knows the name, as long as this lasts."""
    before = HOSTS.read_text()
    HOSTS.write_text(f"{before}{address} {name}\n")
    try:
        yield
    finally:
        HOSTS.write_text(before)
