"""Field report B25: the same instants in every time zone, also in the nights in which its clocks are put on or back.

Each zone in a process of its own, over the nights in which that zone's hour is skipped or comes twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Instants before a change in each zone, UTC.
NIGHTS = {
    "Europe/Berlin": ("2026-03-28T20:00:00", "2026-10-24T20:00:00"),
    "America/New_York": ("2026-03-08T02:00:00", "2026-11-01T01:00:00"),
    "America/St_Johns": ("2026-03-08T01:00:00", "2026-10-31T23:00:00"),
    "Australia/Lord_Howe": ("2026-04-04T09:00:00", "2026-10-03T09:00:00"),
    "Pacific/Kiritimati": ("2026-03-28T20:00:00", "2026-10-24T20:00:00"),
    "Africa/Casablanca": ("2026-02-14T21:00:00", "2026-03-21T21:00:00"),
}
PROGRAM = """
import sys, time
from datetime import datetime, timedelta
sys.path.insert(0, sys.argv[1])
time.tzset()
from tests.contract.clock.table import Table
from tests.fakes.running_node import World

begin = datetime.fromisoformat(sys.argv[2] + "+00:00")
world = World(lifetime=timedelta(hours=4), begin=begin)
found = Table(world)
world.run(12 * 3600)
for leaf, by_gateway, true in found.renewed:
    print((by_gateway - begin).total_seconds(), (leaf.not_after - begin).total_seconds())
found.each_at_its_time()
print([str(at - begin) for at in world.journal.plans], [a[1:] for a in world.journal.attempts])
print(time.localtime(1774742400).tm_hour, file=sys.stderr)
"""


def ran(zone: str, begin: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT), begin],
        env=os.environ | {"TZ": zone},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("zone", NIGHTS)
def test_b25_a_night_of_changed_clocks_is_a_night_like_any_other(zone: str) -> None:
    """Field report B25."""
    for begin in NIGHTS[zone]:
        here, local = ran(zone, begin)
        there, utc = ran("UTC", begin)
        assert here == there
        assert len(here.splitlines()) >= 5
        # The zone was really in force.
        assert local != utc
