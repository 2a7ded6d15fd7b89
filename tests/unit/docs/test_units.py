"""config/*.service: what they say of exits and times is what the programs do."""

import configparser
from pathlib import Path

import pytest

from bcd.adapters.tpm.link import BOUND_S
from bcd.domain.model.datadir import LOCK_WAIT_S
from bcd.domain.model.failures import Exit
from bcd.protocol.files.config import Config

CONFIG = Path(__file__).resolve().parents[3] / "config"
# What only a person can mend; a join is not tried again for it.
NEED_A_PERSON = {Exit.USAGE, Exit.NO_IDENTITY, Exit.REFUSED, Exit.CONFIGURATION}


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string((CONFIG / name).read_text(encoding="utf-8"))
    return read


def never_restarted(name: str) -> set[int]:
    return {int(word) for word in unit(name)["Service"]["RestartPreventExitStatus"].split()}


def test_a_node_is_started_again_after_everything_but_its_identitys_death() -> None:
    assert unit("bcd.service")["Service"]["Restart"] == "always"
    assert never_restarted("bcd.service") == {Exit.DEAD}


def test_a_join_is_tried_again_where_that_may_help() -> None:
    assert unit("bcd-join.service")["Service"]["Restart"] == "on-failure"
    assert never_restarted("bcd-join.service") == {Exit.DEAD, *NEED_A_PERSON}


@pytest.mark.parametrize("name", ["bcd.service", "bcd-join.service"])
def test_nobody_has_to_start_it_by_hand_after_many_failures(name: str) -> None:
    assert unit(name)["Unit"]["StartLimitIntervalSec"] == "0"


def test_a_node_that_waits_for_the_lock_or_a_slow_tpm_is_not_taken_for_dead() -> None:
    """A loaded node tells the watchdog twice in its time; one that loads anew says nothing while it waits."""
    service = unit("bcd.service")["Service"]
    assert service["Type"] == "notify"
    load_s = LOCK_WAIT_S + 2 * BOUND_S
    assert float(service["WatchdogSec"]) / 2 >= load_s
    assert float(service["TimeoutStartSec"]) >= Config("").tpm_wait_s + load_s


@pytest.mark.parametrize("name", ["bcd.service", "bcd-join.service"])
def test_a_unit_lets_bcd_have_the_tpm_and_no_other_device(name: str) -> None:
    """By its class, since a device that is not there yet cannot be named; and where udev gave it to a group root needs
    a capability."""
    service = unit(name)["Service"]
    assert "PrivateDevices" not in service
    assert (service["DevicePolicy"], service["DeviceAllow"]) == ("closed", "char-tpm rw")
    assert "CAP_DAC_OVERRIDE" in service["CapabilityBoundingSet"].split()


def test_a_node_comes_after_the_join_and_the_network() -> None:
    told = unit("bcd.service")["Unit"]
    for order in ("After", "Wants"):
        assert set(told[order].split()) == {"network-online.target", "bcd-join.service"}


@pytest.mark.parametrize("name", ["bcd.service", "bcd-join.service"])
def test_a_unit_writes_no_more_than_it_has_to(name: str) -> None:
    service = unit(name)["Service"]
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["LimitCORE"] == "0"
    writable = service["ReadWritePaths"].removeprefix("-")
    assert "/var/lib/bcd".startswith(writable)
