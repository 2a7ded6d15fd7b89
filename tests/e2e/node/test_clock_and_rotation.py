"""Clocks that are wrong, zones that are odd, keys that are replaced."""

import json
import re
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.outside import chain_in, clock_of, ended, instant, line_with, open_folder, tree
from tests.fakes.plane import Machine, Plane, control_plane

CLOCK = re.compile(
    r"^(2010-01-01T\S+) warning join attempt failed attempt=(\d+) "
    r'why="local clock 2010-01-01T00:00:\d\dZ is before the server certificate '
    r'\(valid from (20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)\); fix the clock" next_in_s=(\d+\.\d)$'
)


@pytest.mark.parametrize("ca_beside", [True, False], ids=["serving-ca.pem", "probe alone"])
def test_a_clock_of_2010_is_called_that_and_the_join_goes_on_when_it_is_right(
    ca_beside: bool, plane: Plane, machine: Machine, tmp_path: Path
) -> None:
    """B23: the TLS failure is reported as a clock problem and retried; 20 attempts are not burnt in seconds."""
    for name in ("config.toml", "join-encryption.jwk", *(["serving-ca.pem"] if ca_beside else [])):
        shutil.copy(plane.config.parent / name, tmp_path)
    config = ("--config", str(tmp_path / "config.toml"))
    process = machine.start_join(plane.token(), *config, env=clock_of("2010-01-01 00:00:00"))
    said_s, from_when = [], set()
    for attempt in (1, 2):
        found = CLOCK.match(line_with("", process))
        assert found is not None
        # Its clock is wrong, and goes on as any other; we may read a line late.
        said_s.append(_stamped(found[1], "%Y-%m-%dT%H:%M:%S.%fZ"))
        assert int(found[2]) == attempt
        assert 2**attempt / 2 - 0.05 <= float(found[4]) <= 2**attempt + 0.05, "the backoff of a join"
        from_when.add(found[3])
    assert said_s[1] - said_s[0] > 0.9, "and it is kept"
    assert len(from_when) == 1
    process.send_signal(signal.SIGINT)
    assert ended(process) == (75, "", "interrupted; run bcd join again: it goes on where it stopped\n")
    done = machine.run("join", *config)
    assert (done.status, done.out[:12]) == (0, "joined as n-")
    assert re.fullmatch(r"\S+ info resuming the join that was begun; no token is read begun=2010-01-01T\S+\n", done.err)
    assert instant(chain_in(machine.data)[0], "-enddate") > 1_700_000_000, "by the server's clock"


def test_a_joined_machine_whose_clock_is_wrong_keeps_its_identity(plane: Plane, joined: Machine) -> None:
    """Decision 15: nothing is discarded because of the local clock; B23 on later boots."""
    before = tree(joined.data)
    for when, expired in (("2010-01-01 00:00:00", False), ("2051-01-01 00:00:00", True)):
        done = joined.run("join", env=clock_of(when))
        assert (done.status, done.out[:14]) == (0, "already joined")
        line = r"the certificate expired at \S+Z; join again: bcd join --reset --yes, then bcd join\n"
        assert bool(re.fullmatch(line, done.err)) == expired
        assert (done.err == "") == (not expired)
        doctor = joined.run("doctor", env=clock_of(when))
        assert doctor.status == 1
        failed = [said for said in doctor.out.splitlines() if said.startswith("fail")]
        (only,) = failed
        assert only.split()[1] == ("certificate" if expired else "clock")
        way_back = "renew it on the server, or fix the clock" if expired else "fix the clock"
        assert re.search(rf"^warn  join port +local clock .* \({way_back}\)$", doctor.out, re.MULTILINE)
    assert tree(joined.data) == before
    assert joined.run("doctor").status == 0


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_instants_are_the_same_in_every_zone(plane: Plane, joined: Machine) -> None:
    """B25: the same instants in all, and openssl's."""
    ends = instant(chain_in(joined.data)[0], "-enddate")
    seen = set()
    for zone in ("UTC", "Pacific/Kiritimati", "America/St_Johns", "Europe/Berlin"):
        env = {"TZ": zone}
        status = joined.run("status", "--json", env=env)
        text = joined.run("status", env=env)
        doctor = joined.run("doctor", env=env)
        join = plane.machine().join(plane.token()) if zone == "Pacific/Kiritimati" else None
        assert (status.status, text.status, doctor.status) == (0, 0, 0)
        value = json.loads(status.out)
        times = [value[name] for name in ("notBefore", "notAfter", "renewAt", "serverTime")]
        seen.add((*times, *INSTANT.findall(text.out), *INSTANT.findall(doctor.out)))
        if join is not None:
            (until_when,) = INSTANT.findall(join.out)
            assert abs(_unix(until_when) - ends) < 300
    assert len(seen) == 1, seen
    assert abs(_unix(next(iter(seen))[1]) - ends) < 1


def test_names_and_logs_are_utc_in_every_zone(plane: Plane, machine: Machine) -> None:
    """B25: the stamp in the name of a file moved aside, and the log's own times."""
    began_s = time.time()
    for zone in ("Pacific/Kiritimati", "America/St_Johns"):
        assert machine.run("join", env={"TZ": zone}, stdin=b"y" * 40).status == 77
    names = [re.sub(r"\.\d$", "", name) for name in machine.files()]
    assert len(names) == 2
    for name in names:
        assert abs(_stamped(name.rpartition("-")[2], "%Y%m%dT%H%M%SZ") - began_s) < 60
    process = machine.start_join(plane.token("--require-approval"), env={"TZ": "Pacific/Kiritimati"})
    stamp = line_with("waiting", process).split()[0]
    assert abs(_stamped(stamp, "%Y-%m-%dT%H:%M:%S.%fZ") - began_s) < 60


def _stamped(text: str, form: str) -> float:
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


def _unix(rfc3339: str) -> float:
    return float(commands.run("date", "-ud", rfc3339, "+%s").out)


# ---- B55


@pytest.fixture
def rotated() -> Iterator[tuple[Plane, str, str]]:
    """A control plane that got another serving CA, and the pins of the old and the new one."""
    with open_folder() as home, control_plane(home) as plane:
        other = Plane(home / "other")
        other.home.mkdir()
        other.init()
        old = _pin(plane)
        plane.stop()
        for name in ("serving-ca.key", "serving-ca.pem"):
            shutil.copy(other.directory / name, plane.directory / name)
        for name in ("serving.key", "serving.pem"):
            (plane.directory / name).unlink()
        plane.serve()
        new_config = home / "new"
        plane.admin("node-config", "--out", str(new_config))
        new = _pin_in(new_config / "config.toml")
        assert new != old
        yield plane, old, new


def _pin_in(config: Path) -> str:
    found = re.search(r'serving_ca_spki_pin = "(.*)"', config.read_text())
    assert found is not None
    return found[1]


def _pin(plane: Plane) -> str:
    return _pin_in(plane.config)


def test_a_pin_that_no_longer_matches_and_the_ways_through_a_rotation(rotated: tuple[Plane, str, str]) -> None:
    """B55: both pins and where to put the new one; a list of two during the rotation; what joined then loads after."""
    plane, old, new = rotated
    machine, token = plane.machine(), plane.token()
    line = (
        f"serving CA pin mismatch: have {old}, presented {new}; get the new pin from bcd-controlplane node-config "
        f"and put it in {plane.config} as serving_ca_spki_pin\n"
    )
    done = machine.join(token)
    assert (done.status, done.out, done.err) == (78, "", line)
    doctor = machine.run("doctor")
    assert doctor.status == 1
    assert f"fail  join port            serving CA pin mismatch: have {old}, presented {new}" in doctor.out
    assert plane.json("refusals", "list") == [], "no token goes to whom the pin does not know"

    config = plane.config.read_text()
    plane.config.write_text(config.replace(f'"{old}"', f'["{old}", "{new}"]'))
    done = machine.join()
    assert (done.status, done.out[:12]) == (0, "joined as n-"), done.err
    before = tree(machine.data)

    plane.config.write_text(config.replace(old, new))
    assert machine.run("status").status == 0
    assert machine.run("doctor").status == 0
    assert machine.join().out.startswith("already joined as n-")
    assert tree(machine.data) == before
    other = plane.machine()
    assert other.join(plane.token()).status == 0, "with the old serving-ca.pem beside the new pin"


def test_a_list_of_two_pins_works_before_the_rotation_too(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """B55, the twin: the new pin is given out before the CA is replaced."""
    for name in ("config.toml", "join-encryption.jwk", "serving-ca.pem"):
        shutil.copy(plane.config.parent / name, tmp_path)
    config = tmp_path / "config.toml"
    old = _pin(plane)
    config.write_text(config.read_text().replace(f'"{old}"', f'["sha256:{"0" * 64}", "{old}"]'))
    assert machine.join(plane.token(), "--config", str(config)).status == 0
    config.write_text(plane.config.read_text().replace(old, f"sha256:{'0' * 64}"))
    done = plane.machine().join(plane.token(), "--config", str(config))
    assert (done.status, f"presented {old};" in done.err) == (78, True)
